"""`sweep`: run what is missing of a declared grid."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mnmt_repro.commands.options import add_command
from mnmt_repro.errors import InputError


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "sweep",
        "run what is missing of one or more cohorts; without a name, list them",
        examples=[
            "mnmt-repro sweep",
            "mnmt-repro sweep webtech-en-dezh --dry-run",
            "mnmt-repro sweep webtech-en-dezh conlang-sim0 --workers 2",
        ],
        act=act,
    )
    parser.add_argument("names", nargs="*", metavar="COHORT", help="cohorts, in this order")
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--dry-run", action="store_true", help="list runs and estimated times")
    parser.add_argument("--only-seed", type=int, help="only the runs with this seed")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of checkpoints")
    parser.add_argument(
        "--results", type=Path, help="folder of the results store (default: data/results)"
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")


def act(options: argparse.Namespace) -> int:
    """List cohorts or missing runs, or execute them; 1 where a run failed."""
    from mnmt_repro import results
    from mnmt_repro.experiments.cohorts import COHORTS, get_cohort
    from mnmt_repro.experiments.sweep import Estimate, process_pool, sweep

    if options.workers < 1:
        raise InputError(f"--workers {options.workers}: give a number of processes, 1 or more")
    if not options.names:
        for cohort in COHORTS:
            print(f"{cohort.name:20} {len(list(cohort.runs())):4} runs  {cohort.about}")
        return 0
    specs = [spec for name in options.names for spec in get_cohort(name).runs()]
    specs = list({spec.run_id: spec for spec in specs}.values())  # cohorts share runs
    if options.only_seed is not None:
        seeds = sorted({spec.seed for spec in specs})
        if options.only_seed not in seeds:
            raise InputError(f"--only-seed {options.only_seed}: the seeds there are {seeds}")
        specs = [spec for spec in specs if spec.seed == options.only_seed]
    stored = {run["run"]["run_id"]: run["run"] for run in results.load_runs(options.results)}
    estimate = Estimate.from_runs(
        (spec, stored[spec.run_id]["wall_seconds"]) for spec in specs if spec.run_id in stored
    )
    if options.dry_run:
        missing = [spec for spec in specs if spec.run_id not in stored]
        for spec in missing:
            print(f"{spec.run_id}  {estimate.seconds(spec) / 60:5.1f} min  {spec.label}")
        hours = sum(map(estimate.seconds, missing)) / options.workers / 3600
        print(
            f"{len(missing)} of {len(specs)} runs are missing: "
            f"about {hours:.1f} hours on {options.workers} worker(s)"
        )
        return 0
    with process_pool(options.workers) as executor:
        failures = sweep(
            specs,
            is_done=lambda spec: spec.run_id in stored,
            store=lambda done: results.write_run(**done, root=options.results),
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            estimate=estimate,
        )
    return 1 if failures else 0
