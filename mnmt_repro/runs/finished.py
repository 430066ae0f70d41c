"""The checkpoint of a finished run, for whatever is made of it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_repro.errors import InputError
from mnmt_repro.runs.data import run_vocabulary
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.checkpoint import Checkpoint, load_checkpoint, read_progress, weights_file
from mnmt_repro.training.config import LAST


def without_checkpoint(specs: Sequence[RunSpec], runs_folder: Path) -> list[RunSpec]:
    """Those of `specs` whose checkpoint is not below `runs_folder`."""
    keep = [(spec, weights_file(runs_folder / spec.run_id, spec.training.keep)) for spec in specs]
    return [spec for spec, path in keep if not path.is_file()]


def load_finished(spec: RunSpec, folder: Path, run: Mapping[str, Any]) -> Checkpoint:
    """Read the weights that `spec` ended with.

    Parameters
    ----------
    run
        What the store says of the run: its `steps` and `vocabulary_hash`.

    Raises
    ------
    InputError
        When there is no checkpoint, it is another run's or not the finished one, or the text here
        is not what the run was trained on.
    """
    path = weights_file(folder, spec.training.keep)
    if not path.is_file():
        raise InputError(
            f"{path}: no checkpoint of {spec.label}; the store keeps scores, not weights"
        )
    checkpoint = load_checkpoint(path)
    if checkpoint.identity != spec.identity:
        raise InputError(f"{path}: belongs to run {checkpoint.identity}, not to {spec.identity}")
    progress = checkpoint.progress if path.name == LAST else read_progress(folder / LAST)
    if (stands := progress.step) != run["steps"]:
        both = f"stands at step {stands}, but the stored run has {run['steps']} steps"
        raise InputError(f"{folder / LAST}: {both}; train it to its end")
    if (pieces := run_vocabulary(spec).hash) != run["vocabulary_hash"]:
        raise InputError(
            f"{spec.corpus}: its vocabulary has the hash {pieces}, but run {spec.run_id} was "
            f"trained with {run['vocabulary_hash']}; the text or the way pieces are made differ"
        )
    return checkpoint
