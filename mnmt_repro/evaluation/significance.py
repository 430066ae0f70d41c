"""Is a difference of losses chance? A paired bootstrap over sentences.

It shows how the difference would vary over other test sentences, and does not include the variation
between training seeds. For BLEU and chrF, sacrebleu has the same test: `sacrebleu --paired-bs`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LEVEL = 0.95  # of the intervals of `bootstrap_gaps`


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Of two systems, with its 95 % interval and two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap_gaps(
    gaps: NDArray[np.float64], units: NDArray[np.float64], *, draws: int = 1000
) -> Difference:
    """Resample the sentences of a direction, the same for both models (Koehn, 2004).

    The difference is that of summed gaps over summed units. Its interval is that of the drawn
    differences (percentiles); the p-value is the share of draws that stray from the difference by
    as much as it is from zero, counting it itself as one of them.

    Parameters
    ----------
    gaps
        (sentences,): nats that a model spends on a sentence beyond the other's.
    units
        (sentences,): what losses are counted by, such as target tokens.

    Examples
    --------
    >>> result = bootstrap_gaps(np.array([-1.0, -1.0, -1.0]), np.array([2.0, 2.0, 2.0]))
    >>> result.difference, result.low, result.high  # a nat less for every two tokens
    (-0.5, -0.5, -0.5)
    """
    picks = np.random.default_rng(0).integers(len(gaps), size=(draws, len(gaps)))
    drawn = gaps[picks].sum(1) / units[picks].sum(1)
    difference = float(gaps.sum() / units.sum())
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    as_far = np.abs(drawn - difference) >= abs(difference)
    return Difference(
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=float((as_far.sum() + 1) / (draws + 1)),
    )
