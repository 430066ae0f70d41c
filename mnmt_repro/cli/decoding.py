"""`sweep --decode`: scores of translations for the finished runs of a cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.checkpoints import work_through
from mnmt_repro.errors import InputError
from mnmt_repro.runs.spec import RunSpec

if TYPE_CHECKING:
    from mnmt_repro.cli.sweep import SweepOptions

SECONDS = 15.0  # that a run takes on one thread, on the average of the mini tier


def decode_runs(
    options: SweepOptions, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
) -> int:
    """Decode the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.

    Raises
    ------
    InputError
        When the cohort has been decoded with other settings, BLEURT's weights are not where they
        should be, or there is nothing that can be decoded.
    """
    from mnmt_repro import results
    from mnmt_repro.runs.decoding import DecodingConfig, decode_in_worker, usual

    config = (
        usual({spec.corpus for spec in specs})
        if options.sentences is None
        else DecodingConfig(sentences=options.sentences)
    )
    scorer = "sacrebleu" if options.bleurt is None else "bleurt"
    if options.bleurt is not None:
        from mnmt_repro.evaluation.learned_metrics import bleurt_weights

        bleurt_weights(options.bleurt)
    decodings = [content["decoding"] for content in results.load_decodings(options.results)]
    wanted = {spec.run_id for spec in specs}
    _check_settings([d for d in decodings if d["run_id"] in wanted], config.settings)
    decoded = {d["run_id"] for d in decodings if d["scorer"] == scorer}

    return work_through(
        options,
        specs,
        stored,
        todo=[s for s in specs if s.run_id in stored and s.run_id not in decoded],
        needs=lambda spec: [spec],
        verb="decode",
        what=lambda spec: "",
        work=partial(decode_in_worker, config=config, bleurt=options.bleurt),
        store=lambda content: results.write_decoding(content, root=options.results),
        seconds=SECONDS,
    )


def _check_settings(decodings: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Refuse to mix: one cohort is decoded in one way."""
    from mnmt_repro.results.decodings import in_words

    for decoding in decodings:
        if decoding["settings"] != settings:
            raise InputError(
                f"run {decoding['run_id']} has been decoded with {in_words(decoding['settings'])}, "
                f"not with {in_words(settings)}; decode all runs of a cohort alike (--sentences)"
            )
