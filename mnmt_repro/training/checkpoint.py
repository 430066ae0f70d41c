"""Checkpoints: one safetensors file a checkpoint, weights, optimiser and position together."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.atomic import write_with
from mnmt_repro.corpora.batches import Position
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer


@dataclass
class Progress:
    """Where a run stands, apart from its tensors."""

    step: int = 0
    target_tokens: int = 0  # real target tokens trained on, all pairs
    pair_tokens: list[int] = field(default_factory=list)  # the same for each pair of the mixture
    pair_sentences: list[int] = field(default_factory=list)
    window: int = 0  # position of the stream
    index: int = 0
    seconds: float = 0.0
    best: float | None = None  # lowest mean validation loss so far
    curve: list[dict[str, Any]] = field(default_factory=list)
    behind: int | None = 0  # steps of the learning-rate schedule before the first; None: constant

    @property
    def position(self) -> Position:
        return Position(self.window, self.index)


def save_checkpoint(
    path: Path,
    model: Transformer,
    progress: Progress,
    *,
    identity: str,
    optimiser: torch.optim.Optimizer | None = None,
) -> None:
    """Write a checkpoint, whole or not at all.

    Parameters
    ----------
    identity
        What the run is (a hash of its configuration and data); resuming compares it.
    optimiser
        Left out of a checkpoint that only serves its weights.
    """
    tensors: dict[str, Tensor] = {f"model.{k}": v for k, v in model.state_dict().items()}
    if optimiser is not None:
        tensors["random_state"] = torch.get_rng_state()
        for index, state in optimiser.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimiser.{index}.{name}"] = torch.as_tensor(value)
    metadata = {
        "model": json.dumps(asdict(model.config)),
        "progress": json.dumps(asdict(progress)),
        "identity": identity,
    }
    write_tensors(path, tensors, metadata)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file, whole or not at all, without a copy of the tensors in memory."""
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_with(path, lambda file: save_file(whole, file.name, dict(metadata)))


def copy_checkpoint(source: Path, target: Path, *, identity: str) -> None:
    """Write `source` to `target` as the checkpoint of another run, whole or not at all."""
    with safe_open(str(source), framework="pt") as file:
        metadata = file.metadata() | {"identity": identity}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    write_tensors(target, tensors, metadata)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint as read: tensors on the CPU, and where the run stood."""

    config: ModelConfig
    weights: Mapping[str, Tensor]
    optimiser: dict[int, dict[str, Tensor]]
    random_state: Tensor | None
    progress: Progress
    identity: str

    @classmethod
    def of(cls, model: Transformer, *, steps: int = 0) -> Checkpoint:
        """A model that another program has trained, without its optimiser's state.

        Parameters
        ----------
        steps
            Steps of the learning-rate schedule that it has had.
        """
        return cls(
            config=model.config,
            weights=model.state_dict(),
            optimiser={},
            random_state=None,
            progress=Progress(step=steps),
            identity="",
        )

    def model(self) -> Transformer:
        """Build the model with these weights."""
        model = Transformer(self.config)
        model.load_state_dict(self.weights)
        return model


def read_progress(path: Path | str) -> Progress:
    """Where the run of a checkpoint stood, read without its tensors.

    Raises
    ------
    InputError
        As `load_checkpoint`.
    """
    with _opened(path) as file:
        return _of_metadata(path, file.metadata())[1]


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    InputError
        When the file is missing, truncated, or not a checkpoint of this package.
    """
    with _opened(path) as file:
        metadata = file.metadata()
        config, progress = _of_metadata(path, metadata)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    optimiser: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            optimiser.setdefault(int(index), {})[key] = value
    return Checkpoint(
        config=config,
        weights={k[len("model.") :]: v for k, v in tensors.items() if k.startswith("model.")},
        optimiser=optimiser,
        random_state=tensors.get("random_state"),
        progress=progress,
        identity=metadata["identity"],
    )


@contextlib.contextmanager
def _opened(path: Path | str) -> Iterator[Any]:
    try:
        with safe_open(str(path), framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as error:
        then = "; it is damaged: put a whole copy in its place, or remove it and begin again"
        then *= not isinstance(error, OSError)
        raise InputError(f"cannot read the checkpoint {path}: {error}{then}") from error


def _of_metadata(
    path: Path | str, metadata: Mapping[str, str] | None
) -> tuple[ModelConfig, Progress]:
    if not metadata or not {"model", "progress", "identity"} <= set(metadata):
        raise InputError(f"{path} is a safetensors file, but not a checkpoint of mnmt-repro")
    try:
        config = ModelConfig(**json.loads(metadata["model"]))
        return config, Progress(**json.loads(metadata["progress"]))
    except (TypeError, ValueError) as error:  # a field that this version does not have
        raise InputError(
            f"{path} was written by another version of mnmt-repro ({error}); read it with that one"
        ) from error
