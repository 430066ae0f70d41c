"""Losses of single test sentences, for tests that resample them.

One file a run, ``<root>/<corpus>/sentences/<run_id>.npz``, never replaced. It holds ``run_id``,
``commit`` (of the code that scored), ``test_set``, ``most`` (sentences of a test set, at most),
``pairs`` and how many ``sentences`` each has, and, pair after pair, the ``nats`` of each sentence
(float32, to `STEP`) and its target ``tokens`` (int16), end of sentence included.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.atomic import write_new
from mnmt_repro.errors import InputError
from mnmt_repro.results.files import STORED, Root, results_root

_FOLDER = "sentences"
STEP = 2.0**-10
"""Nats are stored to this; their last bits say nothing and would not compress."""

Nats = NDArray[np.float32]
Tokens = NDArray[np.int16]


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceLosses:
    """What a run loses on single sentences of one test set, pair by pair.

    Attributes
    ----------
    nats, tokens
        Pair -> (sentences,): summed loss and number of target tokens of each sentence, in the order
        of the test set.
    most
        Most sentences of a test set. From a larger one, this number is spread evenly over it.
    """

    run_id: str
    commit: str
    test_set: str
    most: int
    nats: Mapping[str, Nats]
    tokens: Mapping[str, Tokens]

    def __post_init__(self) -> None:
        if not self.nats or self.nats.keys() != self.tokens.keys():
            raise InputError(f"losses of run {self.run_id}: nats and tokens need the same pairs")
        for pair, nats in self.nats.items():
            tokens = self.tokens[pair]
            if nats.shape != tokens.shape or nats.ndim != 1 or not nats.size:
                raise InputError(f"losses of run {self.run_id}, {pair}: a number for each sentence")
            if not np.isfinite(nats).all() or (tokens < 1).any():
                raise InputError(f"losses of run {self.run_id}, {pair}: not finite, or no tokens")


def path_of(root: Path, corpus: str, run_id: str) -> Path:
    """Where the sentence losses of a run lie."""
    return root / corpus / _FOLDER / f"{run_id}.npz"


def write_sentence_losses(losses: SentenceLosses, *, corpus: str, root: Root = None) -> Path:
    """Store the sentence losses of a run; the file appears whole or not at all.

    Writing the same losses again does nothing.

    Raises
    ------
    InputError
        When the run's are stored already and others.
    """
    nats = np.concatenate(list(losses.nats.values())).astype(np.float64)
    arrays = {
        "run_id": np.array(losses.run_id),
        "commit": np.array(losses.commit),
        "test_set": np.array(losses.test_set),
        "most": np.array(losses.most),
        "pairs": np.array(list(losses.nats)),
        "sentences": np.array([len(each) for each in losses.nats.values()]),
        "nats": (np.round(nats / STEP) * STEP).astype(np.float32),
        "tokens": np.concatenate([losses.tokens[pair] for pair in losses.nats]).astype(np.int16),
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub has a flag beside
    path = path_of(results_root(root), corpus, losses.run_id)
    if write_new(path, file.getvalue()):
        return path
    stored = _arrays(path)
    if not all(np.array_equal(array, stored.get(name, [])) for name, array in arrays.items()):
        raise InputError(f"{path}: {STORED}")
    return path


def read_sentence_losses(path: Path) -> SentenceLosses:
    """Read and check one file.

    Raises
    ------
    InputError
        When it is torn, another run's, or not such a file.
    """
    arrays = _arrays(path)
    try:
        ends = np.cumsum(arrays["sentences"])[:-1]
        pairs = [str(pair) for pair in arrays["pairs"]]
        nats, tokens = (np.split(arrays[name], ends) for name in ("nats", "tokens"))
        losses = SentenceLosses(
            run_id=str(arrays["run_id"]),
            commit=str(arrays["commit"]),
            test_set=str(arrays["test_set"]),
            most=int(arrays["most"]),
            nats=dict(zip(pairs, nats, strict=True)),
            tokens=dict(zip(pairs, tokens, strict=True)),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: no file of sentence losses ({error})") from error
    if losses.run_id != path.stem:
        raise InputError(f"{path}: holds run {losses.run_id}; give it its own name again")
    return losses


def load_sentence_losses(run_ids: Iterable[str], *, root: Root = None) -> dict[str, SentenceLosses]:
    """The sentence losses of those runs that have them."""
    wanted = set(run_ids)
    paths = sorted(results_root(root).glob(f"*/{_FOLDER}/*.npz"))
    return {path.stem: read_sentence_losses(path) for path in paths if path.stem in wanted}


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
