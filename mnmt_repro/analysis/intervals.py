"""Measured numbers with their 95 % intervals, and why a number cannot be given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.laws.checks import Array

DRAWS = 1000
_LEVEL = 0.95


class NoRowsYet(Exception):
    """The store does not hold the rows that a number needs; the message says which."""


class OutOfRegime(Exception):
    """No cell has as much text per parameter as the claim asks for; the message says which lack."""


class NotIdentified(Exception):
    """The rows are there but determine no law; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measured number and its 95 % interval; NaN where it has none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


Measures = dict[str, Measure]


def measure(value: float, deviations: Array) -> Measure:
    """Give a value the interval of its deviations (B,) under noise."""
    low, high = quantiles(deviations)
    return Measure(value=float(value), low=float(value) + low, high=float(value) + high)


def quantiles(deviations: Array) -> tuple[float, float]:
    """Return the ends of the central `_LEVEL` of the deviations."""
    low, high = np.quantile(deviations, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def power(under_alternative: Array, deviations: Array, sign: int) -> float:
    """Share of measures drawn under an alternative whose interval excludes zero on its side.

    Parameters
    ----------
    under_alternative : (B,)
        The measure, refitted to draws from the alternative.
    deviations : (B,)
        Of the measure under noise, which give each draw its interval.
    sign : 1 or -1
        Of the alternative.
    """
    low, high = quantiles(deviations)
    seen = under_alternative + low > 0 if sign > 0 else under_alternative + high < 0
    return float(np.mean(seen))


@cache
def resampled(rows: int) -> NDArray[np.intp]:
    """Rows that each draw picks, with replacement: (`DRAWS`, `rows`), the same at each call."""
    return np.random.default_rng(0).integers(rows, size=(DRAWS, rows))


def resampled_mean(values: ArrayLike) -> Measure:
    """Mean of some values; its interval resamples them."""
    values = np.asarray(values, dtype=float)
    low, high = quantiles(values[resampled(len(values))].mean(1))
    return Measure(value=float(values.mean()), low=low, high=high)


def root_mean_square(errors: ArrayLike) -> Measure:
    """Root mean square of errors; its interval resamples them.

    >>> root_mean_square([0.3, -0.3])
    Measure(value=0.3, low=0.3, high=0.3)
    """
    squares = np.asarray(errors, dtype=float) ** 2
    low, high = quantiles(np.sqrt(squares[resampled(len(squares))].mean(1)))
    return Measure(value=float(np.sqrt(squares.mean())), low=low, high=high)


def error_ratio(errors: Array, others: Array) -> Measure:
    """Ratio of two root mean squares over the same cells; its interval resamples the cells."""
    pick = resampled(len(errors))
    above, below = (np.sqrt((each[pick] ** 2).mean(1)) for each in (errors, others))
    low, high = quantiles(above / below)
    value = root_mean_square(errors).value / root_mean_square(others).value
    return Measure(value=value, low=low, high=high)
