"""Read a folder of a Hugging Face model: configuration, weights, tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.interchange.pieces import Files, Pieces, read_pieces
from mnmt_repro.interchange.weights import Fields, Renamed, family_of, fill, shape_of
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import TensorFile

CONFIG, WEIGHTS_FILE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
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
    files: Sequence[TensorFile]
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
            f"{folder}: is of CTranslate2, and only for `mnmt-repro translate --engine ct2`; give "
            "the model that it was exported from"
        )
    files = Files(folder)
    content = files.content(CONFIG)
    if content is None:
        raise InputError(
            f"{folder / CONFIG}: cannot be read (no such file); put a whole copy there"
        )
    config = Fields(files.json(CONFIG), str(folder / CONFIG))
    family = family_of(config)
    shape, mapped = shape_of(config, family), Mapped(folder)
    return Imported(
        shape=shape,
        weights=Renamed(shape, mapped, str(folder)),
        pieces=read_pieces(files, config, family),
        files=mapped.files,
        config=content,
    )


class Mapped(Mapping[str, Tensor]):
    """Tensors of a folder's safetensors files, in one file or sharded, mapped when asked for.

    A file is mapped for each tensor, so that pages of a tensor that is no longer used are freed.

    Raises
    ------
    InputError
        When there are none, or a shard is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        files = Files(folder)
        if files.content(INDEX) is not None:
            listed = Fields(files.json(INDEX), str(folder / INDEX)).get("weight_map")
            if not isinstance(listed, dict) or {type(file) for file in listed.values()} != {str}:
                raise InputError(
                    f"{folder / INDEX}: 'weight_map' does not name a file for each tensor; put a "
                    "whole copy in its place"
                )
            names = sorted(set(listed.values()))
        elif (folder / WEIGHTS_FILE).is_file():
            names = [WEIGHTS_FILE]
        else:
            other = " (its weights are of another format: save_pretrained writes them again)"
            raise InputError(
                f"{folder}: has neither {WEIGHTS_FILE} nor {INDEX}; put the weights there"
                + other * any(folder.glob("*.bin"))
            )
        self.files = [TensorFile(folder / name) for name in names]
        self._files = {name: file for file in self.files for name in file.read()}

    def __getitem__(self, name: str) -> Tensor:
        return self._files[name].read(name)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
