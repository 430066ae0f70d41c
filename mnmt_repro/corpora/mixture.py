"""Mixtures of language pairs: weights, temperature, up-sampling, scalarization."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mnmt_repro.errors import InputError


@dataclass(frozen=True)
class Mixture:
    """The weights p: the probability with which a training sentence is drawn from each pair.

    Weights are **per sentence** (Paper A §3.1). Pairs of weight zero are dropped, so that a mixture
    with all its weight on one pair is the single-pair mixture.

    Raises
    ------
    InputError
        When a weight lies outside [0, 1] or the weights do not sum to one.

    Examples
    --------
    >>> Mixture.two("eng-deu", "eng-zho", 0.3).weights
    {'eng-deu': 0.3, 'eng-zho': 0.7}
    >>> Mixture.two("eng-deu", "eng-zho", 1.0) == Mixture.of({"eng-deu": 1.0})
    True
    """

    items: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        for pair, p in self.items:
            if not 0.0 <= p <= 1.0:  # also refuses NaN
                raise InputError(f"weight of {pair} must lie in [0, 1], got {p}")
        total = math.fsum(p for _, p in self.items)
        if abs(total - 1.0) > 1e-9:
            listed = ", ".join(f"{pair} {p:g}" for pair, p in self.items)
            raise InputError(f"weights must sum to one, these sum to {total:g}: {listed}")
        kept = tuple(sorted((pair, p) for pair, p in self.items if p > 0))
        object.__setattr__(self, "items", kept)

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> Mixture:
        """From a mapping of pair to weight."""
        return cls(tuple(weights.items()))

    @classmethod
    def two(cls, first: str, second: str, p: float) -> Mixture:
        """Weight p on the first pair and 1 - p on the second (Paper A, Eq. 5)."""
        return cls(((first, p), (second, round(1.0 - p, 12))))

    @classmethod
    def from_sizes(
        cls,
        sizes: Mapping[str, int],
        *,
        temperature: float = 1.0,
        upsampling: Mapping[str, float] | None = None,
    ) -> Mixture:
        """In proportion to `(factor * size) ** (1 / temperature)`.

        The up-sampling factor (Paper B's α) acts on sizes before ratios are taken.

        >>> Mixture.from_sizes({"eng-deu": 900, "eng-xho": 20}, upsampling={"eng-xho": 5}).weights
        {'eng-deu': 0.9, 'eng-xho': 0.1}
        """
        upsampling = dict(upsampling or {})
        unknown = sorted(set(upsampling) - set(sizes))
        if unknown:
            raise InputError(f"up-sampling factor for {unknown[0]}, which is not in the mixture")
        if not temperature >= 0.05:  # below, powers of sizes overflow
            raise InputError(f"temperature must be at least 0.05, got {temperature}")
        for pair, factor in upsampling.items():
            if not 0 < factor <= 1e6:
                raise InputError(
                    f"up-sampling factor of {pair} must be above 0 and at most 1e6, got {factor}"
                )
        scaled = {
            pair: (size * upsampling.get(pair, 1.0)) ** (1 / temperature)
            for pair, size in sizes.items()
        }
        total = math.fsum(scaled.values())
        if not total:
            raise InputError("no sentences in any pair of the mixture")
        return cls.of({pair: share / total for pair, share in scaled.items()})

    @property
    def weights(self) -> dict[str, float]:
        """Pair to its weight p, pairs in alphabetical order."""
        return dict(self.items)

    @property
    def pairs(self) -> tuple[str, ...]:
        """Pairs with weight above zero."""
        return tuple(pair for pair, _ in self.items)

    def like(self, weights: Mapping[str, float], what: str) -> Mixture:
        """The same pairs with other weights; `what` names them in a message.

        Raises
        ------
        InputError
            When the weights are of other pairs, or are no mixture.
        """
        try:
            other = Mixture.of(weights)
        except InputError as error:
            raise InputError(f"{what}: {error}") from error
        if other.pairs != self.pairs:
            both = f"{', '.join(self.pairs)}; got {', '.join(other.pairs)}"
            raise InputError(f"{what}: must give a weight above 0 to each of {both}")
        return other
