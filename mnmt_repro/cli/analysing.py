"""`sweep --analyse`: what training on changed in the finished runs of a cohort."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mnmt_repro.cli.checkpoints import tell_absent, work_through
from mnmt_repro.errors import InputError
from mnmt_repro.runs.parents import with_parents
from mnmt_repro.runs.spec import RunSpec

SECONDS = 60.0  # that a run takes on one thread, on the average of the mini tier


def analyse_runs(
    options: argparse.Namespace, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
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
    from mnmt_repro.cohorts.analysed import analyses_of, scored_by_sentence
    from mnmt_repro.results import analyses, sentences
    from mnmt_repro.runs.analysing import analyse_in_worker
    from mnmt_repro.runs.finished import without_checkpoint

    root = results.results_root(options.results)
    specs = [spec for spec in specs if analyses_of(spec) or scored_by_sentence(spec)]
    finished = [spec for spec in specs if spec.run_id in stored]

    def lacking(file: Any) -> frozenset[str]:
        paths = {spec.run_id: file.path_of(root, spec.corpus, spec.run_id) for spec in finished}
        return frozenset(run_id for run_id, path in paths.items() if not path.exists())

    names = {spec.run_id: analyses_of(spec) for spec in finished}
    analysed = {run_id: names[run_id] for run_id in lacking(analyses) if names[run_id]}
    scored = lacking(sentences) & {s.run_id for s in finished if scored_by_sentence(s)}
    todo = [spec for spec in finished if spec.run_id in analysed.keys() | scored]
    there = [s for s in todo if not without_checkpoint(list(with_parents([s])), options.runs)]
    absent = without_checkpoint(
        list({s.run_id: s for s in with_parents(todo)}.values()), options.runs
    )
    print(
        f"{len(specs)} runs: {len(finished)} trained, {len(finished) - len(todo)} analysed before, "
        f"{len(there)} to analyse, {len(todo) - len(there)} for want of a checkpoint not"
    )
    tell_absent(absent, options, "analyse")
    if options.dry_run:
        for spec in there:
            made = analysed.get(spec.run_id, ())
            made += ("losses by sentence",) * (spec.run_id in scored)
            print(f"{spec.run_id}  {spec.label}: {', '.join(made)}")
        return 0
    if todo and not there:
        raise InputError(f"--runs {options.runs}: no run can be analysed with what is here")

    def store(done: dict[str, Any]) -> None:
        corpus = done["corpus"]
        if "sentences" in done:
            losses = results.SentenceLosses(**done["sentences"])
            results.write_sentence_losses(losses, corpus=corpus, root=root)
        if "analyses" in done:
            results.write_analyses(done["analyses"], corpus=corpus, root=root)

    failures = work_through(
        there,
        options,
        stored,
        work=partial(analyse_in_worker, analysed=analysed, scored=scored),
        store=store,
        seconds=SECONDS,
    )
    return 1 if failures or absent or len(finished) < len(specs) else 0
