"""Log f(p) of joint laws refitted to drawn losses (Eq. 10), and how it differs between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws import JointLawFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.joint_law import log_fraction
from mnmt_repro.papers.effects.cells import Cells
from mnmt_repro.papers.effects.intervals import Measure, Measures, common_draws, measured


def log_fractions(fit: JointLawFit, weights: Sequence[float], losses: Array) -> Array:
    """Log f(p) (1 + B, W) at some weights, of a law refitted to losses (1 + B, m) of its rows."""
    every = log_fraction(fit.refit(losses), int(fit.law.index(1.0)[0]))
    return every[:, fit.law.index(weights)]


def contrast(log_ratio: Array) -> Measures:
    """Mean and largest of log ratios (1 + B, W)."""
    return {
        "mean_log_ratio": measured(log_ratio.mean(1)),
        "max_log_ratio": Measure(value=float(np.abs(log_ratio[0]).max())),
    }


def slope_on(log_f: Sequence[Array], similarity: Array) -> Measures:
    """`slope` of the mean log f (1 + B, W) of several laws on their languages' similarity.

    The `spread` is the largest mean log f less the smallest.
    """
    away = similarity - similarity.mean()
    mean = np.array([each.mean(1) for each in common_draws(*log_f)])
    slope = away @ mean / (away @ away)
    return {"slope": measured(slope), "spread": Measure(value=float(np.ptp(mean[:, 0])))}


def interpolated(cells: Cells, weights: Sequence[float]) -> int:
    """How many sizes at each of the weights, at least, have a loss that a single pair also has.

    A fraction is read off the losses of single-pair models. Beyond the range of those losses it is
    an extrapolation.
    """
    single = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(single.min(), single.max())
    return min(int((inside & (cells["p"] == p)).sum()) for p in weights)


def pooled_slope(x: Array, y: Array, group: NDArray[np.generic]) -> Array:
    """One slope and an intercept a group, for each row of `y` (B, m); NaN in `y` gives NaN."""
    _, place = np.unique(group, return_inverse=True)
    member = np.eye(int(place.max()) + 1)[place]
    x = x - member @ ((x @ member) / member.sum(0))
    return np.asarray((y @ x) / (x @ x))
