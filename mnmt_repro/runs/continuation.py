"""A longer run starts from a shorter one that differs in nothing but its budget.

Before the final decay, the learning rate of a step does not depend on the budget, and the stream of
batches is a function of seed and position. So a run of 8M tokens is the same as one of 4M up to the
step at which the shorter run begins to decay. Starting from the shorter run's checkpoint at that
step (`STEM`; without a decay its last one) ends with the weights that training from the first step
would give, bit for bit. Only the learning curve shows the difference: it also has the points of the
shorter run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mnmt_repro.runs.parents import shorter_runs
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.checkpoint import copy_checkpoint
from mnmt_repro.training.config import LAST, LOG, STEM


def begin_from_shorter(spec: RunSpec, folder: Path, among: Iterable[RunSpec]) -> None:
    """Give a run that has not begun the checkpoint of a shorter one, where a neighbour holds it.

    Parameters
    ----------
    folder
        The run's own; those of other runs lie beside it under their ids.
    among
        Runs of which a shorter one may lie there.
    """
    if (folder / LAST).exists():
        return
    for run in shorter_runs(spec, among):
        neighbour = folder.parent / run.run_id
        checkpoint = neighbour / (STEM if run.training.decay_share else LAST)
        if checkpoint.exists():
            folder.mkdir(parents=True, exist_ok=True)
            if (neighbour / LOG).exists():  # which training cuts to the points of the checkpoint
                (folder / LOG).write_bytes((neighbour / LOG).read_bytes())
            copy_checkpoint(checkpoint, folder / LAST, identity=spec.identity)
            return
