"""`sweep`: run what is missing of a grid, declared or a user's; decode or analyse what is there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.cli.options import (
    add_command,
    check_count,
    check_device,
    check_folder,
    chosen,
    refuse_excluded,
)
from mnmt_repro.declared import cohorts_module
from mnmt_repro.errors import InputError, note
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.typed_config import required, setting

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

    workers: int = setting("processes, one thread each", 2)
    runs: Path = setting("folder of checkpoints", Path("runs"))
    results: Path | None = setting(
        "folder of the results store (default: data/results; of a grid of your own `results` "
        "beside its runs)"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PoolOptions):
    """The options of `sweep`."""

    names: tuple[str, ...] = required(
        "cohorts, in this order, or the file of a grid of your own, in YAML: its text (data, "
        "corpus or conlang), sizes, weights, seeds, training",
        flags=("names",),
        nargs="*",
        metavar="COHORT|GRID.yml",
    )
    tier: Literal["mini", "steady", "settled"] = setting("sizes, budgets and text", "mini")
    dry_run: bool = setting("list runs with their size n, and estimated times and memory", False)
    only_seed: int | None = setting("only the runs with this seed")
    array: str | None = setting(
        "only the I-th of N parts of the runs, counted from 1, for an array of cluster jobs that "
        "see the same folders",
        metavar="I/N",
    )
    executor: Literal["local", "submitit", "dask"] = setting(
        "where workers are: processes of this machine, jobs of Slurm (submitit), or those of the "
        "Dask scheduler at $DASK_SCHEDULER_ADDRESS. All must see the same folders",
        "local",
    )
    recompute: bool = setting(
        "see `train --recompute`. A sweep splits no model over GPUs: that is `train --shard`", False
    )
    decode: bool = setting(
        "translate the test sets with the checkpoints of all finished runs, and store BLEU, chrF, "
        "chrF++ and spBLEU",
        False,
    )
    analyse: bool = setting(
        "store how further training changed the weights of all finished runs of Paper B, and their "
        "losses on single sentences",
        False,
    )
    sentences: int | None = setting(
        "with --decode: most sentences of each test set (default: 100 of software25, else 500)",
    )
    bleurt: Path | None = setting(
        "with --decode: score with BLEURT in place of the others, by the weights in FOLDER",
        metavar="FOLDER",
    )


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "sweep",
        examples=[
            "mnmt-repro sweep",
            "mnmt-repro sweep webtech-en-dezh --dry-run",
            "mnmt-repro sweep grid.yml --dry-run",
            "mnmt-repro sweep grid.yml --array $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT",
            "mnmt-repro sweep webtech-en-dezh conlang-sim0 --workers 2",
            "mnmt-repro sweep webtech-en-defr --decode",
            "mnmt-repro sweep software25-table3 --analyse",
            "mnmt-repro sweep conlang-steady --tier steady --workers 12",
        ],
        act=act,
        options=SweepOptions,
    )
    parser.epilog = f"{parser.epilog}\n\n{_GRID}"


def act(options: SweepOptions) -> int:
    """List cohorts or missing runs, or execute them; 1 where a run failed."""
    from mnmt_repro import results
    from mnmt_repro.cli.decode_and_analyse import analyse_runs, decode_runs
    from mnmt_repro.cli.retrain import keep_repeat
    from mnmt_repro.runs.sweep import executor_of, seconds_per_cost_of, store_once, sweep

    check_count(options.workers, "--workers", "processes")
    catalogue = cohorts_module("catalogue")
    own = any(name.endswith((".yml", ".yaml")) for name in options.names)
    refuse_excluded(
        chosen(options),
        ("only_seed decode analyse", own, "{}: is of cohorts; leave it out"),
        ("analyse", options.decode, "{}: not with --decode; leave one of the two out"),
    )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a sweep starts its own processes; torchrun is for a single `train`")
    if not options.names:
        for cohort in catalogue.declared(options.tier):
            count = len(list(cohort.runs()))
            print(f"{cohort.tier:5}  {cohort.name:20} {count:4} runs  {cohort.about}")
        return 0
    if own:
        return _act_on_file(options)
    cohorts = [catalogue.find_cohort(name, options.tier) for name in options.names]
    specs = [spec for cohort in cohorts for spec in cohort.runs()]
    specs = list({spec.run_id: spec for spec in specs}.values())  # cohorts share runs
    if options.only_seed is not None:
        seeds = sorted({spec.seed for spec in specs})
        if options.only_seed not in seeds:
            raise InputError(f"--only-seed {options.only_seed}: the seeds there are {seeds}")
        specs = [spec for spec in specs if spec.seed == options.only_seed]
    specs = specs[_part(options.array)]
    stored = {run["run"]["run_id"]: run["run"] for run in results.load_runs(options.results)}
    _check_machine(options)
    if options.decode:
        wanted = {spec.run_id for cohort in cohorts for spec in cohort.decoded()}
        return decode_runs(options, [s for s in specs if s.run_id in wanted], stored)
    if options.analyse:
        return analyse_runs(options, specs, stored)
    # By the speed of the finished ones among these runs, else by that of all declared ones.
    known = [spec for spec in specs if spec.run_id in stored]
    known = known or [s for s in catalogue.runs_of(options.tier) if s.run_id in stored]
    seconds_per_cost = seconds_per_cost_of(
        (spec, stored[spec.run_id]["wall_seconds"]) for spec in known
    )
    places = catalogue.places(options.tier)
    names = {spec.run_id: _name(spec, options.names, places) for spec in specs}
    root = results.results_root(options.results)
    _announce(options, specs, frozenset(stored), seconds_per_cost, names, root)
    if options.dry_run:
        return 0
    with executor_of(options.executor, options.workers, options.runs) as executor:
        failures = sweep(
            specs,
            is_done=lambda spec: results.run_file(spec.corpus, spec.run_id, root).exists(),
            store=lambda done: store_once(done, options.results),
            repeated=lambda done: keep_repeat(done, root=options.results, required=True),
            among=catalogue.runs_of(*catalogue.RUN_TIERS),
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            recompute=options.recompute,
            at_once=options.workers,
            seconds_per_cost=seconds_per_cost,
        )
    return 1 if failures else 0


def _act_on_file(options: SweepOptions) -> int:
    """The same for the runs of a user's grid, whose rows go to her store."""
    from mnmt_repro.runs.grid import Grid, GridRuns
    from mnmt_repro.runs.sweep import sweep_grid

    if len(options.names) > 1:
        raise InputError(f"{options.names[1]}: a file of a grid is swept alone; name nothing else")
    grid = Grid.read(options.names[0])
    done = GridRuns(grid=grid, folder=options.runs, results=options.results)
    _check_machine(options)
    try:  # a vocabulary that is trained is kept, so that the sweep after a dry run finds it
        assert len(grid.vocabulary_used)
    except InputError as error:
        raise InputError(f"{options.names[0]}: {error}") from error
    part = _part(options.array)
    stored = frozenset(spec.run_id for spec in grid.runs if done.row(spec).exists())
    _announce(options, grid.runs[part], stored, done.seconds_per_cost, {}, done.store)
    if options.dry_run:
        return 0
    failures = sweep_grid(
        done,
        workers=options.workers,
        executor_name=options.executor,
        part=part,
        device=options.device,
        recompute=options.recompute,
    )
    print(f"rows: {done.store}\nnext: mnmt-repro fit {shlex.quote(str(done.store))}")
    return 1 if failures else 0


def _check_machine(options: SweepOptions) -> None:
    """Refuse a device or a folder that cannot be used; a dry run needs neither."""
    if options.dry_run:
        return
    check_device(options.device)
    check_folder(options.runs, "--runs")
    if options.results is not None:
        check_folder(options.results, "--results")


def _part(array: str | None) -> slice:
    """Which runs `--array` asks for: every N-th, so that each part has models of every size.

    >>> list("abcde")[_part("2/3")], list("abcde")[_part(None)]
    (['b', 'e'], ['a', 'b', 'c', 'd', 'e'])
    """
    if array is None:
        return slice(None)
    number, _, parts = array.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise InputError(f"--array {array}: write I/N, with I from 1 to N, such as 2/4")
    return slice(int(number) - 1, None, int(parts))


def _announce(
    options: SweepOptions,
    specs: Sequence[RunSpec],
    stored: frozenset[str],
    seconds_per_cost: float,
    names: Mapping[str, str],
    store: Path,
) -> None:
    """Say how many runs are missing and what they take; with `--dry-run` of each of them."""
    from mnmt_repro.runs.parents import plan
    from mnmt_repro.runs.sweep import duration, in_bytes, seconds_left

    missing = [spec for spec in specs if spec.run_id not in stored]
    tasks = plan(missing, stored, options.runs)
    seconds = seconds_left(tasks, seconds_per_cost)
    if options.dry_run:
        for task in tasks:
            spec, why = task.spec, "  (for its weights only)" if task.only_weights else ""
            memory = in_bytes(spec.memory(recompute=options.recompute))
            n = parameter_counts(spec.model)["non_embedding"]
            takes = f"{duration(seconds[spec.run_id]):>7}  {memory:>8}"
            print(
                f"{spec.run_id}  n {n:<11,}  {takes}  {names.get(spec.run_id, '')}{spec.label}{why}"
            )
    if not tasks:
        print(f"0 of {len(specs)} runs are missing", flush=True)
        return
    if not store.exists():  # a misspelled one is seen here, before anything is trained
        note(f"a new folder for their rows: {store}")
    time = duration(max(sum(seconds.values()) / options.workers, *seconds.values()))
    most = in_bytes(max(task.spec.memory(recompute=options.recompute) for task in tasks))
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
    found = (places.get((spec.config_hash, cohort)) for cohort in cohorts)
    name, share = next(filter(None, found), ("", 1.0))
    return f"{name} at {share:.0%}: " if name else ""
