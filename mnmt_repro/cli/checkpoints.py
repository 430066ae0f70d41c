"""Work with checkpoints of finished runs, and what `sweep` says where there are none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mnmt_repro.runs.spec import RunSpec

SHOWN = 5  # runs named of a longer list


def tell_absent(absent: Sequence[RunSpec], options: argparse.Namespace, then: str) -> None:
    """Name the runs without a checkpoint, and say how to come by one; nothing where none is absent.

    Parameters
    ----------
    options
        Of the command `sweep`.
    then
        What the checkpoints are for: ``"decode"``.
    """
    if not absent:
        return
    for spec in absent[:SHOWN]:
        print(f"  {spec.run_id}  {spec.label}", file=sys.stderr)
    if len(absent) > SHOWN:
        print(f"  and {len(absent) - SHOWN} more", file=sys.stderr)
    print(
        f"no checkpoint in {options.runs} of the run(s) above; the store keeps scores, not "
        "weights. Give --runs the folder that they were trained in, or train them again with "
        f"`mnmt-repro sweep {' '.join(options.names)} --runs {options.runs} --results FOLDER`, "
        f"FOLDER being an empty one, and then {then}",
        file=sys.stderr,
    )


def work_through(
    specs: Sequence[RunSpec],
    options: argparse.Namespace,
    stored: Mapping[str, Mapping[str, Any]],
    *,
    work: Callable[..., dict[str, Any]],
    store: Callable[[dict[str, Any]], object],
    seconds: float,
) -> list[str]:
    """Do some work with the checkpoint of each run, and store what comes of it.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.
    work
        As `sweep.sweep` takes it, with a further argument `runs`: of each run what the store says
        that its checkpoint is held against.
    seconds
        That a run takes on one thread, on the average.

    Returns
    -------
    One line for each run that failed.
    """
    from mnmt_repro.runs.sweep import Estimate, process_pool, sweep

    keep = ("steps", "vocabulary_hash")
    about = {spec.run_id: {name: stored[spec.run_id][name] for name in keep} for spec in specs}
    with process_pool(options.workers) as executor:
        return sweep(
            specs,
            is_done=lambda spec: False,
            store=store,
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            estimate=Estimate.from_runs((spec, seconds) for spec in specs),
            work=partial(work, runs=about),
        )
