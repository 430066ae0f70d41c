"""`sweep --decode` and `sweep --analyse`: work with the checkpoints of a cohort's finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mnmt_repro.cli.sweep import SweepOptions
from mnmt_repro.declared import cohorts_module
from mnmt_repro.errors import InputError, tell
from mnmt_repro.runs.order import with_parents
from mnmt_repro.runs.spec import RunSpec


def work_through(
    options: SweepOptions,
    specs: Sequence[RunSpec],
    stored: Mapping[str, Any],
    *,
    verb: str,
    todo: Mapping[str, str],
    needs: Callable[[RunSpec], Iterable[RunSpec]],
    make: Callable[..., dict[str, Any]],
    store: Callable[[dict[str, Any]], object],
) -> int:
    """Work with the checkpoint of each finished run; 1 where it is not done for all of `specs`.

    Parameters
    ----------
    stored
        Run id to what the store says of the run.
    verb
        What is done: ``"decode"``.
    todo
        Ids of finished runs for which it is not done, with what ``--dry-run`` says of each.
    needs
        The runs without whose checkpoints it cannot be done for a run.
    make
        Called with a run, its folder, what the store says of it and the device; picklable.
    store
        Called with what was made.

    Raises
    ------
    InputError
        When it can be done for no run that lacks it.
    """
    from mnmt_repro.runs.finished import without_checkpoint
    from mnmt_repro.runs.sweep import executor_of, sweep

    mine = [spec for spec in specs if spec.run_id in todo]
    needed = {spec.run_id: spec for each in mine for spec in needs(each)}
    absent = {spec.run_id: spec for spec in without_checkpoint([*needed.values()], options.runs)}
    there = [spec for spec in mine if not {each.run_id for each in needs(spec)} & absent.keys()]
    print(
        f"{len(specs)} runs: {len(stored)} trained, {len(stored) - len(todo)} {verb}d before, "
        f"{len(there)} to {verb}, {len(todo) - len(there)} without a checkpoint in {options.runs}"
    )
    if absent:
        first = next(iter(absent.values()))
        tell(
            f"no checkpoint in {options.runs} of {len(absent)} run(s), such as {first.run_id} "
            f"{first.label}; name their folder by --runs, or train them again with `mnmt-repro "
            f"sweep {' '.join(options.names)} --runs {options.runs} --results EMPTY`"
        )
    if options.dry_run:
        for spec in there:
            print(f"{spec.run_id}  {spec.label}{todo[spec.run_id]}")
        return 0
    if todo and not there:
        raise InputError(f"--runs {options.runs}: no run to {verb} has its checkpoints here")

    def job(spec: RunSpec) -> Callable[[], dict[str, Any]]:
        folder = options.runs / spec.run_id
        return partial(make, spec, folder, stored[spec.run_id], device=options.device)

    with executor_of(options.executor, options.workers, options.runs) as executor:
        failures = sweep(
            there,
            is_done=lambda spec: False,
            store=store,
            runs_folder=options.runs,
            executor=executor,
            work=job,
        )
    return 1 if failures or absent or len(stored) < len(specs) else 0


def analyse_runs(options: SweepOptions, specs: Sequence[RunSpec]) -> int:
    """Analyse the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Raises
    ------
    InputError
        When there is nothing that can be analysed.
    """
    from mnmt_repro import results
    from mnmt_repro.results.analyses import path_of
    from mnmt_repro.runs.analysing import analyse
    from mnmt_repro.runs.sweep import stored_runs

    cohorts = cohorts_module("analysed")
    root = results.results_root(options.results)
    names = {spec.run_id: each for spec in specs if (each := cohorts.analyses_of(spec))}
    specs = [spec for spec in specs if spec.run_id in names]
    stored, corpora = stored_runs(specs, root), {spec.run_id: spec.corpus for spec in specs}
    return work_through(
        options,
        specs,
        stored,
        verb="analyse",
        todo={
            run_id: f": {', '.join(names[run_id])}"
            for run_id in stored
            if not path_of(root, corpora[run_id], run_id).exists()
        },
        needs=lambda spec: with_parents([spec]),
        make=partial(analyse, names=names),
        store=lambda done: results.write_analyses(done, corpus=corpora[done["run_id"]], root=root),
    )


def decode_runs(options: SweepOptions, specs: Sequence[RunSpec]) -> int:
    """Decode the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Raises
    ------
    InputError
        When the cohort has been decoded with other settings, BLEURT's weights are not where they
        should be, or there is nothing that can be decoded.
    """
    from mnmt_repro import results
    from mnmt_repro.results.decodings import in_words
    from mnmt_repro.runs.decoding import SENTENCES, decode, settings_of
    from mnmt_repro.runs.sweep import stored_runs

    sentences = options.sentences or SENTENCES
    settings = settings_of(sentences)
    if options.bleurt is not None:
        from mnmt_repro.evaluation.learned_metrics import bleurt_weights

        bleurt_weights(options.bleurt)
    scorer = "sacrebleu" if options.bleurt is None else "bleurt"
    stored = stored_runs(specs, results.results_root(options.results))
    todo = dict.fromkeys(stored, "")
    for content in results.load_decodings(options.results):
        decoding = content["decoding"]
        if decoding["run_id"] in stored and decoding["settings"] != settings:
            both = f"{in_words(decoding['settings'])}, not with {in_words(settings)}"
            raise InputError(f"run {decoding['run_id']}: was decoded with {both}; see --sentences")
        if decoding["scorer"] == scorer:
            todo.pop(decoding["run_id"], None)
    return work_through(
        options,
        specs,
        stored,
        verb="decode",
        todo=todo,
        needs=lambda spec: [spec],
        make=partial(decode, sentences=sentences, bleurt=options.bleurt),
        store=lambda content: results.write_decoding(content, root=options.results),
    )
