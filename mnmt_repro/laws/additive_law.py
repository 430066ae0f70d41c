"""The additive law in parameters and data: ``loss = E + A * N**-alpha + B * D**-beta``.

Fitted as a log-sum-exp, by least squares of the loss or of the log loss, or with Huber's loss on
the log loss (Hoffmann et al., 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, error_weights, run_names, same_length, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.law import TREND_LEVEL, Law, Optimum, is_flat, trend_p_value
from mnmt_repro.laws.minimise import Minimum

_LOWER = np.array([-40.0, -40.0, -40.0, 1e-3, 1e-3])
_UPPER = np.array([300.0, 300.0, 300.0, 5.0, 5.0])
_VANISHED = np.log(1e-8)  # of a term, in units of the loss; its logarithm falls ever more slowly
LEAST_ROWS = 50
"""From which rows can be drawn with replacement: of fewer, a resample can lose a whole size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveLaw(Law):
    """``loss = E + A * n**-alpha + B * d**-beta``.

    Searched as theta = (log E, log A', log B', alpha, beta), with sizes divided by their
    means: a sum of three exponentials, as Hoffmann et al. write it. Every term stays positive, and
    the log of the sum is as easily fitted as the sum.

    Attributes
    ----------
    n : (m,)
        Parameters of each row.
    d : (m,)
        Data of each row.
    log_loss : bool
        Whether the logarithm of the losses is fitted.
    """

    n: Array
    d: Array
    log_loss: bool

    formula = "loss = E + A * n**-alpha + B * d**-beta"
    inputs = ("n", "d")
    names = ("E", "A", "B", "alpha", "beta")
    logarithms = (0, 1, 2)
    boxes = ((_LOWER, _UPPER),)

    @property
    def rows(self) -> Array:
        return np.column_stack([self.n, self.d])

    def curve_names(self) -> list[str]:
        return [f"{d:.3g}" for d in self.d]

    def row_weights(self, loss: Array) -> Array:
        return error_weights("relative" if self.log_loss else "absolute", loss)

    @property
    def shift(self) -> Array:
        shift = np.zeros((5, 5))
        shift[1, 3], shift[2, 4] = np.log(self.rows).mean(0)
        return shift

    def model(self, theta: Array, rows: Array) -> Array:
        return np.asarray(self._terms(theta, rows)[0].sum(-1))

    def _terms(self, theta: Array, rows: Array) -> tuple[Array, Array]:
        """Each term of the law (..., m, 3) and the derivatives of its logarithm (3, m, 5)."""
        x, y = (np.log(rows) - np.log(self.rows).mean(0)).T
        direction = np.zeros((3, len(x), 5))
        direction[0, :, 0] = direction[1, :, 1] = direction[2, :, 2] = 1.0
        direction[1, :, 3], direction[2, :, 4] = -x, -y
        logs = np.einsum("...k,tmk->...mt", theta, direction)
        return np.exp(np.minimum(logs, 300.0)), direction

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        terms, direction = self._terms(theta, self.rows)
        total = terms.sum(2)
        weight = terms / total[:, :, None] if self.log_loss else terms
        jacobian = np.einsum("bmt,tmk->bmk", weight, direction)
        return self.target(total), jacobian

    def curvature(self, theta: Array, score: Array) -> Array | float:
        # By squares Gauss-Newton finds the same optimum in half the time.
        if self.delta is None:
            return 0.0
        terms, direction = self._terms(theta, self.rows)
        weight = terms / terms.sum(2)[:, :, None] if self.log_loss else terms
        hessian = np.zeros((len(theta), 5, 5))
        for t in range(3):
            scaled = direction[t].T * (score * weight[:, :, t])[:, None, :]
            hessian += scaled @ direction[t]
        if self.log_loss:
            mean = np.einsum("bmt,tmk->bmk", weight, direction)
            hessian -= (mean.transpose(0, 2, 1) * score[:, None, :]) @ mean
        return hessian

    def target(self, losses: Array) -> Array:
        return np.log(losses) if self.log_loss else losses

    def starts(self, loss: Array) -> Array:
        """The best point of a grid of exponents, at each of which the law is linear, (1, 5)."""
        x, y = (np.log(self.rows) - np.log(self.rows).mean(0)).T
        exponents = np.geomspace(0.05, 2.0, 12)
        best, start = np.inf, np.zeros(5)
        for alpha in exponents:
            for beta in exponents:
                basis = np.column_stack([np.ones_like(x), np.exp(-alpha * x), np.exp(-beta * y)])
                coefficients = np.linalg.lstsq(basis, loss, rcond=None)[0]
                coefficients = np.maximum(coefficients, 1e-3 * loss.mean())
                rss = float(((basis @ coefficients - loss) ** 2).sum())
                if rss < best:
                    best, start = rss, np.append(np.log(coefficients), [alpha, beta])
        return start[None]

    def search(self, loss: Array) -> Minimum:
        # Each stage starts next to its optimum: squares of the loss, of the log loss, and then
        # Huber's loss from wide to narrow. Huber's loss from afar ends half-way, because rows
        # beyond delta have no second derivative to aim by.
        theta = self.starts(loss)
        for log_loss in (False, True)[: 1 + self.log_loss]:
            stage = replace(self, log_loss=log_loss, delta=None)
            best = stage.descend(loss[None], theta, self.boxes[0], tolerance=1e-14)
            theta = best.theta
        if self.delta is None:
            return best
        widest = float(np.median(np.abs(self.evaluate(theta)[0][0] - self.target(loss))))
        for wide in np.geomspace(max(widest, self.delta), self.delta, 5):
            stage = replace(self, delta=float(wide))
            best = stage.descend(loss[None], best.theta, self.boxes[0], tolerance=1e-14)
        return best

    def follow(self, losses: Array, values: Array) -> Minimum:
        # The search is for log E: from a vanished E no slope leads away.
        start = values.copy()
        start[0] = max(values[0], 1e-3 * losses.mean())
        return super().follow(losses, start)

    def optimum(self, loss: Array) -> Optimum:
        best = super().optimum(loss)
        if best.theta[0] > _VANISHED:
            return best
        first = np.arange(5) == 0
        return replace(best, held=best.held | first, values=np.where(first, 0.0, best.values))

    def cannot(self, loss: Array) -> str:
        if (cells := len(np.unique(self.rows, axis=0))) < 5:
            return f"{cells} distinct rows cannot determine 5 parameters"
        for name, values in zip(self.inputs, self.rows.T, strict=True):
            if len(np.unique(values)) < 3:
                return f"fewer than 3 distinct values of {name} cannot determine its exponent"
        if abs(np.corrcoef(np.log(self.rows).T)[0, 1]) > 1 - 1e-9:
            return "n and d vary together: only the sum of their two terms can be seen"
        if is_flat(loss):
            return "the loss is flat: it changes with neither parameters nor data"
        return ""

    def doubt(self, best: Optimum, loss: Array) -> str:
        if best.held[1:].any() or (best.theta[1:3] <= _VANISHED).any():
            return (
                "a term vanished or an exponent ran to its bound: the loss does not fall with n "
                "and d"
            )
        if self.several(best):
            return "several parameter sets fit equally well: n and d do not vary independently"
        if not best.converged:
            return "the optimiser did not converge"
        observed, fitted = self.target(loss), self.evaluate(best.theta[None])[0][0]
        if self.delta is not None:  # outliers would rule the correlation of the losses themselves
            observed, fitted = stats.rankdata(observed), stats.rankdata(fitted)
        if trend_p_value(observed, fitted, 4) >= TREND_LEVEL:
            return "the loss does not change with n and d beyond its noise"
        return ""


def fit_additive_law(
    n: ArrayLike,
    d: ArrayLike,
    loss: ArrayLike,
    *,
    huber_delta: float | None = None,
    log_loss: bool = False,
    groups: ArrayLike | None = None,
    label: str = "",
) -> LawFit[AdditiveLaw]:
    """Fit ``loss = E + A * n**-alpha + B * d**-beta``.

    Parameters
    ----------
    n : (m,)
        Numbers of parameters, above zero.
    d : (m,)
        Units of data, such as tokens, above zero.
    loss : (m,)
        Losses, above zero.
    huber_delta : float, optional
        Minimise the sum of Huber's loss with this delta in place of squares. Hoffmann et al. use
        1e-3 with ``log_loss=True``.
    log_loss : bool
        Residuals of the log loss.
    groups : (m,), optional
        Name of the run of each row. Rows of one run, such as its checkpoints, are not independent;
        standard errors and intervals then come from runs.
    label : free text kept with the result

    Returns
    -------
    LawFit of an AdditiveLaw
        Standard errors come from the Jacobian for least squares, and from the row bootstrap (400
        draws) for Huber's loss; NaN for Huber's loss on fewer than 50 rows, which are too few to
        draw from, while an outlier would rule the Jacobian's. ``identified=False`` with a reason
        when the rows leave no unique answer, or (least squares) their losses do not change with
        size and data beyond their noise.

    Raises
    ------
    InputError
        Unequal lengths; values that are not finite and above zero; a delta not above zero.
    """
    size, data, y = (
        vector(name, column, positive=True) for name, column in (("n", n), ("d", d), ("loss", loss))
    )
    same_length(n=size, d=data, loss=y)
    if huber_delta is not None and not huber_delta > 0:
        raise InputError(f"huber_delta: {huber_delta}; give a number above 0, such as 1e-3")
    law = AdditiveLaw(weights=np.ones(len(y)), n=size, d=data, log_loss=log_loss, delta=huber_delta)
    fit = solve.fit(law, y, runs=run_names(groups, len(y)), label=label)
    if huber_delta is None or not fit.identified:
        return fit
    # The Jacobian's covariance rests on squares, and an outlier would rule it.
    spread = np.full((5, 5), np.nan)
    if len(y) >= LEAST_ROWS:
        spread = np.cov(row_bootstrap(fit, draws=400), rowvar=False)
    return replace(fit, covariance=spread)


def row_bootstrap(fit: LawFit[AdditiveLaw], *, draws: int = 4000) -> Array:
    """Refits (B, 5) to rows (or runs) drawn with replacement; only for many scattered rows.

    Raises
    ------
    InputError
        With fewer than `LEAST_ROWS` rows.
    """
    rows = fit.observations
    if rows < LEAST_ROWS:
        raise InputError(f"row bootstrap: {rows} rows are too few; draw residuals")
    # Rows of one run are drawn together.
    names, run = np.unique(fit.runs or np.arange(rows), return_inverse=True)
    pick = np.random.default_rng(0).integers(len(names), size=(draws, len(names)))
    times = np.stack([np.bincount(row, minlength=len(names)) for row in pick])
    counts = times[:, run].astype(float)
    law = replace(fit.law, weights=counts)
    return law.unscaled(law.follow(np.broadcast_to(fit.loss, counts.shape), fit.values).theta)
