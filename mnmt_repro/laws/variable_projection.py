"""Variable projection: power laws with one shared exponent, thousands of fits in one call.

For a fixed exponent the law ``loss = beta[g] * x**-alpha + l_inf`` is linear in the multipliers
and in the constant, so both are solved in closed form (Golub & Pereyra, 1973) and only ``alpha`` is
left to search, in one bounded dimension. Every array has a leading batch axis.

One group is the power law (Eq. 3 and 6); a group for each mixture weight is the joint law (Eq. 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, elementwise

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.minimise import Minimum, joined

ALPHA_BOUNDS = (1e-3, 10.0)
"""Exponents searched; a fit that ends at either end is not identified."""

_GRID = np.geomspace(*ALPHA_BOUNDS, 40)
"""Exponents that bracket the least one: noise can give the profile several minima."""
_RTOL = 4 * np.finfo(float).eps
"""Relative precision of an exponent, the finest that `scipy` searches with."""
_LEVEL = 1e-13
"""Slope that counts as level, as a share of the bracket's ends: below it is rounding alone."""
_BATCH = 2**16
"""Losses fitted at once, in problems of m: the arrays of a step then stay in the cache."""


@dataclass(frozen=True, kw_only=True)
class _Problem:
    log_x: Array  # (m,) or (B, m)
    membership: Array  # (m, G) one-hot
    weights: Array  # (m,) or (B, m)
    lower: float

    def of(self, rows: NDArray[np.intp] | slice) -> _Problem:
        """The problem of some rows of the batch."""
        own = {k: v[rows] for k in ("log_x", "weights") if (v := getattr(self, k)).ndim == 2}
        return replace(self, **own) if own else self

    def solve(self, alpha: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """Best multipliers and constant at each exponent.

        Parameters
        ----------
        alpha : (B,) or (1,)
        y : (B, m)

        Returns
        -------
        beta (B, G), l_inf (B,), rss (B,), gradient of rss with respect to alpha (B,)
        """
        z = np.exp(-alpha[:, None] * self.log_x)
        wz = z * self.weights
        each = np.atleast_2d(self.weights)
        s, t, w = (wz * z) @ self.membership, wz @ self.membership, each.sum(1)
        zy, v = self._gather(wz, y), self._gather(each, y).sum(1)
        ratio = t / s
        t_part, zy_part = t * ratio, zy * ratio
        active = np.ones(np.broadcast_shapes(zy.shape, s.shape))
        # The profile over l_inf is convex and piecewise quadratic: Newton from the piece where all
        # multipliers are positive is monotone, and ends after at most one step a group.
        for _ in range(self.membership.shape[1] + 1):
            # Zero where the powers of each group are all alike: any l_inf then fits as well, and
            # the division gives none. The lowest is taken.
            slope = w - _dot(active, t_part)
            with np.errstate(divide="ignore", invalid="ignore"):
                l_inf = (v - _dot(active, zy_part)) / slope
            l_inf = np.where(np.isfinite(l_inf), np.maximum(l_inf, self.lower), self.lower)
            raw = (zy - l_inf[:, None] * t) / s
            if np.array_equal(now := raw > 0, active):
                break
            active = now.astype(float)
        beta = np.maximum(raw, 0.0)
        residual = y - self._spread(beta, z) - l_inf[:, None]
        rss = self._gather(each, residual**2).sum(1)
        # The multipliers and the constant are at their best, so that their own change with alpha
        # adds nothing: the derivative is the one at fixed beta and l_inf.
        gradient = 2.0 * _dot(beta, self._gather(wz * self.log_x, residual))
        return beta, l_inf, rss, gradient

    def _gather(self, factor: Array, values: Array) -> Array:
        """Sum of ``factor * values`` over each group's rows: (1 or B, m) and (B, m) to (B, G)."""
        if len(factor) == 1:  # one matrix product; an array of all products is slow to fill
            return values @ (factor.T * self.membership)
        return (factor * values) @ self.membership

    def _spread(self, beta: Array, z: Array) -> Array:
        """Each row's multiplier times its power: (B, G) and (1 or B, m) to (B, m)."""
        if len(z) == 1:
            return beta @ (self.membership.T * z)
        return (beta @ self.membership.T) * z


def _dot(a: Array, b: Array) -> Array:
    """Sum of products over the last axis."""
    return np.einsum("bg,bg->b", a, b)


def project(
    log_x: Array, y: Array, group: NDArray[np.intp], weights: Array, lower: float
) -> Minimum:
    """Fit ``y = beta[group] * exp(-alpha * log_x) + l_inf`` to each row of `y` by least squares.

    Parameters
    ----------
    log_x : (m,) or (B, m)
        Logarithm of the size divided by the geometric mean of the sizes.
    y : (B, m)
    group : (m,) int
        Which multiplier a row uses, 0 .. G-1.
    weights : (m,) or (B, m)
        Weight of each squared residual; a row of weight zero is padding.
    lower : float
        Least value of the constant (0 for a loss; ``-inf`` sets it free).

    Returns
    -------
    Minimum
        Parameters in the order alpha, l_inf, then the multipliers at ``x = 1``.
    """
    membership = np.eye(int(group.max()) + 1)[group]
    problem = _Problem(log_x=log_x, membership=membership, weights=weights, lower=lower)
    size = max(1, _BATCH // y.shape[1])
    parts = [slice(i, i + size) for i in range(0, len(y), size)]
    return joined([_project_part(problem.of(part), y[part]) for part in parts])


def _where_level(
    problem: _Problem, y: Array, left: Array, right: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Exponents (B,) within brackets where the rss is level, and where it has such a place (B,)."""
    if len(y) == 1:  # the search of many at once takes more than twice as long for one

        def slope(a: float) -> float:
            return float(problem.solve(np.array([a]), y)[3][0])

        a, b = float(left[0]), float(right[0])
        if not np.sign(slope(a)) * np.sign(slope(b)) <= 0:
            return left, np.array([False])
        return np.array([brentq(slope, a, b, xtol=1e-300, rtol=_RTOL)]), np.array([True])

    def slopes(a: Array, rows: NDArray[np.intp]) -> Array:
        if len(rows) == len(y):  # none has ended yet: no need to copy them
            return problem.solve(a, y)[3]
        return problem.of(rows).solve(a, y[rows])[3]

    index = np.arange(len(y))
    root = elementwise.find_root(
        slopes, (left, right), args=(index,), maxiter=100, tolerances={"frtol": _LEVEL}
    )
    return root.x, root.success


def _project_part(problem: _Problem, y: Array) -> Minimum:
    if len(y) == 1:  # all exponents in one call
        rss = problem.solve(_GRID, y)[2][:, None]
    else:
        rss = np.stack([problem.solve(np.array([a]), y)[2] for a in _GRID])  # (K, B)
    best = rss.argmin(0)
    left, right = _GRID[np.maximum(best - 1, 0)], _GRID[np.minimum(best + 1, len(_GRID) - 1)]
    level, crossed = _where_level(problem, y, left, right)
    alpha = np.where(crossed, level, _GRID[best])
    edge = ~crossed & ((best == 0) | (best == len(_GRID) - 1))
    rest = np.flatnonzero(~crossed & ~edge)
    if len(rest):  # no change of sign in the bracket (several minima): search the value instead
        low = elementwise.find_minimum(
            lambda a, i: problem.of(i).solve(a, y[i])[2],
            (left[rest], alpha[rest], right[rest]),
            args=(rest,),
        )
        alpha[rest] = np.where(low.success, low.x, alpha[rest])
    beta, l_inf, rss_at, _ = problem.solve(alpha, y)
    return Minimum(
        theta=np.column_stack([alpha, l_inf, beta]),
        objective=rss_at / 2,
        converged=~edge,
        held=np.column_stack([edge, l_inf <= problem.lower, beta <= 0]),
    )
