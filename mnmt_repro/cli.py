"""The command line, `mnmt-repro`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mnmt_repro import __version__
from mnmt_repro.errors import InputError


def _sweep(options: argparse.Namespace) -> int:
    from mnmt_repro import results
    from mnmt_repro.experiments.cohorts import COHORTS, get_cohort
    from mnmt_repro.experiments.sweep import Estimate, process_pool, sweep

    if not options.names:
        for cohort in COHORTS:
            print(f"{cohort.name:20} {len(list(cohort.runs())):4} runs  {cohort.about}")
        return 0
    specs = [spec for name in options.names for spec in get_cohort(name).runs()]
    if options.only_seed is not None:
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


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="mnmt-repro",
        description="Scaling laws for multilingual translation, and upgrades of trained models.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "sweep",
        help="run what is missing of a declared grid",
        description="Run what is missing of one or more cohorts; without a name, list them.",
        epilog="example: mnmt-repro sweep webtech-en-dezh --workers 2 --dry-run",
    )
    command.add_argument("names", nargs="*", metavar="COHORT", help="cohorts, in this order")
    command.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    command.add_argument("--dry-run", action="store_true", help="list runs and estimated times")
    command.add_argument("--only-seed", type=int, help="only the runs with this seed")
    command.add_argument("--runs", type=Path, default=Path("runs"), help="folder of checkpoints")
    command.add_argument("--results", type=Path, default=None, help="folder of the results store")
    command.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    command.set_defaults(act=_sweep)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = build_parser().parse_args(arguments)
    try:
        return options.act(options)
    except InputError as error:
        print(f"mnmt-repro: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mnmt-repro: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
