"""`sweep`: run what is missing of a declared grid; decode or analyse what is finished of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.choices import option, setting
from mnmt_repro.cli.exclusions import of_sweep, refuse
from mnmt_repro.cli.options import add_command, check_device, chosen
from mnmt_repro.errors import InputError
from mnmt_repro.registered import cohorts_module
from mnmt_repro.runs.spec import RunSpec

NOT_RUN = {
    "gpu": "for one large GPU, declared and not run",
    "paper": "the published settings, declared and not run; the published text is not public, and "
    "ours is less than a hundredth of it",
}
"""Tiers of which no rows are stored."""


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """What `sweep` and `retrain` share: where runs are trained, and what with."""

    workers: int = setting("processes, one thread each", 2)
    runs: Path = setting("folder of checkpoints", Path("runs"))
    results: Path | None = setting("folder of the results store (default: data/results)")
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")

    def check(self) -> None:
        """Refuse a number of processes below 1."""
        if self.workers < 1:
            raise InputError(f"--workers {self.workers}: give a number of processes, 1 or more")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PoolOptions):
    """The options of `sweep`."""

    names: tuple[str, ...] = field(
        metadata=option("cohorts, in this order", flags=("names",), nargs="*", metavar="COHORT")
    )
    tier: Literal["mini", "steady", "gpu", "paper"] = setting(
        "sizes, budgets and text; " + "; ".join(f"{k}: {v}" for k, v in NOT_RUN.items()), "mini"
    )
    dry_run: bool = setting("list runs and estimated times", False)
    only_seed: int | None = setting("only the runs with this seed")
    decode: bool = setting(
        "translate the test sets with the checkpoints of all finished runs, and store BLEU, chrF, "
        "chrF++ and spBLEU",
        False,
    )
    analyse: bool = setting(
        "store what training on changed in the weights of all finished runs of Paper B, and their "
        "losses on single sentences",
        False,
    )
    sentences: int | None = setting(
        "with --decode: of each test set, at most (default: 100 of software25's, else 500)",
    )
    bleurt: Path | None = setting(
        "with --decode: score with BLEURT in place of the others, by the weights in FOLDER",
        metavar="FOLDER",
    )


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "sweep",
        "run what is missing of one or more cohorts, or decode or analyse their finished runs; "
        "without a name, list them",
        examples=[
            "mnmt-repro sweep",
            "mnmt-repro sweep webtech-en-dezh --dry-run",
            "mnmt-repro sweep webtech-en-dezh conlang-sim0 --workers 2",
            "mnmt-repro sweep webtech-en-defr --decode",
            "mnmt-repro sweep software25-table3 --analyse",
            "mnmt-repro sweep conlang-sim0 --tier gpu --workers 12 --device cuda",
        ],
        act=act,
        options=SweepOptions,
    )


def act(options: SweepOptions) -> int:
    """List cohorts or missing runs, or execute them; 1 where a run failed."""
    from mnmt_repro import results
    from mnmt_repro.cli.retrain import keep_repeat
    from mnmt_repro.runs.parents import plan
    from mnmt_repro.runs.sweep import Estimate, process_pool, sweep

    options.check()
    catalogue = cohorts_module("catalogue")
    refuse(of_sweep(options), chosen(options))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a sweep starts its own processes; torchrun is for a single `train`")
    if not options.names:
        for cohort in catalogue.declared(options.tier):
            count = len(list(cohort.runs()))
            print(f"{cohort.tier:5}  {cohort.name:20} {count:4} runs  {cohort.about}")
        if options.tier in NOT_RUN:
            print(f"{options.tier}: {NOT_RUN[options.tier]}")
        return 0
    cohorts = [catalogue.find_cohort(name, options.tier) for name in options.names]
    specs = [spec for cohort in cohorts for spec in cohort.runs()]
    specs = list({spec.run_id: spec for spec in specs}.values())  # cohorts share runs
    if options.only_seed is not None:
        seeds = sorted({spec.seed for spec in specs})
        if options.only_seed not in seeds:
            raise InputError(f"--only-seed {options.only_seed}: the seeds there are {seeds}")
        specs = [spec for spec in specs if spec.seed == options.only_seed]
    stored = {run["run"]["run_id"]: run["run"] for run in results.load_runs(options.results)}
    if not options.dry_run:
        check_device(options.device)
    if options.decode:
        from mnmt_repro.cli.decoding import decode_runs

        wanted = {spec.run_id for cohort in cohorts for spec in cohort.decoded()}
        return decode_runs(options, [s for s in specs if s.run_id in wanted], stored)
    if options.analyse:
        from mnmt_repro.cli.analysing import analyse_runs

        return analyse_runs(options, specs, stored)
    # By the speed of the finished ones among these runs, else by that of all declared ones.
    known = [spec for spec in specs if spec.run_id in stored]
    known = known or [s for s in catalogue.runs_of(options.tier) if s.run_id in stored]
    estimate = Estimate.from_runs((spec, stored[spec.run_id]["wall_seconds"]) for spec in known)
    missing = [spec for spec in specs if spec.run_id not in stored]
    tasks = plan(missing, frozenset(stored), options.runs)
    seconds = {task.spec.run_id: estimate.seconds_left(task, tasks) for task in tasks}
    if options.dry_run:
        places = catalogue.places(options.tier)
        for task in tasks:
            name = _name(task.spec, options.names, places)
            why = "  (for its weights only)" if task.only_weights else ""
            minutes = seconds[task.spec.run_id] / 60
            print(f"{task.spec.run_id}  {minutes:5.1f} min  {name}{task.spec.label}{why}")
    hours = sum(seconds.values()) / options.workers / 3600
    added = len(tasks) - len(missing)
    parents = f" and {added} that they begin with" if added else ""
    print(
        f"{len(missing)} of {len(specs)} runs are missing{parents}: "
        f"about {hours:.1f} hours on {options.workers} worker(s)",
        flush=True,
    )
    if options.tier in NOT_RUN and not known:
        print(f"at the speed of CPU threads; {options.tier}: {NOT_RUN[options.tier]}")
    if options.dry_run:
        return 0
    with process_pool(options.workers) as executor:
        failures = sweep(
            specs,
            is_done=lambda spec: spec.run_id in stored,
            store=lambda done: results.write_run(**done, root=options.results),
            repeated=lambda done: keep_repeat(done, root=options.results, required=True),
            among=catalogue.runs_of("mini", "steady"),
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            at_once=options.workers,
            estimate=estimate,
        )
    return 1 if failures else 0


def _name(
    spec: RunSpec, cohorts: Sequence[str], places: Mapping[tuple[str, str], tuple[str, float]]
) -> str:
    """What the first of the cohorts that names a run calls it; empty for a cell of a grid."""
    found = (places.get((spec.config_hash, cohort)) for cohort in cohorts)
    name, share = next(filter(None, found), ("", 1.0))
    return f"{name} at {share:.0%}: " if name else ""
