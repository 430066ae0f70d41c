"""Checkpoints: one safetensors file a checkpoint, weights, optimiser and position together."""

from __future__ import annotations

import hashlib
import json
import re
import weakref
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.atomic import write_with
from mnmt_repro.corpora.batches import Position
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training.config import BEST, LAST
from mnmt_repro.training.distributed import processes, whole
from mnmt_repro.typed_config import Amount, Natural, build

_STATE = re.compile(r"optimiser\.(-?\d{1,9})\.(.+)")


@dataclass
class Progress:
    """Where a run stands, apart from its tensors."""

    step: Natural = 0
    target_tokens: Natural = 0  # real target tokens trained on, all pairs
    pair_tokens: list[Natural] = field(default_factory=list)  # the same for each pair
    pair_sentences: list[Natural] = field(default_factory=list)
    window: Natural = 0  # position of the stream
    index: Natural = 0
    seconds: Amount = 0.0
    best: float | None = None  # lowest mean validation loss so far
    curve: list[dict[str, Any]] = field(default_factory=list)
    behind: int | None = 0  # steps of the learning-rate schedule before the first; None: constant
    changed: int | None = None  # window of the stream from which `first_weights` no longer hold

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
    tensors: Mapping[str, Tensor] | None = None,
    more: Mapping[str, str] | None = None,
) -> None:
    """Write a checkpoint, whole or not at all.

    All processes call this with a model that is split over them; the first one writes.

    Parameters
    ----------
    identity
        What the run is (a hash of its configuration and data); resuming compares it.
    optimiser
        Left out of a checkpoint that only serves its weights.
    tensors, more
        What else is kept, as of `upgrading.start.save_upgraded`.
    """
    kept = {f"model.{k}": whole(v) for k, v in model.state_dict().items()} | dict(tensors or {})
    if optimiser is not None:
        kept["random_state"] = torch.get_rng_state()
        for index, state in optimiser.state_dict()["state"].items():
            for name, value in state.items():
                kept[f"optimiser.{index}.{name}"] = whole(torch.as_tensor(value))
    metadata = {
        "model": json.dumps(asdict(model.config)),
        "progress": json.dumps(asdict(progress)),
        "identity": identity,
        **(more or {}),
    }
    if processes().first:
        write_tensors(path, kept, metadata)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file, whole or not at all, without a copy of the tensors in memory.

    Equal tensors and metadata give equal bytes, so that the file's SHA-256 identifies them.

    Raises
    ------
    OSError
        With the file's name, such as when the disk is full.
    """
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}

    def write(file: BinaryIO) -> None:
        save_file(whole, file.name, dict(metadata))
        with open(file.name, "r+b") as written:  # the library may have replaced the file
            length = int.from_bytes(written.read(8), "little")
            header = json.loads(written.read(length))
            # The library orders the tensors, and leaves the metadata in the order of a hash.
            header["__metadata__"] = dict(sorted(metadata.items()))
            text = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
            written.seek(8)
            written.write(text.encode().ljust(length))

    try:
        write_with(path, write)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from error


class TensorFile:
    """A safetensors file, opened once: one that takes its place meanwhile is not seen.

    The library's reader opens a path twice, and may put one file's header to another's tensors. So
    it is given the name of our descriptor, which stays the same file.

    Raises
    ------
    InputError
        When the file is missing or damaged.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self._file = self.path.open("rb")  # noqa: SIM115 (`read` maps it again)
            weakref.finalize(self, self._file.close)
            with self._mapped() as file:
                self.metadata: dict[str, str] = file.metadata() or {}
                self._names = list(file.keys())
            self.read()  # so that none fails later
        except OSError as error:
            raise InputError(f"cannot read the checkpoint {path}: {error.strerror}") from error
        except SafetensorError as error:
            raise damaged(f"cannot read the checkpoint {path}", str(error)) from error

    def _mapped(self) -> Any:
        return safe_open(f"/dev/fd/{self._file.fileno()}", framework="pt")

    def read(self, *names: str) -> dict[str, Tensor]:
        """Tensors of these names, or all, mapped from the file and not copied."""
        with self._mapped() as file:
            return {name: file.get_tensor(name) for name in names or self._names}

    def digest(self) -> bytes:
        """SHA-256 of the file."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").digest()


def copy_checkpoint(source: Path, target: Path, *, identity: str) -> None:
    """Write `source` to `target` as the checkpoint of another run, whole or not at all."""
    file = TensorFile(source)
    write_tensors(target, file.read(), file.metadata | {"identity": identity})


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint as read: tensors on the CPU, and where the run stood."""

    config: ModelConfig
    weights: Mapping[str, Tensor]
    optimiser: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    random_state: Tensor | None = None
    progress: Progress = field(default_factory=Progress)
    identity: str = ""
    file: TensorFile | None = None  # that it was read from

    @classmethod
    def of(cls, model: Transformer) -> Checkpoint:
        """A model that another program has trained, without its optimiser's state."""
        return cls(config=model.config, weights=model.state_dict())

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
    return _of_metadata(path, TensorFile(path).metadata)[1]


def weights_file(folder: Path, keep: str) -> Path:
    """Where a run's weights lie: its best ones where it kept them (`keep`), else its last.

    Raises
    ------
    InputError
        When the best ones have been saved and are gone.
    """
    best, last = folder / BEST, folder / LAST
    if keep != "best" or best.exists():
        return best if keep == "best" else last
    if last.exists() and read_progress(last).best is not None:
        raise InputError(f"{best}: is missing, and has the weights that the run kept; restore it")
    return last


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    InputError
        When the file is missing, truncated, not a checkpoint of this package, or holds a weight
        that is not a number.
    """
    file = TensorFile(path)
    config, progress = _of_metadata(path, file.metadata)
    tensors = file.read()
    optimiser: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if match := _STATE.fullmatch(name):
            optimiser.setdefault(int(match[1]), {})[match[2]] = value
    weights = {k[len("model.") :]: v for k, v in tensors.items() if k.startswith("model.")}
    shapes = check_shapes(config, weights, str(path))
    check_numbers(weights, str(path))
    _check_states(optimiser, list(shapes.values()), str(path))
    return Checkpoint(
        config=config,
        weights=weights,
        optimiser=optimiser,
        random_state=tensors.get("random_state"),
        progress=progress,
        identity=file.metadata["identity"],
        file=file,
    )


def _of_metadata(path: Path | str, metadata: Mapping[str, str]) -> tuple[ModelConfig, Progress]:
    if not {"model", "progress", "identity"} <= metadata.keys():
        raise InputError(f"{path} is a safetensors file, but not a checkpoint of mnmt-repro")
    try:
        config = build(ModelConfig, json.loads(metadata["model"]), ("model",))
        return config, build(Progress, json.loads(metadata["progress"]), ("progress",))
    except (InputError, ValueError, RecursionError) as error:  # such as a field that is not known
        raise InputError(
            f"{path} was written by another version of mnmt-repro ({error}); read it with that one"
        ) from error


def damaged(where: Path | str, what: str) -> InputError:
    """The error of a file with a wrong content."""
    return InputError(f"{where}: {what}; put a whole copy there")


def check_shapes(
    config: ModelConfig, weights: Mapping[str, Tensor], where: str
) -> dict[str, tuple[int, ...]]:
    """Refuse weights that are not those of the model that they are said to be.

    Returns
    -------
    dict
        Shape of each parameter by its name, in the order of the model's parameters.

    Raises
    ------
    InputError
        With `where` and the first tensor that does not fit.
    """
    actual = _shapes(weights)
    layers = max(config.encoder_layers, config.decoder_layers)
    if layers > len(actual):
        raise InputError(f"{where}: {len(actual)} weights, and {layers} layer(s) are declared")
    try:
        with torch.device("meta"):  # shapes alone, whatever their size
            expected = _shapes(Transformer(config).state_dict())
    except (RuntimeError, OverflowError, ValueError) as error:
        raise InputError(f"{where}: a model that cannot be is declared: {error}") from error
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            raise InputError(
                f"{where}: the weights do not fit their configuration: {name} is "
                f"{actual.get(name, 'missing')}, should be {expected.get(name, 'absent')}"
            )
    return expected


def check_numbers(weights: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights of another type, and those with NaN or infinity among them.

    Raises
    ------
    InputError
        With `where` and the first such tensor.
    """
    for name in weights:
        weight = weights[name]
        if weight.dtype != torch.float32:  # which all of ours are, and readers of others make
            raise damaged(where, f"the weight {name} is stored as {weight.dtype}, not float32")
        if weight.numel() and not torch.stack(weight.aminmax()).isfinite().all():  # without a copy
            raise damaged(where, f"the weight {name} holds NaN or infinity")


def _check_states(
    optimiser: Mapping[int, Mapping[str, Tensor]], parameters: list[tuple[int, ...]], where: str
) -> None:
    """Refuse an optimiser's state that does not fit the shapes of the parameters."""
    for index, state in optimiser.items():
        if index < 0:  # of no parameter, such as the count of steps of a rising rate
            continue
        shapes = _shapes(state)
        if index >= len(parameters) or shapes != _state(parameters[index], shapes):
            what = f"the optimiser's state of parameter {index} does not fit it: {shapes}"
            raise damaged(where, what)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _state(shape: tuple[int, ...], names: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of what an optimiser remembers of a parameter: AdamW or, by the names, Adafactor."""
    if "exp_avg" in names:
        return {"step": (), "exp_avg": shape, "exp_avg_sq": shape}
    return _shapes(adafactor_state(torch.empty(shape, device="meta")))


def adafactor_state(parameter: Tensor, steps: int = 0) -> dict[str, Tensor]:
    """Adafactor's state of a parameter after that many updates of size zero."""
    state = {"step": torch.tensor(float(steps))}
    if parameter.ndim > 1:
        state["row_var"] = torch.zeros_like(parameter[..., :1])
        state["col_var"] = torch.zeros_like(parameter[..., :1, :])
    else:
        state["variance"] = torch.zeros_like(parameter)
    return state
