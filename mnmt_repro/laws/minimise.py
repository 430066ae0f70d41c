"""Damped Newton steps in a box, for squared or Huber loss, on a batch of problems at once.

For the laws that variable projection does not cover. Gauss-Newton, plus second derivatives where a
law gives them (the Huber loss with a small delta is nearly an absolute value, and Gauss-Newton
alone crawls there), damped as Levenberg and Marquardt do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws.checks import Array

TOLERANCE = 1e-13
REFIT_TOLERANCE = 1e-9
"""Relative fall of the objective at which a fit, or a refit to other noise, may end. That of refits
is far below their spread."""


class Curve:
    """A formula with its derivatives, at the same m rows for every problem of a batch."""

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Losses (b, m) and their Jacobian (b, m, k) at parameters `theta` (b, k)."""
        raise NotImplementedError

    def curvature(self, theta: Array, score: Array) -> Array | float:
        """Sum over rows of `score` (b, m) times the losses' Hessian: (b, k, k), or 0 to skip."""
        return 0.0


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
    curve: Curve,
    losses: Array,
    start: Array,
    weights: Array,
    *,
    lower: Array | float = -np.inf,
    upper: Array | float = np.inf,
    delta: float | None = None,
    iterations: int = 500,
    tolerance: float = TOLERANCE,
) -> Minimum:
    """Minimise the weighted loss of each problem from its own start.

    Parameters
    ----------
    curve : what is fitted
    losses : (B, m)
    start : (B, k)
    weights : (B, m) or (1, m)
        Of the squared residuals.
    lower, upper : (k,) or a number
    delta : of Huber's loss; None for squares
    iterations : most steps
    tolerance : relative fall of the objective below which, four times in a row, one is done
    """
    lower, upper = (np.broadcast_to(bound, start.shape[1:]) for bound in (lower, upper))
    weights = np.broadcast_to(weights, losses.shape)
    theta = np.clip(start, lower, upper)
    # An exact law leaves residuals of rounding size, of which no fall is a small fraction.
    rounding = 1e-25 * weights.sum(1)
    damping = np.full(len(theta), 1e-3)
    quiet = np.zeros(len(theta), dtype=int)
    value, jacobian = curve.evaluate(theta)
    residual = value - losses
    objective = (weights * huber(residual, delta)[0]).sum(1)
    done = np.zeros(len(theta), dtype=bool)
    for _ in range(iterations):
        # Problems end after different numbers of steps; only those still moving cost anything.
        index = np.flatnonzero(~done)
        if not len(index):
            break
        now = theta[index]
        gradient, hessian, metric = _derivatives(
            curve, now, residual[index], jacobian[index], weights[index], delta
        )
        # A parameter pushed against its bound is taken out of the step. Clipping alone would bend
        # the step of all others, whose optimum depends on where that one stays.
        free = ~_outward(now, gradient, lower, upper)
        step = _step(gradient, hessian + damping[index, None, None] * metric, free)
        trial = np.clip(now + step, lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = curve.evaluate(trial)
            left = value - losses[index]
            reached = (weights[index] * huber(left, delta)[0]).sum(1)
        fall = objective[index] - reached
        better = fall >= 0  # false for NaN, which a step too far gives
        small = np.abs(fall) <= tolerance * objective[index] + rounding[index]
        small |= (np.abs(trial - now) <= 1e-11 * (1.0 + np.abs(now))).all(1)
        # Four in a row: one small fall may be the work of a large damping far from the optimum.
        quiet[index] = np.where(small, quiet[index] + 1, 0)
        moved = index[better]
        theta[moved], objective[moved] = trial[better], reached[better]
        residual[moved], jacobian[moved] = left[better], slope[better]
        # The damping falls as fast as it rises, so that one failed step costs one step back.
        damping[index] = np.clip(damping[index] * np.where(better, 0.2, 5.0), 1e-12, 1e16)
        done[index] = (quiet[index] >= 4) | ((damping[index] >= 1e16) & ~better)
    gradient = _derivatives(curve, theta, residual, jacobian, weights, delta)[0]
    return Minimum(
        theta=theta,
        objective=objective,
        converged=done,
        held=_outward(theta, gradient, lower, upper),
    )


def joined(parts: Sequence[Minimum]) -> Minimum:
    """Put the problems of several batches one after another."""
    return Minimum(**{k: np.concatenate([vars(part)[k] for part in parts]) for k in vars(parts[0])})


def least(attempts: Sequence[Minimum], problems: int) -> Minimum:
    """Keep the best attempt at each problem; each attempt is at all `problems`, in order.

    An attempt may also hold several starts: all problems from one, then all from the next.
    """
    every = joined(attempts)
    best = every.objective.reshape(-1, problems).argmin(0) * problems + np.arange(problems)
    return Minimum(**{name: part[best] for name, part in vars(every).items()})


def _derivatives(
    curve: Curve,
    theta: Array,
    residual: Array,
    jacobian: Array,
    weights: Array,
    delta: float | None,
) -> tuple[Array, Array, Array]:
    """Gradient (b, k), Hessian (b, k, k) and the metric of the damping (b, k, k), diagonal."""
    _, score, second = huber(residual, delta)
    gradient = np.einsum("bm,bmk->bk", weights * score, jacobian)
    transposed = jacobian.transpose(0, 2, 1)
    hessian = (transposed * (weights * second)[:, None, :]) @ jacobian
    hessian = hessian + curve.curvature(theta, weights * score)
    # Marquardt's metric: each parameter is damped in its own unit, so that exponents and logarithms
    # of multipliers need no common scale. Rows beyond delta have no second derivative; the slope
    # over the residual stands in, or a parameter that only such rows see would go undamped.
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
    # A held parameter keeps its row as one of the identity: all problems then have one shape, and
    # one call solves them.
    eye = np.eye(gradient.shape[1])
    both = free[:, :, None] & free[:, None, :]
    masked = np.where(both, matrix, 0.0) + eye * ~free[:, :, None]
    right = np.where(free, -gradient, 0.0)
    try:
        step = np.linalg.solve(masked, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # One singular problem fails the whole call: pseudo-inverses for all, this once.
        step = (np.linalg.pinv(masked, hermitian=True) @ right[:, :, None])[:, :, 0]
    # Second derivatives can make the matrix indefinite, and its step an ascent.
    climbs = ~((step * gradient).sum(1) < 0)
    diagonal = np.abs(np.einsum("bkk->bk", masked))
    return np.where(climbs[:, None], right / diagonal, step)
