"""What `sweep` says of runs whose checkpoints are not on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mnmt_repro.experiments.spec import RunSpec

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
