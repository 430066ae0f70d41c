"""How far fitted parameters move: the paper's perturbation, residual and run bootstraps.

Sizes are never resampled: eight are too few, and each anchors the curve. What varies is the loss
at the sizes that were trained. Each function draws losses (B, m); `LawFit.draws` refits the law to
all of them in one call.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array

LEVEL = 0.95
"""Share of repeated experiments whose interval would hold the truth: of all intervals."""

Resampling = Literal["perturbation", "residual", "runs"]
"""Ways to draw losses and refit."""
Method = Literal["t"] | Resampling
"""Ways to an interval: Student's t from standard errors, or percentiles of refits."""
METHOD_NAMES = {
    "t": "Student's t from standard errors",
    "residual": "percentiles of refits to resampled residuals",
    "runs": "percentiles of refits in which the residuals of a run change sign together",
}
"""Each method that `LawFit` chooses, in words."""


def percentiles(values: Array) -> Array:
    """Ends of the central interval (`LEVEL`) of `values` over the first axis, (2, ...)."""
    return np.asarray(np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0))


def robust_sd(values: Array) -> Array:
    """Half the central 68.27 % of `values` along the first axis.

    Their standard deviation were they Gaussian. Where a bound holds a parameter in some draws and
    not in others, the plain one says how far a few of them ran.
    """
    low, high = np.quantile(values, [0.158655, 0.841345], axis=0)
    return np.asarray((high - low) / 2)


def perturbed(loss: Array, draws: int, seed: int, sigma: float = 0.01) -> Array:
    """Losses with Gaussian noise of a share of each, by default 1 %: the paper's (footnote 5)."""
    noise = np.random.default_rng(seed).standard_normal((draws, len(loss)))
    return loss * (1.0 + sigma * noise)


def residual_bootstrap(
    loss: Array, fitted: Array, weights: Array, dof: int, draws: int, seed: int
) -> Array:
    """A fitted curve plus resampled residuals.

    Residuals are weighted, centred and inflated by ``sqrt(m / dof)``, since a fit with few rows to
    spare leaves residuals smaller than the noise. Each draw scales them by its own `noise_scale`:
    without it, 95 % intervals from eight sizes cover the truth less than 90 % of the time.

    Raises
    ------
    InputError
        When there are as many parameters as rows: such a fit leaves no residuals.
    """
    if dof < 1:
        raise InputError(
            f"residual bootstrap: {len(loss)} rows leave no residuals; "
            "train more sizes or use the perturbation method"
        )
    root = np.sqrt(weights)
    residual = (loss - fitted) * root
    residual = (residual - residual.mean()) * np.sqrt(len(root) / dof)
    pick = np.random.default_rng(seed).integers(len(root), size=(draws, len(root)))
    return fitted + noise_scale(dof, draws=draws, seed=seed)[:, None] * residual[pick] / root


def noise_scale(dof: int, *, draws: int, seed: int) -> Array:
    """Draw how far the noise may differ from its estimate: ``sqrt(dof / chi-squared(dof))``.

    As in Student's t, which percentiles of the draws then resemble.
    """
    return np.sqrt(dof / np.random.default_rng(seed + 1).chisquare(dof, size=draws))


def free_residuals(residual: Array, basis: Array, runs: tuple[str, ...]) -> Array:
    """Weighted residuals (m,) of each run from the law of all other runs, to first order, (m,).

    A run at an end of the sizes pulls the curve towards itself, so its residuals are smaller than
    its error. Within each run they are multiplied by the inverse of one less its part of the hat
    matrix, made of the `basis` (m, free). The covariance from them is that of the jackknife by runs
    (CR3), which covers with as few as twenty runs; with the inverse root (CR2), intervals covered
    92 %.
    """
    residual = residual.copy()
    for name in set(runs):
        rows = np.array(runs) == name
        value, vector = np.linalg.eigh(basis[rows].T @ basis[rows])
        stretch = 1 / (1 - np.clip(value, 0.0, 1 - 1e-9))
        side = basis[rows] @ vector
        residual[rows] += side @ (stretch * (side.T @ residual[rows]))
    return residual


def run_bootstrap(
    fitted: Array, residual: Array, runs: tuple[str, ...], parameters: int, draws: int, seed: int
) -> Array:
    """A fitted curve plus the residuals of whole runs, of either sign.

    Rows of one run (its checkpoints, test sets or domains) err together, so they are no independent
    evidence. In each draw all residuals of a run keep or change their sign (the wild cluster
    bootstrap). The residuals (m,), those of `free_residuals` without their weights, are scaled by
    `noise_scale` with the number of runs less that of the free parameters.

    Raises
    ------
    InputError
        Without names of runs, or with no more runs than free parameters.
    """
    if not runs:
        raise InputError("run bootstrap: the fit has no names of runs; fit with groups=")
    names, run = np.unique(np.array(runs), return_inverse=True)
    spare = len(names) - parameters
    if spare < 1:
        raise InputError(
            f"run bootstrap: {len(names)} runs are no more than {parameters} parameters; "
            "train more runs"
        )
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(names)))
    scale = noise_scale(spare, draws=draws, seed=seed)
    return fitted + scale[:, None] * signs[:, run] * residual
