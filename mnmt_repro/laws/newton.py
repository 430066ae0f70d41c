"""Damped Newton steps in a box, for squared or Huber loss, on a batch of problems at once.

For the laws that variable projection does not cover. Gauss-Newton, plus second derivatives where a
model gives them (the Huber loss with a small delta is nearly an absolute value, and Gauss-Newton
alone crawls there), damped as Levenberg and Marquardt do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws.checks import Array

Index = NDArray[np.intp]


class Model(Protocol):
    """Residuals of a batch of problems; `index` says which problem a row of `theta` belongs to."""

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        """Residuals (b, m) and Jacobian (b, m, k) at parameters `theta` (b, k)."""

    def curvature(self, theta: Array, index: Index, score: Array) -> Array | float:
        """Sum over rows of `score` (b, m) times the residual's Hessian: (b, k, k), or 0 to skip."""


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """Optimum of each problem.

    Attributes
    ----------
    theta : (B, k)
    objective : (B,)
        Weighted sum of Huber losses, or half the weighted sum of squares without a delta.
    converged : (B,) bool
    held : (B, k) bool
        Parameters at a bound that would leave the box if they could.
    """

    theta: Array
    objective: Array
    converged: NDArray[np.bool_]
    held: NDArray[np.bool_]


def huber(residual: Array, delta: float | None) -> tuple[Array, Array, Array]:
    """Huber's loss, its first and second derivative; half the square when `delta` is None.

    Examples
    --------
    >>> [float(part[0]) for part in huber(np.array([3.0]), 1.0)]
    [2.5, 1.0, 0.0]
    """
    if delta is None:
        return 0.5 * residual**2, residual, np.ones_like(residual)
    inside = np.abs(residual) <= delta
    loss = np.where(inside, 0.5 * residual**2, delta * (np.abs(residual) - 0.5 * delta))
    return loss, np.clip(residual, -delta, delta), inside.astype(float)


def minimise(
    model: Model,
    start: Array,
    weights: Array,
    *,
    lower: Array | float = -np.inf,
    upper: Array | float = np.inf,
    delta: float | None = None,
    iterations: int = 500,
    tolerance: float = 1e-13,
) -> Minimum:
    """Minimise the weighted loss of each problem from its own start.

    Parameters
    ----------
    model : see `Model`
    start : (B, k)
    weights : (B, m) or (1, m)
    lower, upper : (k,) or a number
    delta : of Huber's loss; None for squares
    iterations : most steps
    tolerance : relative fall of the objective below which, four times in a row, one is done
    """
    lower, upper = (np.broadcast_to(bound, start.shape[1:]) for bound in (lower, upper))
    weights = np.broadcast_to(weights, (len(start), weights.shape[1]))
    theta = np.clip(start, lower, upper)
    index = np.arange(len(theta))
    rounding = 1e-25 * weights.sum(1)  # an exact law leaves residuals of rounding size
    damping = np.full(len(theta), 1e-3)
    quiet = np.zeros(len(theta), dtype=int)
    objective = _objective(model, theta, index, weights, delta)
    done = np.zeros(len(theta), dtype=bool)
    for _ in range(iterations):
        index = np.flatnonzero(~done)
        if not len(index):
            break
        now = theta[index]
        gradient, hessian, metric = _derivatives(model, now, index, weights[index], delta)
        free = ~_outward(now, gradient, lower, upper)
        step = _step(gradient, hessian + damping[index, None, None] * metric, free)
        trial = np.clip(now + step, lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):
            value = _objective(model, trial, index, weights[index], delta)
        fall = objective[index] - value
        better = fall >= 0  # false for NaN
        theta[index[better]] = trial[better]
        small = np.abs(fall) <= tolerance * objective[index] + rounding[index]
        small |= (np.abs(trial - now) <= 1e-11 * (1.0 + np.abs(now))).all(1)
        quiet[index] = np.where(small, quiet[index] + 1, 0)
        objective[index[better]] = value[better]
        damping[index] = np.clip(damping[index] * np.where(better, 0.2, 5.0), 1e-12, 1e16)
        done[index] = (quiet[index] >= 4) | ((damping[index] >= 1e16) & ~better)
    everything = np.arange(len(theta))
    gradient = _derivatives(model, theta, everything, weights, delta)[0]
    return Minimum(
        theta=theta,
        objective=objective,
        converged=done,
        held=_outward(theta, gradient, lower, upper),
    )


def _objective(
    model: Model, theta: Array, index: Index, weights: Array, delta: float | None
) -> Array:
    return (weights * huber(model.residual(theta, index)[0], delta)[0]).sum(1)


def _derivatives(
    model: Model, theta: Array, index: Index, weights: Array, delta: float | None
) -> tuple[Array, Array, Array]:
    """Gradient (b, k), Hessian (b, k, k) and the metric of the damping (b, k, k), diagonal."""
    residual, jacobian = model.residual(theta, index)
    _, score, second = huber(residual, delta)
    gradient = np.einsum("bm,bmk->bk", weights * score, jacobian)
    transposed = jacobian.transpose(0, 2, 1)
    hessian = (transposed * (weights * second)[:, None, :]) @ jacobian
    hessian = hessian + model.curvature(theta, index, weights * score)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = np.where(residual == 0, second, score / residual)
    size = np.einsum("bm,bmk->bk", weights * shrink, jacobian**2)
    size = np.maximum(size, 1e-12 * size.max(1, keepdims=True) + 1e-300)
    return gradient, hessian, size[:, :, None] * np.eye(theta.shape[1])


def _outward(theta: Array, gradient: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Parameters at a bound whose descent direction leaves the box."""
    return ((theta <= lower) & (gradient > 0)) | ((theta >= upper) & (gradient < 0))


def _step(gradient: Array, matrix: Array, free: NDArray[np.bool_]) -> Array:
    """Newton step over the free parameters; steepest descent where it would climb."""
    eye = np.eye(gradient.shape[1])
    both = free[:, :, None] & free[:, None, :]
    masked = np.where(both, matrix, 0.0) + eye * ~free[:, :, None]
    right = np.where(free, -gradient, 0.0)
    try:
        step = np.linalg.solve(masked, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        step = (np.linalg.pinv(masked, hermitian=True) @ right[:, :, None])[:, :, 0]
    climbs = ~((step * gradient).sum(1) < 0)
    diagonal = np.abs(np.einsum("bkk->bk", masked))
    return np.where(climbs[:, None], right / diagonal, step)
