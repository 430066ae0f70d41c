"""Intervals of errors, by resampling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mnmt_repro.claims.noise import DRAWS, quantiles


class Interval(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


def root_mean_square(errors: ArrayLike) -> Interval:
    """Root mean square of errors; its interval resamples them, as in the claims.

    >>> root_mean_square([0.3, -0.3])
    Interval(value=0.3, low=0.3, high=0.3)
    """
    squares = np.asarray(errors, dtype=float) ** 2
    picks = np.random.default_rng(0).integers(len(squares), size=(DRAWS, len(squares)))
    low, high = quantiles(np.sqrt(squares[picks].mean(1)))
    return Interval(value=float(np.sqrt(squares.mean())), low=low, high=high)
