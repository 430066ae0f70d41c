"""A longer run starts from a shorter one that differs in nothing but its budget.

The learning rate of a step does not depend on the budget and the stream of batches is a function of
seed and position, so a run of 4M tokens is the beginning of the same run of 8M: going on from its
checkpoint ends with the weights that training from the first step would, bit for bit. Only the
learning curve tells the two apart: it keeps the points of the shorter run as well.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mnmt_repro.experiments.catalogue import COHORTS
from mnmt_repro.experiments.spec import RunSpec
from mnmt_repro.training.checkpoint import copy_checkpoint
from mnmt_repro.training.config import LAST, LOG


@cache
def _declared() -> dict[str, tuple[RunSpec, ...]]:
    found: dict[str, dict[str, RunSpec]] = {}
    for cohort in COHORTS:
        for run in cohort.runs():
            found.setdefault(run.trajectory, {})[run.run_id] = run
    return {name: tuple(runs.values()) for name, runs in found.items()}


def shorter_runs(spec: RunSpec) -> tuple[RunSpec, ...]:
    """Declared runs that are a beginning of `spec`, longest first.

    Where the best weights by validation loss are kept there are none: which points are validated
    depends on the budget.
    """
    if spec.training.keep == "best":
        return ()
    tokens = spec.training.planned_tokens
    runs = [r for r in _declared().get(spec.trajectory, ()) if r.training.planned_tokens < tokens]
    return tuple(sorted(runs, key=lambda run: -run.training.planned_tokens))


def begin_from_shorter(spec: RunSpec, folder: Path) -> None:
    """Give a run that has not begun the checkpoint of a shorter one, where a neighbour holds it.

    Parameters
    ----------
    folder
        The run's own; those of other runs lie beside it under their ids.
    """
    if (folder / LAST).exists():
        return
    for run in shorter_runs(spec):
        neighbour = folder.parent / run.run_id
        if (neighbour / LAST).exists():
            folder.mkdir(parents=True, exist_ok=True)
            if (neighbour / LOG).exists():
                (folder / LOG).write_bytes((neighbour / LOG).read_bytes())
            copy_checkpoint(neighbour / LAST, folder / LAST, identity=spec.run_id)
            return
