"""How far fitted parameters move: the paper's perturbation, residual and seed bootstraps.

Sizes are never resampled: eight are too few, and each anchors the curve. What varies is the loss
at the sizes that were trained. All draws of a law are refitted in one batched call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, check_level

if TYPE_CHECKING:
    from mnmt_repro.laws.fit_result import LawFit

Resampling = Literal["perturbation", "residual", "seeds", "runs"]
"""Ways to draw losses and refit: functions of this module."""
Method = Literal["t"] | Resampling
"""Ways to an interval: Student's t from standard errors, or percentiles of refits."""
Asked = Literal["auto"] | Method
"""A method, or that a bound decides it; see `LawFit.interval_method`."""
METHOD_NAMES = {
    "t": "Student's t from standard errors",
    "residual": "percentiles of refits to resampled residuals",
    "seeds": "percentiles of refits to resampled seeds",
    "runs": "percentiles of refits in which the residuals of a run change sign together",
    "perturbation": "percentiles of refits to losses with 1 % of noise",
}
"""Each method in words."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Parameters refitted to drawn losses.

    Attributes
    ----------
    names : parameter names, in the order of the columns of `values`
    values : (B, P)
    losses : (B, m)
        The drawn losses themselves.
    """

    names: tuple[str, ...]
    values: Array
    losses: Array

    def std(self) -> dict[str, float]:
        """Return the standard deviation of each parameter."""
        return dict(zip(self.names, self.values.std(0, ddof=1).tolist(), strict=True))

    def spread(self) -> dict[str, float]:
        """`robust_sd` of each parameter (the shaded band of Figure 4)."""
        return dict(zip(self.names, robust_sd(self.values).tolist(), strict=True))

    def interval(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Percentile interval of each parameter."""
        low, high = percentiles(self.values, level)
        return {k: (float(a), float(b)) for k, a, b in zip(self.names, low, high, strict=True)}


def percentiles(values: Array, level: float) -> Array:
    """Ends of the central interval of `values` over the first axis, (2, ...)."""
    check_level(level)
    return np.asarray(np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0))


def robust_sd(values: Array) -> Array:
    """Half the central 68.27 % of `values` along the first axis.

    Their standard deviation were they Gaussian. Where a bound holds a parameter in some draws and
    not in others, the plain one says how far a few of them ran.
    """
    low, high = np.quantile(values, [0.158655, 0.841345], axis=0)
    return np.asarray((high - low) / 2)


def perturbation(fit: LawFit, *, sigma: float = 0.01, draws: int = 10_000, seed: int = 0) -> Draws:
    """Perturb each loss by Gaussian noise of 1 % of itself: the paper's way (footnote 5).

    Parameters
    ----------
    sigma : standard deviation of the noise as a fraction of the observed loss
    draws : number of refits
    seed : of the noise
    """
    if not sigma > 0:
        raise InputError(f"sigma: {sigma}; give a fraction of the loss above 0, such as 0.01")
    observed = fit.observed()
    noise = np.random.default_rng(seed).standard_normal((draws, len(observed)))
    return _refit(fit, observed * (1.0 + sigma * noise))


def residual_bootstrap(fit: LawFit, *, draws: int = 10_000, seed: int = 0) -> Draws:
    """Refit the law to its own curve plus resampled residuals.

    Residuals are weighted, centred and inflated by ``sqrt(m / dof)``, since a fit with few rows to
    spare leaves residuals smaller than the noise. Each draw scales them by its own `noise_scale`:
    without it, 95 % intervals from eight sizes cover the truth less than 90 % of the time.

    Raises
    ------
    InputError
        When there are as many parameters as rows: such a fit leaves no residuals.
    """
    if fit.degrees_of_freedom < 1:
        raise InputError(
            f"residual bootstrap: {fit.observations} rows leave no residuals; "
            "train more sizes or use the perturbation method"
        )
    root = np.sqrt(fit.row_weights())
    residual = (fit.observed() - fit.fitted()) * root
    residual = (residual - residual.mean()) * np.sqrt(len(root) / fit.degrees_of_freedom)
    pick = np.random.default_rng(seed).integers(len(root), size=(draws, len(root)))
    scale = noise_scale(fit.degrees_of_freedom, draws=draws, seed=seed)
    return _refit(fit, fit.fitted() + scale[:, None] * residual[pick] / root)


def noise_scale(dof: int, *, draws: int, seed: int) -> Array:
    """Draw how far the noise may differ from its estimate: ``sqrt(dof / chi-squared(dof))``.

    As in Student's t, which percentiles of the draws then resemble.
    """
    return np.sqrt(dof / np.random.default_rng(seed + 1).chisquare(dof, size=draws))


def seed_bootstrap(fit: LawFit, *, draws: int = 10_000, seed: int = 0) -> Draws:
    """Refit the law to runs resampled among the seeds of one size and mixture.

    Rows with equal design (sizes, mixture weight) are seeds of one run. With k seeds a resampled
    mean varies by (k - 1)/k of the truth, so deviations are inflated by ``sqrt(k / (k - 1))``. Runs
    with one seed borrow the relative deviations of the others.

    Raises
    ------
    InputError
        When no run has two seeds.
    """
    observed, (_, cell) = fit.observed(), np.unique(fit.design(), axis=0, return_inverse=True)
    cell = cell.ravel()
    count = np.bincount(cell)
    mean = (np.bincount(cell, observed) / count)[cell]
    many = count[cell] > 1
    if not many.any():
        raise InputError("seed bootstrap: no size and mixture has two seeds; train more seeds")
    inflate = np.sqrt(count[cell] / np.maximum(count[cell] - 1, 1))
    deviation = (observed - mean) * inflate
    pool = (deviation / mean)[many]
    rng = np.random.default_rng(seed)
    losses = np.empty((draws, len(observed)))
    for c in range(len(count)):
        rows = np.flatnonzero(cell == c)
        if len(rows) > 1:
            picked = deviation[rows[rng.integers(len(rows), size=(draws, len(rows)))]]
        else:
            picked = observed[rows] * rng.choice(pool, size=(draws, 1))
        losses[:, rows] = mean[rows] + picked
    return _refit(fit, losses)


def free_residuals(fit: LawFit) -> Array:
    """Weighted residuals of each run from the law of all other runs, to first order, (m,).

    A run at an end of the sizes pulls the curve towards itself, so its residuals are smaller than
    its error. Within each run they are multiplied by the inverse of one less its part of the hat
    matrix. The covariance from them is that of the jackknife by runs (CR3), which covers with as
    few as twenty runs; with the inverse root (CR2), intervals covered 92 %.
    """
    residual = (fit.observed() - fit.fitted()) * np.sqrt(fit.row_weights())
    basis = fit.basis()
    for name in set(fit.runs):
        rows = np.array(fit.runs) == name
        value, vector = np.linalg.eigh(basis[rows].T @ basis[rows])
        value = np.clip(value, 0.0, 1 - 1e-9)
        stretch = 1 / (1 - value)
        side = basis[rows] @ vector
        residual[rows] += side @ (stretch * (side.T @ residual[rows]))
    return np.asarray(residual)


def run_bootstrap(fit: LawFit, *, draws: int = 10_000, seed: int = 0) -> Draws:
    """Refit the law to its own curve plus the residuals of whole runs, of either sign.

    Rows of one run (its checkpoints, test sets or domains) err together, so they are no independent
    evidence. In each draw all residuals of a run keep or change their sign (the wild cluster
    bootstrap). Residuals are those of `free_residuals`, scaled by `noise_scale` with the number of
    runs less the free parameters.

    Raises
    ------
    InputError
        Without names of runs, or with no more runs than free parameters.
    """
    if not fit.runs:
        raise InputError("run bootstrap: the fit has no names of runs; fit with groups=")
    names, run = np.unique(np.array(fit.runs), return_inverse=True)
    if fit.spare < 1:
        raise InputError(
            f"run bootstrap: {len(names)} runs are no more than {fit.free_parameters} parameters; "
            "train more runs"
        )
    residual = free_residuals(fit) / np.sqrt(fit.row_weights())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(names)))
    scale = noise_scale(fit.spare, draws=draws, seed=seed)
    losses = fit.fitted() + scale[:, None] * signs[:, run] * residual
    if fit.observed().min() > 0:  # an outlier's residual, with its sign changed, can pass zero
        losses = np.maximum(losses, 0.01 * fit.observed().min())
    return _refit(fit, losses)


def draw(fit: LawFit, method: Resampling, *, draws: int, seed: int) -> Draws:
    """Draws by the name of the method."""
    functions = {
        "perturbation": perturbation,
        "residual": residual_bootstrap,
        "seeds": seed_bootstrap,
        "runs": run_bootstrap,
    }
    if method not in functions:
        raise InputError(f"method: {method!r}; use one of {sorted(functions)}")
    if draws < 1:
        raise InputError(f"draws: {draws}; give 1 or more")
    return functions[method](fit, draws=draws, seed=seed)


def _refit(fit: LawFit, losses: Array) -> Draws:
    return Draws(names=fit.names, values=fit.refit(losses), losses=losses)
