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


def checkpoint_path(spec: RunSpec, folder: Path) -> Path:
    """The file with the weights that `spec` ended with, where it was trained in `folder`."""
    return weights_file(folder, spec.training.keep)


def without_checkpoint(specs: Sequence[RunSpec], runs_folder: Path) -> list[RunSpec]:
    """Those of `specs` whose checkpoint is not below `runs_folder`."""
    return [
        spec for spec in specs if not checkpoint_path(spec, runs_folder / spec.run_id).is_file()
    ]


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
    path = checkpoint_path(spec, folder)
    if not path.is_file():
        raise InputError(
            f"{path}: no checkpoint of {spec.label}; the store keeps scores, not weights"
        )
    checkpoint = load_checkpoint(path)
    if checkpoint.identity != spec.identity:
        raise InputError(f"{path}: belongs to run {checkpoint.identity}, not to {spec.identity}")
    progress = checkpoint.progress if path.name == LAST else read_progress(folder / LAST)
    if (stands := progress.step) != run["steps"]:
        raise InputError(
            f"{folder / LAST}: stands at step {stands}, but the stored run has {run['steps']} "
            "steps; train it to its end"
        )
    if (pieces := run_vocabulary(spec).hash) != run["vocabulary_hash"]:
        raise InputError(
            f"{spec.corpus}: its vocabulary has the hash {pieces}, but run {spec.run_id} was "
            f"trained with {run['vocabulary_hash']}; the text or the way pieces are made differ"
        )
    return checkpoint
