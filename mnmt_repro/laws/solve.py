"""The one driver of all fits: checks, starts, minimum, is it an answer?, covariance, result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fit_result import LawFit, r_squared
from mnmt_repro.laws.law import Law
from mnmt_repro.laws.uncertainty import free_residuals

L = TypeVar("L", bound=Law)


def fit(law: L, loss: Array, *, reason: str = "", **details: Any) -> LawFit[L]:
    """Fit a law to losses (m,) at its rows.

    Without an answer the numbers stay NaN, and the result says why.

    Parameters
    ----------
    reason : why no fit should be tried, where that is known already
    details : `left_out`, `runs` and `label` of the result
    """
    nothing = np.full((len(law.names), len(law.names)), math.nan)
    blank = LawFit(law=law, loss=loss, values=nothing[0], covariance=nothing, **details)
    reason = reason or law.cannot(loss)
    if not reason:
        best = law.optimum(loss)
        reason = law.doubt(best, loss)
    if reason:
        return replace(blank, reason=reason)
    held = tuple(words for words, at in zip(law.bounds(best), best.held, strict=True) if at)
    fitted = replace(blank, values=best.values, active_bounds=held, identified=True)
    if blank.runs:
        residual = free_residuals(fitted.residuals(), fitted.basis(), blank.runs)
        covariance = covariance_by_run(best.jacobian, law.weights, residual, best.held, blank.runs)
    else:
        covariance = covariance_of(best.jacobian, law.weights, 2 * best.objective, best.held)
    change = law.change(best.values)
    rss = float(fitted.residuals() @ fitted.residuals())
    return replace(
        fitted,
        covariance=change @ covariance @ change.T,
        rss=rss,
        r2=r_squared(loss, rss, fitted.weights),
    )


def covariance_of(jacobian: Array, weights: Array, rss: float, held: NDArray[np.bool_]) -> Array:
    """Covariance of least-squares parameters; NaN without degrees of freedom.

    Parameters
    ----------
    jacobian : (m, P)
    weights : (m,)
    held : (P,) bool
        Parameters at a bound: their rows and columns are zero.
    """
    free = ~held
    dof = len(jacobian) - int(free.sum())
    covariance = np.zeros((len(held), len(held)))
    j = jacobian[:, free] * np.sqrt(weights)[:, None]
    # Columns of one length first: multipliers and exponents differ by orders of magnitude, and the
    # pseudo-inverse would take the smaller ones for rounding.
    norm = np.linalg.norm(j, axis=0)
    inverse = np.linalg.pinv((j / norm).T @ (j / norm), hermitian=True) / np.outer(norm, norm)
    covariance[np.ix_(free, free)] = inverse * (rss / dof if dof > 0 else math.nan)
    return covariance


def covariance_by_run(
    jacobian: Array,
    weights: Array,
    residual: Array,
    held: NDArray[np.bool_],
    runs: tuple[str, ...],
) -> Array:
    """Covariance of least-squares parameters when the rows of one run err together.

    The sandwich by clusters: what a run adds to the gradient is one observation, however many rows
    it has. NaN unless there are more runs than free parameters.

    Parameters
    ----------
    jacobian, weights, held : as in `covariance_of`
    residual : (m,)
        From `uncertainty.free_residuals`.
    runs : name of each row's run
    """
    free = ~held
    names, run = np.unique(np.array(runs), return_inverse=True)
    few = len(names) <= free.sum()
    unit = covariance_of(jacobian, weights, float(len(jacobian) - free.sum()), held)
    rows = np.where(free, jacobian, 0.0) * (np.sqrt(weights) * residual)[:, None]
    sums = np.zeros((len(names), len(held)))
    np.add.at(sums, run, rows)
    return np.asarray(unit @ sums.T @ sums @ unit * (np.nan if few else 1.0))
