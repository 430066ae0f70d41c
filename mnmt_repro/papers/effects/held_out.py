"""Errors of Eq. 11 on weights and sizes that it was not fitted to, beside those without any law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_repro.laws import FractionFit, fit_fraction
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fraction import Form
from mnmt_repro.results.schema import CEILINGS

UNSEEN_WEIGHTS, LARGEST_SIZES = (0.1, 0.5, 0.9), 2
"""What claims A14 and A15 hold out."""


def held_out(
    cells: pd.DataFrame,
    weights: Sequence[float] = UNSEEN_WEIGHTS,
    largest_sizes: int = LARGEST_SIZES,
    n: str = "n",
) -> pd.Series:
    """Which cells are held out: those of some weights, and those of the largest sizes."""
    sizes = np.sort(cells[n].unique())
    return cells["p"].isin(weights) | cells[n].isin(sizes[len(sizes) - largest_sizes :])


def fit_eq11(
    cells: pd.DataFrame,
    form: Form = "eq12",
    *,
    n: str = "n",
    column: str = "loss",
    metric: str = "",
    errors: Errors = "absolute",
) -> FractionFit:
    """Fit Eq. 11 to the cells of one pair: to their losses, or to the scores of a metric.

    Parameters
    ----------
    column
        What is fitted.
    metric
        The metric that it is a score of, which rises with size; empty for a loss.
    """
    return fit_fraction(
        cells,
        form=form,
        n=n,
        loss=column,
        direction="max" if metric else "min",
        ceiling=CEILINGS.get(metric),
        errors=errors,
    )


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Predictions of cells that a law was not fitted to.

    Attributes
    ----------
    truth, predicted : (m,) or (1 + B, m)
        What was observed or drawn, and what is predicted.
    spread : float or (1 + B, 1)
        Of all that was observed, the cells seen included.
    """

    truth: Array
    predicted: Array
    spread: Array

    @property
    def relative(self) -> Array:
        """Errors relative to what was observed."""
        return self.predicted / self.truth - 1

    @property
    def of_spread(self) -> Array:
        """Errors as shares of the spread."""
        return (self.predicted - self.truth) / self.spread


def predict_unseen(
    cells: pd.DataFrame,
    unseen: pd.Series,
    law: FractionFit,
    column: str = "loss",
    n: str = "n",
    losses: Array | None = None,
) -> tuple[Unseen, Unseen]:
    """Predict the cells of one pair that a law was not fitted to.

    Parameters
    ----------
    unseen
        From `held_out`.
    law
        Fitted to the other cells.
    column
        What it was fitted to.
    losses : (1 + B, m)
        Drawn values of the column. The law is refitted to each row.

    Returns
    -------
    by the law, and without any law: by the nearest cell seen
    """
    rest, out = cells[unseen], unseen.to_numpy()
    values, all_of = np.array(law.values), cells[column].to_numpy()
    if losses is not None:
        values, all_of = law.refit(losses[:, ~out]), losses
    by_law = law.law.curve(values, law.law.rows_at(rest["p"], rest[n]))
    nearest = all_of[..., ~out] @ nearest_seen(cells[~unseen], rest, n).T
    truth, spread = all_of[..., out], np.ptp(all_of, axis=-1, keepdims=True)
    return (
        Unseen(truth=truth, predicted=by_law, spread=spread),
        Unseen(truth=truth, predicted=nearest, spread=spread),
    )


def nearest_seen(seen: pd.DataFrame, held: pd.DataFrame, n: str) -> Array:
    """No law: the cells at the nearest weight seen, and there at the nearest size.

    Returns
    -------
    (cells held, cells seen)
        Shares of the cells seen in the prediction of each cell held.
    """
    found = []
    for p, size in zip(held["p"], held[n], strict=True):
        distance = (seen["p"] - p).abs()
        near = distance <= distance.min() + 1e-9
        apart = np.abs(np.log(seen[n] / size)).where(near)
        found.append(apart <= apart.min() + 1e-9)
    return np.array([each / each.sum() for each in found])


def root_mean_squares(errors: Array) -> Array:
    """Root mean square of each row of errors (1 + B, m)."""
    return np.asarray(np.sqrt((errors**2).mean(-1)))
