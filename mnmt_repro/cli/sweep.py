"""`sweep`: run what is missing of a grid, declared or a user's; decode or analyse what is there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.cli.options import check_device, check_folder
from mnmt_repro.cli.stopping import status, workers_asked_to_stop
from mnmt_repro.declared import cohorts_module
from mnmt_repro.errors import InputError, note
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.typed_config import Count, Few, required, setting

_GRID = """\
a grid of your own, grid.yml:
  data: {eng-deu: talks.tsv, eng-xho: xhosa.tsv}
  sizes: [16, 32, 64, 128]            # widths of the models
  weights: [0, 0.25, 0.5, 0.75, 1]    # of the first pair; the others share the rest
  seeds: [1, 2]
  training: {target_tokens: 6000000, decay_share: 0.3}    # settings of `train`

`help(mnmt_repro.runs.grid.Grid)` in Python explains every key."""


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """What `sweep` and `retrain` share: where runs are trained, and what with."""

    workers: Few = setting("processes, one thread each", 2)
    runs: Path = setting("folder of checkpoints", Path("runs"))
    results: Path | None = setting(
        "folder of the results store (default: data/results, or beside the runs of your own grid)"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PoolOptions):
    """The options of `sweep`."""

    names: tuple[str, ...] = required(
        "cohorts, in this order, or the file of a grid of your own",
        flags=("names",),
        nargs="*",
        metavar="COHORT|GRID.yml",
    )
    tier: Literal["mini", "steady", "settled"] = setting("sizes, budgets and text", "mini")
    dry_run: bool = setting("list runs with their size n, and estimated times and memory", False)
    executor: Literal["local", "submitit", "dask"] = setting(
        "this machine, Slurm (submitit), or the Dask scheduler at $DASK_SCHEDULER_ADDRESS", "local"
    )
    recompute: bool = setting("see `train --recompute`", False)
    decode: bool = setting(
        "translate the test sets with finished runs, and store BLEU, chrF, chrF++ and spBLEU", False
    )
    analyse: bool = setting("store how training on changed the weights of Paper B's runs", False)
    sentences: Count | None = setting(
        "with --decode: most sentences of a test set (default: 500; software25 is stored with 100)"
    )
    bleurt: Path | None = setting(
        "with --decode: score with BLEURT by the weights in this folder", metavar="FOLDER"
    )


EXAMPLES = (
    "mnmt-repro sweep",
    "mnmt-repro sweep grid.yml --dry-run",
    "mnmt-repro sweep webtech-en-dezh conlang-sim0 --workers 2",
    "mnmt-repro sweep webtech-en-defr --decode",
    "mnmt-repro sweep conlang-steady --tier steady --workers 12",
)
MORE = _GRID


def act(options: SweepOptions) -> int:
    """List cohorts or missing runs, or execute them; 1 where a run failed."""
    own = any(name.endswith((".yml", ".yaml")) for name in options.names)
    if own and (options.decode or options.analyse):
        raise InputError("--decode and --analyse are of cohorts; leave them out")
    if options.decode and options.analyse:
        raise InputError("--analyse: not with --decode; leave one of the two out")
    for name in ("sentences", "bleurt"):
        if getattr(options, name) is not None and not options.decode:
            raise InputError(f"--{name}: goes with --decode; add that, or leave --{name} out")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a sweep starts its own processes; torchrun is for a single `train`")
    return _act_on_file(options) if own else _act_on_cohorts(options)


def _act_on_cohorts(options: SweepOptions) -> int:
    """List declared cohorts, or sweep, decode or analyse the runs of those that are named."""
    from mnmt_repro import results
    from mnmt_repro.cli.decode_and_analyse import analyse_runs, decode_runs

    catalogue = cohorts_module("catalogue")
    if not options.names:
        for cohort in catalogue.declared(options.tier):
            count = len(list(cohort.runs()))
            print(f"{cohort.tier:5}  {cohort.name:20} {count:4} runs  {cohort.about}")
        return 0
    cohorts = [catalogue.find_cohort(name, options.tier) for name in options.names]
    specs = [spec for cohort in cohorts for spec in cohort.runs()]
    specs = list({spec.run_id: spec for spec in specs}.values())  # cohorts share runs
    _check_machine(options)
    if options.decode:
        wanted = {spec.run_id for cohort in cohorts for spec in cohort.decoded()}
        return decode_runs(options, [s for s in specs if s.run_id in wanted])
    if options.analyse:
        return analyse_runs(options, specs)
    places = catalogue.places(options.tier)
    names = {spec.run_id: _name(spec, options.names, places) for spec in specs}
    root = results.results_root(options.results)
    among = catalogue.runs_of(*catalogue.RUN_TIERS)
    return _train(options, specs, root, names, among=among)


def _act_on_file(options: SweepOptions) -> int:
    """Sweep the runs of a user's grid, whose rows go to her store."""
    from mnmt_repro.runs.grid import Grid, GridRuns

    if len(options.names) > 1:
        raise InputError(f"{options.names[1]}: a file of a grid is swept alone; name nothing else")
    grid = Grid.read(options.names[0])
    store = GridRuns(grid=grid, folder=options.runs, results=options.results).store
    _check_machine(options)
    try:  # what is trained is kept, so that the sweep after a dry run has it
        grid.prepare()
    except InputError as error:
        raise InputError(f"{options.names[0]}: {error}") from error
    ended = _train(options, grid.runs, store, {}, among=grid.runs, source=grid.source)
    if not (options.dry_run or ended):
        print(f"rows: {store}\nnext: mnmt-repro fit {shlex.quote(str(store))}")
    return ended


def _train(
    options: SweepOptions,
    specs: Sequence[RunSpec],
    store: Path,
    names: Mapping[str, str],
    **which: Any,
) -> int:
    """Train the runs that a store lacks, or list them; 1 where one failed."""
    from mnmt_repro.runs.sweep import executor_of, train_missing

    _announce(options, specs, store, names)
    if options.dry_run:
        return 0
    with (
        workers_asked_to_stop(options.runs) as stop,
        executor_of(options.executor, options.workers, options.runs) as executor,
    ):
        failures = train_missing(
            specs,
            store,
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            recompute=options.recompute,
            at_once=options.workers,
            stop=stop,
            **which,
        )
        return status(stop, bool(failures), options.runs)


def _check_machine(options: SweepOptions) -> None:
    """Refuse a device or a folder that cannot be used; a dry run needs neither."""
    if options.dry_run:
        return
    check_device(options.device)
    check_folder(options.runs, "--runs")
    if options.results is not None:
        check_folder(options.results, "--results")


def _announce(
    options: SweepOptions, specs: Sequence[RunSpec], store: Path, names: Mapping[str, str]
) -> None:
    """Say how many runs are missing and what they take; with `--dry-run` of each of them."""
    from mnmt_repro.runs.order import plan, with_parents
    from mnmt_repro.runs.sweep import (
        duration,
        in_bytes,
        seconds_left,
        seconds_per_cost_of,
        stored_runs,
    )

    stored = stored_runs(with_parents(specs), store)
    missing = [spec for spec in specs if spec.run_id not in stored]
    tasks = plan(missing, frozenset(stored), options.runs)
    seconds = seconds_left(tasks, seconds_per_cost_of(specs, stored))
    memory = {
        task.spec.run_id: task.spec.memory(options.device, recompute=options.recompute)
        for task in tasks
    }
    if options.dry_run:
        for task in tasks:
            spec, why = task.spec, "  (for its weights only)" if task.only_weights else ""
            n = parameter_counts(spec.model)["non_embedding"]
            takes = f"{duration(seconds[spec.run_id]):>7}  {in_bytes(memory[spec.run_id]):>8}"
            print(
                f"{spec.run_id}  n {n:<11,}  {takes}  {names.get(spec.run_id, '')}{spec.label}{why}"
            )
    if not tasks:
        print(f"0 of {len(specs)} runs are missing", flush=True)
        return
    if not store.exists():  # a misspelled one is seen here, before anything is trained
        note(f"a new folder for their rows: {store}")
    time = duration(max(sum(seconds.values()) / options.workers, *seconds.values()))
    most = in_bytes(max(memory.values()))
    added = len(tasks) - len(missing)
    parents = f" and {added} that they begin with" if added else ""
    print(
        f"{len(missing)} of {len(specs)} runs are missing{parents}: about {time} of training on "
        f"{options.workers} worker(s), each of which takes at most {most} for a model",
        flush=True,
    )


def _name(
    spec: RunSpec, cohorts: Sequence[str], places: Mapping[tuple[str, str], tuple[str, float]]
) -> str:
    """What the first of the cohorts that names a run calls it; empty for a cell of a grid."""
    by_cohort = (places.get((spec.config_hash, cohort)) for cohort in cohorts)
    name, share = next(filter(None, by_cohort), ("", 1.0))
    return f"{name} at {share:.0%}: " if name else ""
