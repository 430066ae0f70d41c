"""Variable projection: power laws with one shared exponent, thousands of fits in one call.

For a fixed exponent the law ``loss = beta[g] * x**-alpha + l_inf`` is linear in the multipliers
and in the constant, so both are solved in closed form (Golub & Pereyra, 1973) and only ``alpha`` is
left to search, in one bounded dimension. Every array has a leading batch axis.

One group is the power law (Eq. 3 and 6); a group for each mixture weight is the joint law (Eq. 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    log_x: Array  # (m,)
    membership: Array  # (m, G) one-hot
    weights: Array  # (m,)
    lower: float

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
        s, t, zy = (wz * z) @ self.membership, wz @ self.membership, self._gather(wz, y)
        beta, l_inf = self._linear(s, t, zy, y @ self.weights)
        residual = y - (beta @ self.membership.T) * z - l_inf[:, None]
        rss = residual**2 @ self.weights
        # The multipliers and the constant are at their best, so that their own change with alpha
        # adds nothing: the derivative is the one at fixed beta and l_inf.
        gradient = 2.0 * _dot(beta, self._gather(wz * self.log_x, residual))
        return beta, l_inf, rss, gradient

    def scan(self, alphas: Array, y: Array) -> Array:
        """Rss (K, B) at each of some exponents, from sums over rows: fast, and rounded more.

        It serves to bracket an exponent.
        """
        w, v, squares = self.weights.sum(), y @ self.weights, y**2 @ self.weights
        rss = np.empty((len(alphas), len(y)))
        for k, z in enumerate(np.exp(-alphas[:, None] * self.log_x)):
            wz = (z * self.weights)[:, None] * self.membership
            s, t, zy = (z @ wz)[None], wz.sum(0)[None], y @ wz
            beta, l_inf = self._linear(s, t, zy, v)
            explained = _dot(beta, 2.0 * (zy - l_inf[:, None] * t) - beta * s)
            rss[k] = squares - explained - l_inf * (2.0 * v - l_inf * w)
        return rss

    def _linear(self, s: Array, t: Array, zy: Array, v: Array) -> tuple[Array, Array]:
        """Best multipliers (B, G) and constant (B,) from sums over rows.

        The sums are those of weight * z**2, weight * z and weight * z * y over each group's rows,
        (1 or B, G), and of weight * y over all rows, (B,).
        """
        ratio = t / s
        t_part, zy_part = t * ratio, zy * ratio
        active = np.ones(np.broadcast_shapes(zy.shape, s.shape))
        # The profile over l_inf is convex and piecewise quadratic: Newton from the piece where all
        # multipliers are positive is monotone, and ends after at most one step a group.
        for _ in range(self.membership.shape[1] + 1):
            # Zero where the powers of each group are all alike: any l_inf then fits as well, and
            # the division gives none. The lowest is taken.
            slope = self.weights.sum() - _dot(active, t_part)
            with np.errstate(divide="ignore", invalid="ignore"):
                l_inf = (v - _dot(active, zy_part)) / slope
            l_inf = np.where(np.isfinite(l_inf), np.maximum(l_inf, self.lower), self.lower)
            raw = (zy - l_inf[:, None] * t) / s
            if np.array_equal(now := raw > 0, active):
                break
            active = now.astype(float)
        return np.maximum(raw, 0.0), l_inf

    def _gather(self, factor: Array, values: Array) -> Array:
        """Sum of ``factor * values`` over each group's rows: (B, m) and (1 or B, m) to (B, G)."""
        return (factor * values) @ self.membership


def _dot(a: Array, b: Array) -> Array:
    """Sum of products over the last axis."""
    return np.einsum("bg,bg->b", a, b)


def project(
    log_x: Array, y: Array, group: NDArray[np.intp], weights: Array, lower: float
) -> Minimum:
    """Fit ``y = beta[group] * exp(-alpha * log_x) + l_inf`` to each row of `y` by least squares.

    Parameters
    ----------
    log_x : (m,)
        Logarithm of the size divided by the geometric mean of the sizes.
    y : (B, m)
    group : (m,) int
        Which multiplier a row uses, 0 .. G-1.
    weights : (m,)
        Weight of each squared residual.
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
    return joined([_project_part(problem, y[part]) for part in parts])


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
        own = y if len(rows) == len(y) else y[rows]  # no copy until one has ended
        return problem.solve(a, own)[3]

    return _roots(slopes, left, right)


def _roots(
    function: Callable[[Array, NDArray[np.intp]], Array], a: Array, b: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Roots (B,) of a function in brackets from `a` to `b`, and where its sign changes (B,).

    Chandrupatla's method (1997). `scipy.optimize.elementwise` has it too, and takes twice as long
    as the function itself.

    Parameters
    ----------
    function
        Of places (b,) and their positions among the brackets (b,).
    """
    rows = np.arange(len(a))
    fa, fb = function(a, rows), function(b, rows)
    crossed = np.sign(fa) * np.sign(fb) <= 0
    root = np.where(np.abs(fa) < np.abs(fb), a, b)
    level = _LEVEL * np.minimum(np.abs(fa), np.abs(fb))
    open_, t = crossed, np.full(len(a), 0.5)
    while open_.any():
        if not open_.all():
            a, b, fa, fb, t, level = (each[open_] for each in (a, b, fa, fb, t, level))
            rows = rows[open_]
        x = a + t * (b - a)
        fx = function(x, rows)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        root[rows] = best = np.where(np.abs(fa) < np.abs(fb), a, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            least = _RTOL * np.abs(best) / np.abs(b - a)
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            inverse = fa / (fb - fa) * fc / (fb - fc)
            inverse += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        curved = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(inverse)
        t = np.clip(np.where(curved, inverse, 0.5), least, 1 - least)
        open_ = (np.minimum(np.abs(fa), np.abs(fb)) > level) & (least < 0.5)
    return root, crossed


def _project_part(problem: _Problem, y: Array) -> Minimum:
    rss = problem.solve(_GRID, y)[2][:, None] if len(y) == 1 else problem.scan(_GRID, y)
    best = rss.argmin(0)
    left, right = _GRID[np.maximum(best - 1, 0)], _GRID[np.minimum(best + 1, len(_GRID) - 1)]
    level, crossed = _where_level(problem, y, left, right)
    alpha = np.where(crossed, level, _GRID[best])
    edge = ~crossed & ((best == 0) | (best == len(_GRID) - 1))
    rest = np.flatnonzero(~crossed & ~edge)
    if len(rest):  # no change of sign in the bracket (several minima): search the value instead
        low = elementwise.find_minimum(
            lambda a, i: problem.solve(a, y[i])[2],
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
