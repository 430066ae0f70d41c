"""`attainability`: what each rule would say if the paper were right, and if it were not."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.options import add_command, check_count
from mnmt_repro.repository import ROOT

if TYPE_CHECKING:
    from mnmt_repro.claims.attainability import Attainability
    from mnmt_repro.claims.evidence import Evidence
    from mnmt_repro.claims.schema import Claim, Scope


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "attainability",
        "simulate which verdicts each rule would give if the paper were right and if it were not, "
        "and store the shares; simulations that are stored and current are kept",
        examples=[
            "mnmt-repro attainability --dry-run",
            "mnmt-repro attainability --only B6",
            "mnmt-repro attainability --only B6 --fresh",
            "mnmt-repro attainability --only A7 --unexplained 0.003",
            "mnmt-repro attainability --only A14 --more-seeds 4",
        ],
        act=act,
    )
    parser.add_argument("--only", metavar="ID", help="simulate this claim alone, such as B6")
    parser.add_argument(
        "--draws", type=int, help="simulated data sets for each truth (default: 400)"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--fresh", action="store_true", help="simulate again what is stored")
    parser.add_argument(
        "--unexplained",
        type=float,
        metavar="SHARE",
        help="of a grid's claim: scatter the losses besides, so that no law explains this share of "
        "a curve's variance; print the shares and store nothing",
    )
    parser.add_argument(
        "--more-seeds",
        type=float,
        metavar="TIMES",
        help="of a grid's claim: as if each cell had so many times as many seeds; print the shares "
        "and store nothing",
    )
    parser.add_argument("--dry-run", action="store_true", help="list what would be simulated")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="top folder of the checkout (default: this one)"
    )


def act(options: argparse.Namespace) -> int:
    """Simulate what is missing, and store each result when it is there."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from tqdm import tqdm

    from mnmt_repro.analysis.intervals import NoRowsYet
    from mnmt_repro.claims import load_claims
    from mnmt_repro.claims.attainability import SIMULATORS, WORLD_DRAWS, GridData
    from mnmt_repro.claims.report import CLAIMS, stored_evidence
    from mnmt_repro.claims.simulations import read_simulations, simulable, write_simulation
    from mnmt_repro.errors import InputError

    draws = WORLD_DRAWS if options.draws is None else options.draws
    check_count(draws, "--draws", "data sets")
    claims = load_claims(options.root / CLAIMS)
    evidence = stored_evidence(options.root)
    share = options.unexplained
    if share is not None and not 0 <= share < 1:
        raise InputError(f"--unexplained {share:g}: give a share from 0 to below 1")
    times = options.more_seeds
    if times is not None and not times > 0:
        raise InputError(f"--more-seeds {times:g}: give a number above 0")
    given = {"unexplained": share, "seeds": times}
    besides = {name: value for name, value in given.items() if value is not None}
    kept = not (options.fresh or besides)
    known = read_simulations(options.root, claims, evidence) if kept else {}
    every = simulable(claims)
    if besides:
        every = [each for each in every if SIMULATORS[each[0].function] is GridData]
    if options.only is not None:
        names = ", ".join(dict.fromkeys(claim.id for claim, _ in every))
        every = [(claim, scope) for claim, scope in every if claim.id == options.only]
        if not every:
            raise InputError(f"--only {options.only}: no such claim to simulate; there are {names}")
    missing = [(c, s) for c, s in every if (c.id, s.name) not in known]
    if options.dry_run:
        for claim, scope in missing:
            print(f"{claim.id}, {scope.name}")
        print(f"{len(missing)} of {len(every)} are missing")
        return 0
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        tasks = {
            pool.submit(_simulate, options.root, claim, scope, draws, besides): (claim, scope)
            for claim, scope in missing
        }
        for task in tqdm(as_completed(tasks), total=len(tasks), desc="simulations", disable=None):
            claim, scope = tasks[task]
            try:
                found = task.result()
            except NoRowsYet as reason:
                print(f"{claim.id}, {scope.name}: not simulated: {reason}", file=sys.stderr)
                continue
            if not besides:
                write_simulation(options.root, claim, scope, evidence, found)
            print(f"{claim.id}, {scope.name}: {found}", flush=True)
    return 0


@cache
def _evidence(root: Path) -> Evidence:
    """The stored rows, read once by each worker."""
    from mnmt_repro.claims.report import stored_evidence

    return stored_evidence(root)


def _simulate(
    root: Path, claim: Claim, scope: Scope, draws: int, besides: dict[str, float]
) -> Attainability:
    from mnmt_repro.claims.attainability import attainability

    return attainability(claim, scope, _evidence(root), draws=draws, besides=besides)
