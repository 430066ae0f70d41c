"""Measured numbers with their 95 % intervals, and losses drawn around those of the cells.

One way gives all intervals of laws and fractions. There are `DRAWS` draws. In each, the mean log
loss of a cell gets the mean of as many residuals as it has seeds (`cells.residual_pools`). Every
cell is drawn, those of single pairs too, and all that a measure needs is refitted. The interval is
the percentiles of the measure. The pair is a fixed effect, not noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fit_result import LawFit

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
    value, draws = float(values[0]), values[1:]
    if not len(draws):
        return Measure(value=value)
    kept = draws[np.isfinite(draws)]
    if len(kept) < 0.9 * len(draws):
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


def root_mean_squares(errors: Array) -> Array:
    """Root mean square of each row of errors (1 + B, m)."""
    return np.asarray(np.sqrt((errors**2).mean(-1)))


def common_draws(*tables: Array) -> list[Array]:
    """The observed rows, and the draws if all tables have them."""
    rows = min(map(len, tables))
    return [table[:rows] for table in tables]


def quantiles(deviations: Array) -> tuple[float, float]:
    """Return the ends of the central `_LEVEL` of the deviations."""
    low, high = np.quantile(deviations, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def t_mean(values: Array) -> Measure:
    """Mean with its t interval, which one value does not have; NaN without a value."""
    if len(values) < 2:
        return Measure(value=float(values.mean()) if len(values) else math.nan)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    value = float(values.mean())
    return Measure(value=value, low=value - float(half), high=value + float(half))


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


def require(fit: LawFit, what: str) -> None:
    """`NotIdentified` unless the fit is identified and leaves residuals."""
    if not fit.identified:
        raise NotIdentified(f"{what}: {fit.reason}")
    if fit.degrees_of_freedom < 1:
        raise NotIdentified(f"{what}: as many parameters as rows")


def drawn(cells: pd.DataFrame, seed: int = 0, draws: int = DRAWS) -> Array:
    """Losses (1 + draws, m): those of the cells, then those of each draw.

    Where a cell has no residuals to draw from, the first row is all. Equal cells in equal order get
    the same picks from the same `seed`, so two test sets of the same runs have one noise.
    """
    loss = cells["cross_entropy"].to_numpy(dtype=float)
    if not cells["pool"].map(len).all():
        return loss[None]
    random = np.random.default_rng(seed)
    noise = [
        random.choice(pool, (draws, seeds)).mean(1)
        for pool, seeds in zip(cells["pool"], cells["seeds"], strict=True)
    ]
    return np.vstack([loss, loss * np.exp(np.transpose(noise))])


def drawn_beside(losses: Array, cells: pd.DataFrame, others: pd.DataFrame) -> list[Array]:
    """Losses of cells beside drawn losses of others; where the runs are the same, so are the draws.

    Returns
    -------
    the losses (1 + B, m), those of `others` (1 + B, k)
    """
    first, second = (each.copy() for each in common_draws(losses, drawn(others, seed=1)))
    place = {runs: k for k, runs in enumerate(cells["runs"])}
    for k, runs in enumerate(others["runs"]):
        if runs in place:
            second[:, k] = first[:, place[runs]]
    return [first, second]


def pooled_sd(fits: Iterable[LawFit]) -> float:
    """Residual standard deviation of several laws together; NaN where none leaves residuals."""
    known = [fit for fit in fits if fit.identified]
    spare = sum(fit.degrees_of_freedom for fit in known)
    return float(np.sqrt(sum(fit.rss for fit in known) / spare)) if spare > 0 else float("nan")


def between_seeds(rows: pd.DataFrame, *cell: str) -> tuple[float, int]:
    """Standard deviation of a log loss between the seeds of a cell, pooled over cells.

    Parameters
    ----------
    rows
        From `results.load`.
    cell
        Columns whose values seeds have in common.

    Returns
    -------
    The deviation, NaN where no cell has two seeds, and how many cells have.
    """
    grouped = np.log(rows["cross_entropy"]).groupby([rows[column] for column in cell])
    free, variance = grouped.size() - 1, grouped.var()
    several = free > 0
    if not several.any():
        return float("nan"), 0
    pooled = (variance * free)[several].sum() / free[several].sum()
    return float(np.sqrt(pooled)), int(several.sum())
