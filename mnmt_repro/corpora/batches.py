"""An endless stream of training batches that is a pure function of (seed, position)."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.errors import InputError

PAD_TO = 8  # lengths are padded up to multiples of this: few shapes, little waste


class Sentences(Protocol):
    """Encoded sentence pairs of one language pair, start, end and tags included."""

    @property
    def size(self) -> int | None:
        """Sentence pairs; None when they never end."""
        ...

    def take(self, rows: np.ndarray) -> tuple[Ragged, Ragged]:
        """Source and target of the given rows."""
        ...


@dataclass(frozen=True)
class EncodedPair:
    """A finite set of encoded sentence pairs.

    Every source row ends with the end-of-sentence id; every target row also begins with the start
    token that the decoder is given, so that it predicts one token fewer than the row is long.
    """

    source: Ragged
    target: Ragged

    @property
    def size(self) -> int:
        return len(self.source)

    def take(self, rows: np.ndarray) -> tuple[Ragged, Ragged]:
        return self.source.take(rows), self.target.take(rows)

    def shorter_than(self, longest: int) -> EncodedPair:
        """Without pairs in which a side has more than `longest` tokens to read or predict."""
        fits = (self.source.lengths <= longest) & (self.target.lengths - 1 <= longest)
        return EncodedPair(*self.take(np.flatnonzero(fits)))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One training step's sentences, padded.

    `source` (B, S) and `target` (B, 1 + T) are int64, filled up with 0; `pair` (B,) numbers the
    pairs of the mixture.
    """

    source: np.ndarray
    target: np.ndarray
    pair: np.ndarray


@dataclass(frozen=True, order=True)
class Position:
    """Where a stream stands: the batch `index` of the `window` that comes next."""

    window: int = 0
    index: int = 0


def pack(
    source: Ragged,
    target: Ragged,
    pair: np.ndarray,
    batch_tokens: int,
    order: np.ndarray,
    pad_to: int = PAD_TO,
) -> Iterator[Batch]:
    """Cut the rows named by `order` into batches that each hold about `batch_tokens` target tokens.

    `order` should run from short to long, so that little is padded.
    """
    filled = np.cumsum(target.lengths[order] - 1)
    last = filled[-1] if len(filled) else 0
    cuts = np.searchsorted(filled, np.arange(batch_tokens, last + batch_tokens, batch_tokens))
    edges = np.unique(np.concatenate([[0], np.minimum(cuts + 1, len(order))]))
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        rows = order[start:stop]
        sources, targets = source.take(rows), target.take(rows)
        yield Batch(
            source=sources.pad(_padded(sources.lengths, pad_to).max()),
            target=targets.pad(1 + _padded(targets.lengths - 1, pad_to).max()),
            pair=pair[rows],
        )


def _padded(lengths: np.ndarray, to: int) -> np.ndarray:
    return -(-lengths // to) * to


def by_length(source: Ragged, target: Ragged, pad_to: int = PAD_TO) -> np.ndarray:
    """Row numbers from short to long, by padded target and then padded source length.

    Without padding to a multiple, target lengths go in twos, and source lengths rise in one group
    and fall in the next. So a batch that spans two groups has no short sources beside long ones.
    """
    inner, outer = _padded(source.lengths, pad_to), _padded(target.lengths - 1, pad_to)
    if pad_to == 1:
        outer = outer // 2
        inner = np.where(outer % 2, -inner, inner)
    return np.lexsort((inner, outer))


class BatchStream:
    """Draws sentences by a mixture, groups them by length and yields batches, for ever.

    Sentences are drawn in windows: in window w, how many come from each pair is decided by a random
    generator keyed on (seed, w), and each pair's own sentences come in a fresh random order every
    pass. Nothing depends on what was read before, so `batches(position)` resumes exactly. From
    numpy 2.5 on, the generator draws a few windows otherwise; `requirements.lock` has 2.4.

    Parameters
    ----------
    sentences
        Encoded sentences for every pair of the mixture.
    batch_tokens
        Target tokens a batch, end-of-sentence included, padding not counted.
    window
        Sentences sorted by length together.
    pad_to
        Lengths are padded up to multiples of this. Sentences are grouped by these lengths, so a
        batch pads least where it is 1.
    first
        Mixture of the windows before number `changed`, of the same pairs; None: `mixture` for all.
    changed
        Number of the first window that `mixture` draws.

    Raises
    ------
    InputError
        When a pair of the mixture has no sentences.
    """

    def __init__(
        self,
        sentences: Mapping[str, Sentences],
        mixture: Mixture,
        *,
        batch_tokens: int,
        seed: int,
        window: int = 8192,
        pad_to: int = PAD_TO,
        first: Mixture | None = None,
        changed: float = math.inf,
    ) -> None:
        for pair in mixture.pairs:
            if pair not in sentences or sentences[pair].size == 0:
                raise InputError(f"the mixture names {pair}, but there is no training text for it")
        self.mixture = mixture
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.window = window
        self.pad_to = pad_to
        self.first = mixture if first is None else first
        self.changed = changed
        self._sentences = [sentences[pair] for pair in mixture.pairs]
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    def _counts(self, window: int) -> np.ndarray:
        """How many sentences of `window` come from each pair."""
        rng = np.random.default_rng([self.seed, 0, window])
        mixture = self.first if window < self.changed else self.mixture
        return rng.multinomial(self.window, [p for _, p in mixture.items])

    def drawn(self, windows: int) -> np.ndarray:
        """Sentences drawn from each pair in the first `windows` windows."""
        none = np.zeros(len(self.mixture.pairs), dtype=np.int64)
        return sum((self._counts(w) for w in range(windows)), start=none)

    def _rows(self, k: int, first: int, count: int) -> np.ndarray:
        """Row numbers of the draws `first`, `first + 1`, ... from pair k."""
        size = self._sentences[k].size
        draws = np.arange(first, first + count)
        if size is None:
            return draws
        rows = np.empty(count, dtype=np.int64)
        for epoch in range(first // size, (first + count - 1) // size + 1 if count else 0):
            here = draws // size == epoch
            rows[here] = self._order(k, epoch, size)[draws[here] % size]
        return rows

    def _order(self, k: int, epoch: int, size: int) -> np.ndarray:
        if self._orders.get(k, (None,))[0] != epoch:
            name = zlib.crc32(self.mixture.pairs[k].encode())
            rng = np.random.default_rng([self.seed, 1, name, epoch])
            self._orders[k] = (epoch, rng.permutation(size))
        return self._orders[k][1]

    def _batches(self, window: int, drawn: np.ndarray) -> list[Batch]:
        counts = self._counts(window)
        parts = [
            sentences.take(self._rows(k, int(drawn[k]), int(counts[k])))
            for k, sentences in enumerate(self._sentences)
            if counts[k]
        ]
        source = Ragged.concatenate([part[0] for part in parts])
        target = Ragged.concatenate([part[1] for part in parts])
        pair = np.repeat(np.arange(len(counts)), counts)
        rng = np.random.default_rng([self.seed, 2, window])
        shuffled = rng.permutation(len(source))
        drawn_source, drawn_target = source.take(shuffled), target.take(shuffled)
        order = shuffled[by_length(drawn_source, drawn_target, self.pad_to)]
        batches = list(pack(source, target, pair, self.batch_tokens, order, self.pad_to))
        return [batches[i] for i in rng.permutation(len(batches))]

    def batches(self, start: Position = Position()) -> Iterator[tuple[Position, Batch]]:  # noqa: B008
        """Yield batches from `start` on, each with the position that follows it."""
        drawn = self.drawn(start.window)
        window, index = start.window, start.index
        while True:
            batches = self._batches(window, drawn)
            for i in range(index, len(batches)):
                done = i + 1 == len(batches)
                yield (Position(window + 1) if done else Position(window, i + 1)), batches[i]
            drawn = drawn + self._counts(window)
            window, index = window + 1, 0


def evaluation_batches(
    source: Ragged, target: Ragged, batch_tokens: int
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Every row once, in batches of similar length, with its row numbers."""
    order = by_length(source, target)
    start = 0
    for batch in pack(source, target, np.zeros(len(source), dtype=int), batch_tokens, order):
        rows = order[start : start + len(batch.source)]
        start += len(rows)
        yield rows, batch
