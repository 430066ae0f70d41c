"""The additive law in parameters and data: ``loss = E + A * N**-alpha + B * D**-beta``.

Fitted as a log-sum-exp, by least squares of the loss or of the log loss, or with Huber's loss on
the log loss (Hoffmann et al., 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, same_length, vector
from mnmt_repro.laws.fit_result import (
    Floats,
    LawFit,
    as_rows,
    as_tuple,
    covariance_of,
    r_squared,
    rank_deficient,
    trend_p_value,
)
from mnmt_repro.laws.grouped_law import TREND_LEVEL
from mnmt_repro.laws.newton import Index, Minimum, minimise
from mnmt_repro.laws.uncertainty import Draws

NAMES = ("E", "A", "B", "alpha", "beta")
_EXPONENTS = (1e-3, 5.0)
_LOG_FLOOR = -40.0
_VANISHED = np.log(1e-8)  # of a term, in units of the loss; its logarithm falls ever more slowly


@dataclass(frozen=True, kw_only=True)
class AdditiveLawFit(LawFit):
    """A fitted additive law; see `fit_additive_law`.

    Attributes
    ----------
    objective : float
        What was minimised: the sum of Huber losses of log residuals, or the sum of squares.
    huber_delta, log_loss : as fitted
    n, d, loss : the rows
    """

    objective: float
    huber_delta: float | None
    log_loss: bool
    n: Floats
    d: Floats

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self.predict(self.n, self.d)

    def row_weights(self) -> Array:
        """Weights of the squared residuals of the loss, (m,): relative errors for a log fit."""
        return _row_weights(self.observed(), self.log_loss)

    def design(self) -> Array:
        """Parameters and data of each row, (m, 2)."""
        return np.column_stack([self.n, self.d])

    def predict(self, n: ArrayLike, d: ArrayLike) -> Array:
        """Evaluate the law at `n` parameters and `d` units of data (broadcast together)."""
        size, data = _sizes(n, d)
        e, a, b, alpha, beta = self.values
        return e + a * size**-alpha + b * data**-beta

    def band(self, n: ArrayLike, d: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """Confidence band of the law by the delta method: ``n, d, loss, low, high``."""
        size, data = _sizes(n, d)
        _, a, b, alpha, beta = self.values
        first, second = size**-alpha, data**-beta
        slopes = [-a * first * np.log(size), -b * second * np.log(data)]
        gradient = np.column_stack([np.ones_like(size), first, second, *slopes])
        variance = np.einsum("ij,jk,ik->i", gradient, np.array(self.covariance), gradient)
        half, mean = self.t_quantile(level) * np.sqrt(variance), self.predict(n, d)
        columns = {"n": size, "d": data, "loss": mean, "low": mean - half, "high": mean + half}
        return pd.DataFrame(columns)

    def refit(self, losses: Array) -> Array:
        """Fit the same law to other losses (B, m) at the same rows, from this optimum."""
        return self._again(losses, np.ones((1, len(self.loss))))

    def row_bootstrap(self, *, draws: int = 4000, seed: int = 0) -> Draws:
        """Refits to rows drawn with replacement; only for laws fitted to many scattered runs.

        Raises
        ------
        InputError
            With fewer than 50 rows, where a resample can lose a whole size.
        """
        rows = len(self.loss)
        if rows < 50:
            raise InputError(f"row bootstrap: {rows} rows are too few; use residual_bootstrap")
        pick = np.random.default_rng(seed).integers(rows, size=(draws, rows))
        counts = np.stack([np.bincount(row, minlength=rows) for row in pick]).astype(float)
        losses = np.broadcast_to(self.observed(), counts.shape)
        return Draws(names=NAMES, values=self._again(losses, counts), losses=losses)

    def _again(self, losses: Array, weights: Array) -> Array:
        model = _Additive(
            log_n=np.log(self.n), log_d=np.log(self.d), loss=losses, log_loss=self.log_loss
        )
        start = np.repeat(model.scaled(np.array(self.values))[None], len(losses), 0)
        least = np.log(1e-3 * np.mean(self.loss))  # from a vanished constant no slope leads away
        start[:, 0] = np.maximum(start[:, 0], least)
        found = _minimise(model, start, weights, self.huber_delta, tolerance=1e-9)
        return model.unscaled(found.theta)


@dataclass(frozen=True, kw_only=True)
class _Additive:
    """Residuals in theta = (log E, log A', log B', alpha, beta), sizes divided by their means."""

    log_n: Array
    log_d: Array
    loss: Array  # (B, m)
    log_loss: bool

    def scaled(self, values: Array) -> Array:
        e, a, b, alpha, beta = values
        with np.errstate(divide="ignore"):
            logs = np.log([e, a, b])
        shift = np.array([0.0, alpha * self.log_n.mean(), beta * self.log_d.mean()])
        return np.append(np.maximum(logs - shift, _LOG_FLOOR), [alpha, beta])

    def unscaled(self, theta: Array) -> Array:
        e, a, b, alpha, beta = theta.T
        shifted = [a + alpha * self.log_n.mean(), b + beta * self.log_d.mean()]
        return np.column_stack([np.exp(e), *np.exp(shifted), alpha, beta])

    def _terms(self, theta: Array) -> tuple[Array, Array]:
        """Each term of the law (b, m, 3) and the derivatives of its logarithm (3, m, 5)."""
        x, y = self.log_n - self.log_n.mean(), self.log_d - self.log_d.mean()
        direction = np.zeros((3, len(x), 5))
        direction[0, :, 0] = direction[1, :, 1] = direction[2, :, 2] = 1.0
        direction[1, :, 3], direction[2, :, 4] = -x, -y
        logs = np.einsum("bk,tmk->bmt", theta, direction)
        return np.exp(np.minimum(logs, 300.0)), direction

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        terms, direction = self._terms(theta)
        total = terms.sum(2)
        weight = terms / total[:, :, None] if self.log_loss else terms
        jacobian = np.einsum("bmt,tmk->bmk", weight, direction)
        loss = self.loss[index]
        return (np.log(total) - np.log(loss) if self.log_loss else total - loss), jacobian

    def curvature(self, theta: Array, index: Index, score: Array) -> Array:
        terms, direction = self._terms(theta)
        weight = terms / terms.sum(2)[:, :, None] if self.log_loss else terms
        hessian = np.zeros((len(theta), 5, 5))
        for t in range(3):
            scaled = direction[t].T * (score * weight[:, :, t])[:, None, :]
            hessian += scaled @ direction[t]
        if self.log_loss:
            mean = np.einsum("bmt,tmk->bmk", weight, direction)
            hessian -= (mean.transpose(0, 2, 1) * score[:, None, :]) @ mean
        return hessian


def fit_additive_law(
    n: ArrayLike,
    d: ArrayLike,
    loss: ArrayLike,
    *,
    huber_delta: float | None = None,
    log_loss: bool = False,
) -> AdditiveLawFit:
    """Fit ``loss = E + A * n**-alpha + B * d**-beta``.

    Parameters
    ----------
    n, d, loss : (m,)
        Parameters, units of data, losses; all above zero.
    huber_delta : float, optional
        Minimise the sum of Huber's loss with this delta in place of squares. Hoffmann et al. use
        1e-3 with ``log_loss=True``.
    log_loss : bool
        Residuals of the log loss.

    Returns
    -------
    AdditiveLawFit
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
    rows: dict[str, Any] = {
        "n": as_tuple(size),
        "d": as_tuple(data),
        "loss": as_tuple(y),
        "huber_delta": huber_delta,
        "log_loss": log_loss,
        "observations": len(y),
    }
    reason = _cannot(size, data, y)
    if not reason:
        model = _Additive(log_n=np.log(size), log_d=np.log(data), loss=y[None], log_loss=log_loss)
        found = _from_grid(model, huber_delta)
        held = found.held[0] | np.array([found.theta[0, 0] <= _VANISHED, *[False] * 4])
        reason = _unidentified(model, found, held)
    if not reason:
        residual, jacobian = (part[0] for part in model.residual(found.theta, np.zeros(1, int)))
        observed = np.log(y) if log_loss else y
        if huber_delta is None and trend_p_value(observed, residual + observed, 4) >= TREND_LEVEL:
            reason = "the loss does not change with n and d beyond its noise"
    if reason:
        return AdditiveLawFit.unidentified(reason, NAMES, objective=np.nan, **rows)
    values = np.where([held[0], *[False] * 4], 0.0, model.unscaled(found.theta)[0])
    predicted = values[0] + values[1] * size ** -values[3] + values[2] * data ** -values[4]
    weights = _row_weights(y, log_loss)
    rss = float(weights @ (predicted - y) ** 2)
    covariance = np.full((5, 5), np.nan)
    if huber_delta is None:
        e, a, b = values[:3]
        change = np.diag([e, a, b, 1.0, 1.0])
        change[1, 3], change[2, 4] = a * model.log_n.mean(), b * model.log_d.mean()
        scaled = covariance_of(jacobian, np.ones(len(y)), float(residual @ residual), held)
        covariance = change @ scaled @ change.T
    fit = AdditiveLawFit(
        names=NAMES,
        values=as_tuple(values),
        covariance=as_rows(covariance),
        rss=rss,
        r2=r_squared(y, rss, weights),
        objective=float(found.objective[0]) * (1.0 if huber_delta else 2.0),
        identified=True,
        active_bounds=("E >= 0",) if held[0] else (),
        **rows,
    )
    if huber_delta is None or len(y) < 50:
        return fit
    spread = np.cov(fit.row_bootstrap(draws=400).values, rowvar=False)
    return replace(fit, covariance=as_rows(spread))


def _from_grid(model: _Additive, delta: float | None) -> Minimum:
    """Least squares of the loss from the best point of a grid of exponents, then what was asked."""
    linear = _Additive(log_n=model.log_n, log_d=model.log_d, loss=model.loss, log_loss=False)
    x, y = model.log_n - model.log_n.mean(), model.log_d - model.log_d.mean()
    exponents = np.geomspace(0.05, 2.0, 12)
    best, start = np.inf, np.zeros(5)
    for alpha in exponents:
        for beta in exponents:
            basis = np.column_stack([np.ones_like(x), np.exp(-alpha * x), np.exp(-beta * y)])
            coefficients = np.linalg.lstsq(basis, model.loss[0], rcond=None)[0]
            coefficients = np.maximum(coefficients, 1e-3 * model.loss[0].mean())
            rss = float(((basis @ coefficients - model.loss[0]) ** 2).sum())
            if rss < best:
                best, start = rss, np.append(np.log(coefficients), [alpha, beta])
    ones = np.ones((1, len(x)))
    found = _minimise(linear, start[None], ones, None)
    if model.log_loss:
        found = _minimise(model, found.theta, ones, None)
    if delta is not None:
        # From wide to narrow: each delta starts next to its optimum.
        residual = np.abs(model.residual(found.theta, np.zeros(1, dtype=int))[0])
        for wide in np.geomspace(max(float(np.median(residual)), delta), delta, 5):
            found = _minimise(model, found.theta, ones, float(wide))
    return found


def _minimise(
    model: _Additive, start: Array, weights: Array, delta: float | None, tolerance: float = 1e-14
) -> Minimum:
    lower = np.array([_LOG_FLOOR, _LOG_FLOOR, _LOG_FLOOR, _EXPONENTS[0], _EXPONENTS[0]])
    upper = np.array([300.0, 300.0, 300.0, _EXPONENTS[1], _EXPONENTS[1]])
    return minimise(
        model, start, weights, lower=lower, upper=upper, delta=delta, tolerance=tolerance
    )


def _row_weights(loss: Array, log_loss: bool) -> Array:
    return loss**-2 if log_loss else np.ones(len(loss))


def _sizes(n: ArrayLike, d: ArrayLike) -> tuple[Array, Array]:
    size = vector("n", np.atleast_1d(n), positive=True)
    return np.broadcast_arrays(size, vector("d", np.atleast_1d(d), positive=True))  # type: ignore[return-value]


def _cannot(n: Array, d: Array, loss: Array) -> str:
    cells = len(np.unique(np.column_stack([n, d]), axis=0))
    if cells < 5:
        return f"{cells} distinct rows cannot determine 5 parameters"
    for name, values in (("n", n), ("d", d)):
        if len(np.unique(values)) < 3:
            return f"fewer than 3 distinct values of {name} cannot determine its exponent"
    if abs(np.corrcoef(np.log(n), np.log(d))[0, 1]) > 1 - 1e-9:
        return "n and d vary together: only the sum of their two terms can be seen"
    if np.ptp(loss) <= 1e-10 * loss.max():
        return "the loss is flat: it changes with neither parameters nor data"
    return ""


def _unidentified(model: _Additive, found: Minimum, held: NDArray[np.bool_]) -> str:
    if held[1:].any() or (found.theta[0, 1:3] <= _VANISHED).any():
        return (
            "a term vanished or an exponent ran to its bound: the loss does not fall with n and d"
        )
    jacobian = model.residual(found.theta, np.zeros(1, dtype=int))[1][0]
    if rank_deficient(jacobian, held):
        return "several parameter sets fit equally well: n and d do not vary independently"
    if not found.converged[0]:
        return "the optimiser did not converge"
    return ""
