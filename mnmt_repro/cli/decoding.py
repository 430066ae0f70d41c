"""`sweep --decode`: scores of translations for the finished runs of a cohort."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mnmt_repro.cli.checkpoints import tell_absent, work_through
from mnmt_repro.errors import InputError
from mnmt_repro.runs.spec import RunSpec

SECONDS = 15.0  # that a run takes on one thread, on the average of the mini tier


def decode_runs(
    options: argparse.Namespace, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
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
    from mnmt_repro.runs.finished import without_checkpoint

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

    finished = [spec for spec in specs if spec.run_id in stored]
    todo = [spec for spec in finished if spec.run_id not in decoded]
    absent = without_checkpoint(todo, options.runs)
    there = [spec for spec in todo if spec not in absent]
    print(
        f"{len(specs)} runs: {len(finished)} trained, {len(finished) - len(todo)} decoded before, "
        f"{len(there)} to decode, {len(absent)} without a checkpoint in {options.runs}"
    )
    tell_absent(absent, options, "decode")
    if options.dry_run:
        for spec in there:
            print(f"{spec.run_id}  {spec.label}")
        return 0
    if todo and not there:
        raise InputError(f"--runs {options.runs}: none of the runs to decode has a checkpoint here")
    failures = work_through(
        there,
        options,
        stored,
        work=partial(decode_in_worker, config=config, bleurt=options.bleurt),
        store=lambda content: results.write_decoding(content, root=options.results),
        seconds=SECONDS,
    )
    return 1 if failures or absent or len(finished) < len(specs) else 0


def _check_settings(decodings: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Refuse to mix: one cohort is decoded in one way."""
    from mnmt_repro.results.decodings import in_words

    for decoding in decodings:
        if decoding["settings"] != settings:
            raise InputError(
                f"run {decoding['run_id']} has been decoded with {in_words(decoding['settings'])}, "
                f"not with {in_words(settings)}; decode all runs of a cohort alike (--sentences)"
            )
