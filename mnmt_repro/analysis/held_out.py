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
    truth, predicted : (m,)
        What was observed, and what is predicted.
    spread : float
        Of all that was observed, the cells seen included.
    """

    truth: Array
    predicted: Array
    spread: float

    @property
    def relative(self) -> Array:
        """Errors relative to what was observed."""
        return self.predicted / self.truth - 1

    @property
    def of_spread(self) -> Array:
        """Errors as shares of the spread."""
        return (self.predicted - self.truth) / self.spread


def predict_unseen(
    cells: pd.DataFrame, unseen: pd.Series, law: FractionFit, column: str = "loss", n: str = "n"
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

    Returns
    -------
    by the law, and without any law: by the nearest cell seen
    """
    seen, rest = cells[~unseen], cells[unseen]
    truth, spread = rest[column].to_numpy(), float(np.ptp(cells[column].to_numpy()))
    by_law, nearest = law.predict(rest["p"], rest[n]), nearest_seen(seen, rest, column, n)
    return (
        Unseen(truth=truth, predicted=by_law, spread=spread),
        Unseen(truth=truth, predicted=nearest, spread=spread),
    )


def nearest_seen(seen: pd.DataFrame, held: pd.DataFrame, column: str, n: str) -> Array:
    """No law: the value at the nearest weight seen, and there at the nearest size."""
    found = []
    for p, size in zip(held["p"], held[n], strict=True):
        distance = (seen["p"] - p).abs()
        near = seen[distance <= distance.min() + 1e-9]
        apart = np.abs(np.log(near[n] / size))
        found.append(near.loc[apart <= apart.min() + 1e-9, column].mean())
    return np.array(found)
