"""Measured numbers with their 95 % intervals, and why a number cannot be given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.laws.checks import Array

DRAWS = 2000
_LEVEL = 0.95


class NoRowsYet(Exception):
    """The store does not hold the rows that a number needs; the message says which."""


class OutOfRegime(Exception):
    """No cell has read enough text of its own per parameter; the message says why."""


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


def measured(values: Array) -> Measure:
    """The first of the values (1 + B,), with the percentiles of the others, which are its draws.

    Draws without a value are dropped. Without draws there is no interval.

    Raises
    ------
    NotIdentified
        When more than a tenth of the draws have no value.
    """
    value, drawn = float(values[0]), values[1:]
    if not len(drawn):
        return Measure(value=value)
    kept = drawn[np.isfinite(drawn)]
    if len(kept) < 0.9 * len(drawn):
        raise NotIdentified("more than a tenth of the draws have no value")
    low, high = quantiles(kept)
    return Measure(value=value, low=low, high=high)


def centred(values: Array) -> Measure:
    """As `measured`, for a measure that is itself a size of errors, or a ratio of such.

    The drawn noise comes on top of the noise that the cells have, so it makes an error larger. The
    draws are therefore multiplied by one number, with which their median is the observed value.
    """
    if len(values) == 1:
        return measured(values)
    return measured(np.append(values[:1], values[1:] * (values[0] / np.nanmedian(values[1:]))))


def centred_r2(values: Array) -> Measure:
    """As `centred`, for R²: one less a size of errors."""
    left = centred(1 - values)
    return Measure(value=1 - left.value, low=1 - left.high, high=1 - left.low)


def common_draws(*tables: Array) -> list[Array]:
    """The observed rows, and the draws if all tables have them."""
    rows = min(map(len, tables))
    return [table[:rows] for table in tables]


def quantiles(deviations: Array) -> tuple[float, float]:
    """Return the ends of the central `_LEVEL` of the deviations."""
    low, high = np.quantile(deviations, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


@cache
def resampled(rows: int) -> NDArray[np.intp]:
    """Rows that each draw picks, with replacement: (`DRAWS`, `rows`), the same at each call."""
    return np.random.default_rng(0).integers(rows, size=(DRAWS, rows))


def root_mean_square(errors: ArrayLike) -> Measure:
    """Root mean square of errors; its interval resamples them.

    >>> root_mean_square([0.3, -0.3])
    Measure(value=0.3, low=0.3, high=0.3)
    """
    squares = np.asarray(errors, dtype=float) ** 2
    low, high = quantiles(np.sqrt(squares[resampled(len(squares))].mean(1)))
    return Measure(value=float(np.sqrt(squares.mean())), low=low, high=high)
