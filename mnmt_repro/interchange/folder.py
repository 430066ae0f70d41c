"""Read a folder of a Hugging Face model: configuration, weights, tokenizer."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.interchange.pieces import Files, Pieces, read_pieces
from mnmt_repro.interchange.weights import Renamed, family_of, fill, shape_of
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import TensorFile, damaged

CONFIG, WEIGHTS_FILE, PICKLED = "config.json", "model.safetensors", "pytorch_model.bin"
INDEX, ADAPTER = f"{WEIGHTS_FILE}.index.json", "adapter_config.json"
CT2 = "mnmt-repro.json"
"""Beside the files of CTranslate2, of which one is a `config.json`, too."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A Hugging Face model, its weights not read yet.

    Attributes
    ----------
    shape
        Of our model that computes the same.
    weights
        Under our names, in the tables' own order of rows. A tensor is mapped from its file when it
        is asked for, and is not copied.
    files
        That hold the weights.
    config
        What `config.json` holds.
    """

    shape: ModelConfig
    weights: Mapping[str, Tensor]
    pieces: Pieces
    files: Sequence[TensorFile | PickledFile]
    config: bytes

    def model(self) -> Transformer:
        """Build our model."""
        return fill(self.shape, self.weights, self.pieces.order)

    @cached_property
    def identity(self) -> str:
        """Twelve digits of a hash over all of its files that decide what it computes."""
        digest = hashlib.sha256(self.pieces.vocabulary.model)
        for file in self.files:
            digest.update(file.path.name.encode() + file.digest())
        digest.update(self.config)
        return digest.hexdigest()[:12]


def is_hf(folder: Path) -> bool:
    """Whether a folder looks like a Hugging Face model."""
    return (folder / CONFIG).is_file()


def is_ct2(folder: Path) -> bool:
    """Whether a folder is one that `write_ct2` wrote."""
    return (folder / CT2).is_file()


def read_folder(folder: Path) -> Imported:
    """Read the folder of an M2M-100, NLLB-200 (dense), T5 v1.1, mT5 or MADLAD-400 model.

    `transformers` is not needed.

    Raises
    ------
    InputError
        When a file or a field is missing or another model's; the message names both, and what
        helps.
    """
    if is_ct2(folder):
        raise InputError(
            f"{folder}: is of CTranslate2, for `translate --engine ct2`; give its original"
        )
    files = Files(folder)
    content = files.content(CONFIG)
    if content is None:
        raise damaged(folder / CONFIG, "cannot be read (no such file)")
    if files.content(ADAPTER) is not None:
        raise InputError(
            f"{folder / ADAPTER}: an adapter; merge it (`merge_and_unload`) and save the model"
        )
    config = files.fields(CONFIG)
    family = family_of(config)
    shape, at = shape_of(config, family), weight_files(folder)
    return Imported(
        shape=shape,
        weights=Renamed(shape, at, lambda name: at[name].read(name)[name], str(folder)),
        pieces=read_pieces(files, config, family),
        files=tuple(dict.fromkeys(at.values())),
        config=content,
    )


class PickledFile:
    """A file of `torch.save`, from which nothing but tensors is read.

    Raises
    ------
    InputError
        When it is missing or damaged, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            mapped = zipfile.is_zipfile(path)  # else of an old torch, and read whole
            self._tensors = torch.load(path, "cpu", weights_only=True, mmap=mapped)
            if not all(isinstance(each, Tensor) for each in self._tensors.values()):
                raise TypeError
        except Exception as error:  # whatever is in such a file
            why = "it is damaged, or holds something else than tensors"  # torch advises to run it
            if isinstance(error, OSError):
                why = str(error.strerror)
            raise damaged(f"cannot read the weights {path}", why) from error

    def read(self, *names: str) -> dict[str, Tensor]:
        """Tensors of these names, or all."""
        return {name: self._tensors[name] for name in names or self._tensors}

    def digest(self) -> bytes:
        """SHA-256 of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()


def weight_files(folder: Path) -> dict[str, TensorFile | PickledFile]:
    """The file that holds each tensor of a folder's weights, which are in one file or sharded.

    As in `transformers`, safetensors come before files of `torch.save`.

    Raises
    ------
    InputError
        When there are none, or a shard is missing or damaged.
    """
    files = [
        TensorFile(path) if path.suffix == ".safetensors" else PickledFile(path)
        for path in map(folder.joinpath, _weight_names(folder))
    ]
    return {name: file for file in files for name in file.read()}


def _weight_names(folder: Path) -> list[str]:
    """Names of the files with weights."""
    files = Files(folder)
    for name in (WEIGHTS_FILE, PICKLED):
        index = f"{name}.index.json"
        if (folder / name).is_file():
            return [name]
        if files.content(index) is not None:
            shards = set(files.fields(index).get("weight_map", dict[str, str]).values())
            if not shards or any(
                shard in ("", "..") or Path(shard).name != shard for shard in shards
            ):
                what = "'weight_map' does not name a file of this folder for each tensor"
                raise damaged(folder / index, what)
            return sorted(shards)
    raise InputError(
        f"{folder}: has none of {WEIGHTS_FILE}, {INDEX} and {PICKLED}; put the weights there"
    )
