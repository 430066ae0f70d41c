"""`sweep --analyse`: what training on changed in the finished runs of a cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.checkpoints import work_through
from mnmt_repro.registered import cohorts_module
from mnmt_repro.runs.parents import with_parents
from mnmt_repro.runs.spec import RunSpec

if TYPE_CHECKING:
    from mnmt_repro.cli.sweep import SweepOptions

SECONDS = 60.0  # that a run takes on one thread, on the average of the mini tier


def analyse_runs(
    options: SweepOptions, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
) -> int:
    """Analyse the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.

    Raises
    ------
    InputError
        When there is nothing that can be analysed.
    """
    from mnmt_repro import results
    from mnmt_repro.results import analyses, sentences
    from mnmt_repro.runs.analysing import analyse_in_worker

    cohorts = cohorts_module("analysed")
    analyses_of, scored_by_sentence = cohorts.analyses_of, cohorts.scored_by_sentence
    root = results.results_root(options.results)
    specs = [spec for spec in specs if analyses_of(spec) or scored_by_sentence(spec)]
    finished = [spec for spec in specs if spec.run_id in stored]

    def lacking(file: Any) -> frozenset[str]:
        paths = {spec.run_id: file.path_of(root, spec.corpus, spec.run_id) for spec in finished}
        return frozenset(run_id for run_id, path in paths.items() if not path.exists())

    names = {spec.run_id: analyses_of(spec) for spec in finished}
    analysed = {run_id: names[run_id] for run_id in lacking(analyses) if names[run_id]}
    scored = lacking(sentences) & {s.run_id for s in finished if scored_by_sentence(s)}

    def made(spec: RunSpec) -> str:
        names = analysed.get(spec.run_id, ())
        return ": " + ", ".join((*names, *("losses by sentence",) * (spec.run_id in scored)))

    def store(done: dict[str, Any]) -> None:
        corpus = done["corpus"]
        if "sentences" in done:
            losses = results.SentenceLosses(**done["sentences"])
            results.write_sentence_losses(losses, corpus=corpus, root=root)
        if "analyses" in done:
            results.write_analyses(done["analyses"], corpus=corpus, root=root)

    return work_through(
        options,
        specs,
        stored,
        todo=[spec for spec in finished if spec.run_id in analysed.keys() | scored],
        needs=lambda spec: with_parents([spec]),
        verb="analyse",
        what=made,
        work=partial(analyse_in_worker, analysed=analysed, scored=scored),
        store=store,
        seconds=SECONDS,
    )
