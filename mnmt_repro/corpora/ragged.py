"""Sentences of unequal length as one flat array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Rows of token ids: row i is `flat[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> rows = Ragged.of([[5, 6], [7]])
    >>> rows.take(np.array([1, 0])).pad(3).tolist()
    [[7, 0, 0], [5, 6, 0]]
    """

    flat: np.ndarray  # (tokens,) int32
    offsets: np.ndarray  # (rows + 1,) int64

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> Ragged:
        """Pack lists of ids."""
        rows = list(rows)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        flat = np.fromiter((i for row in rows for i in row), dtype=np.int32, count=offsets[-1])
        return cls(flat, offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """All rows of `parts`, one after another."""
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(np.concatenate([part.flat for part in parts]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens in each row, (rows,)."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> Ragged:
        """The given rows, in that order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        where = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Ragged(self.flat[where], offsets)

    def affix(self, *, first: int | None = None, last: int | None = None) -> Ragged:
        """Every row with an id put before it, behind it, or both."""
        before, extra = int(first is not None), int(first is not None) + int(last is not None)
        offsets = self.offsets + extra * np.arange(len(self) + 1)
        flat = np.empty(offsets[-1], dtype=np.int32)
        lengths = self.lengths
        where = np.arange(len(self.flat)) + np.repeat(
            offsets[:-1] + before - self.offsets[:-1], lengths
        )
        flat[where] = self.flat
        if first is not None:
            flat[offsets[:-1]] = first
        if last is not None:
            flat[offsets[1:] - 1] = last
        return Ragged(flat, offsets)

    def pad(self, width: int) -> np.ndarray:
        """Rows as an int64 array (rows, width), filled up with 0."""
        real = np.arange(width)[None, :] < self.lengths[:, None]
        padded = np.zeros((len(self), width), dtype=np.int64)
        padded[real] = self.flat
        return padded
