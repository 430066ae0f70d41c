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
from mnmt_repro.laws.fit_result import Floats, LawFit, as_rows, r_squared
from mnmt_repro.laws.minimise import Minimum
from mnmt_repro.laws.uncertainty import Draws

_NAMES = ("E", "A", "B", "alpha", "beta")
_LOWER = np.array([-40.0, -40.0, -40.0, 1e-3, 1e-3])
_UPPER = np.array([300.0, 300.0, 300.0, 5.0, 5.0])
_VANISHED = np.log(1e-8)  # of a term, in units of the loss; its logarithm falls ever more slowly


@dataclass(frozen=True, kw_only=True)
class AdditiveLawFit(LawFit):
    """A fitted additive law; see `fit_additive_law`.

    Attributes
    ----------
    objective : float
        What was minimised: the sum of Huber losses of log residuals, or the sum of squares.
    huber_delta, log_loss : as fitted
    n, d : the rows
    """

    inputs = ("n", "d")

    objective: float
    huber_delta: float | None
    log_loss: bool
    n: Floats
    d: Floats

    def design(self) -> Array:
        """Parameters and data of each row, (m, 2)."""
        return np.column_stack([self.n, self.d])

    def curve(self, values: Array, design: Array) -> Array:
        """Evaluate the law with parameters (..., 5) at `n` and `d` (m, 2): (..., m)."""
        e, a, b, alpha, beta = (values[..., i : i + 1] for i in range(5))
        size, data = design.T
        return np.asarray(e + a * size**-alpha + b * data**-beta)

    def curve_names(self) -> list[str]:
        """Data of each row."""
        return [f"{d:.3g}" for d in self.d]

    def law(self) -> AdditiveLaw:
        """Return the formula at the rows fitted."""
        return AdditiveLaw(
            names=_NAMES,
            weights=np.ones(len(self.loss)),
            log_n=np.log(self.n),
            log_d=np.log(self.d),
            log_loss=self.log_loss,
            delta=self.huber_delta,
        )

    def refit(self, losses: Array) -> Array:
        """Fit the same law to other losses (B, m) at the same rows, from this optimum."""
        return self._again(self.law(), losses)

    def row_bootstrap(self, *, draws: int = 4000, seed: int = 0) -> Draws:
        """Refits to rows (or `runs`) drawn with replacement; only for many scattered runs.

        Raises
        ------
        InputError
            With fewer than 50 rows, where a resample can lose a whole size.
        """
        rows = len(self.loss)
        if rows < 50:
            raise InputError(f"row bootstrap: {rows} rows are too few; use residual_bootstrap")
        # Rows of one run are drawn together.
        names, run = np.unique(self.runs or np.arange(rows), return_inverse=True)
        pick = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
        times = np.stack([np.bincount(row, minlength=len(names)) for row in pick])
        counts = times[:, run].astype(float)
        losses = np.broadcast_to(self.observed(), counts.shape)
        values = self._again(replace(self.law(), weights=counts), losses)
        return Draws(names=_NAMES, values=values, losses=losses)

    def _again(self, law: AdditiveLaw, losses: Array) -> Array:
        values = np.array(self.values)
        # The search is for log E: from a vanished E no slope leads away.
        values[0] = max(values[0], 1e-3 * np.mean(self.loss))
        return law.unscaled(law.follow(losses, values).theta)


@dataclass(frozen=True, kw_only=True)
class AdditiveLaw(solve.CurveLaw):
    """The law in theta = (log E, log A', log B', alpha, beta), sizes divided by their means.

    A sum of three exponentials in theta, as Hoffmann et al. write it: every term stays positive,
    and the log of the sum is as easily fitted as the sum.

    Attributes
    ----------
    log_n, log_d : (m,)
    log_loss : fit the logarithm of the losses
    """

    log_n: Array
    log_d: Array
    log_loss: bool

    logarithms = (0, 1, 2)
    boxes = ((_LOWER, _UPPER),)

    @property
    def shift(self) -> Array:
        shift = np.zeros((5, 5))
        shift[1, 3], shift[2, 4] = self.log_n.mean(), self.log_d.mean()
        return shift

    def _terms(self, theta: Array) -> tuple[Array, Array]:
        """Each term of the law (b, m, 3) and the derivatives of its logarithm (3, m, 5)."""
        x, y = self.log_n - self.log_n.mean(), self.log_d - self.log_d.mean()
        direction = np.zeros((3, len(x), 5))
        direction[0, :, 0] = direction[1, :, 1] = direction[2, :, 2] = 1.0
        direction[1, :, 3], direction[2, :, 4] = -x, -y
        logs = np.einsum("bk,tmk->bmt", theta, direction)
        return np.exp(np.minimum(logs, 300.0)), direction

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        terms, direction = self._terms(theta)
        total = terms.sum(2)
        weight = terms / total[:, :, None] if self.log_loss else terms
        jacobian = np.einsum("bmt,tmk->bmk", weight, direction)
        return (np.log(total) if self.log_loss else total), jacobian

    def curvature(self, theta: Array, score: Array) -> Array | float:
        # By squares Gauss-Newton finds the same optimum in half the time.
        if self.delta is None:
            return 0.0
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

    def target(self, losses: Array) -> Array:
        return np.log(losses) if self.log_loss else losses

    def starts(self, loss: Array) -> Array:
        """The best point of a grid of exponents, at each of which the law is linear, (1, 5)."""
        x, y = self.log_n - self.log_n.mean(), self.log_d - self.log_d.mean()
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
        stages = [replace(self, log_loss=False, delta=None)]
        stages += [replace(self, delta=None)] if self.log_loss else []
        theta = self.starts(loss)
        for law in stages:
            found = law.descend(loss[None], theta, self.boxes[0], tolerance=1e-14)
            theta = found.theta
        if self.delta is None:
            return found
        widest = float(np.median(np.abs(self.evaluate(theta)[0][0] - self.target(loss))))
        for wide in np.geomspace(max(widest, self.delta), self.delta, 5):
            law = replace(self, delta=float(wide))
            found = law.descend(loss[None], found.theta, self.boxes[0], tolerance=1e-14)
        return found

    def optimum(self, loss: Array) -> solve.Optimum:
        found = super().optimum(loss)
        if found.theta[0] > _VANISHED:
            return found
        first = np.arange(5) == 0
        return replace(found, held=found.held | first, values=np.where(first, 0.0, found.values))

    def cannot(self, loss: Array) -> str:
        sizes = {"n": self.log_n, "d": self.log_d}
        cells = len(np.unique(np.column_stack(list(sizes.values())), axis=0))
        if cells < 5:
            return f"{cells} distinct rows cannot determine 5 parameters"
        for name, values in sizes.items():
            if len(np.unique(values)) < 3:
                return f"fewer than 3 distinct values of {name} cannot determine its exponent"
        if abs(np.corrcoef(self.log_n, self.log_d)[0, 1]) > 1 - 1e-9:
            return "n and d vary together: only the sum of their two terms can be seen"
        if solve.is_flat(loss):
            return "the loss is flat: it changes with neither parameters nor data"
        return ""

    def doubt(self, found: solve.Optimum, loss: Array) -> str:
        if found.held[1:].any() or (found.theta[1:3] <= _VANISHED).any():
            return (
                "a term vanished or an exponent ran to its bound: the loss does not fall with n "
                "and d"
            )
        if self.several(found):
            return "several parameter sets fit equally well: n and d do not vary independently"
        if not found.converged:
            return "the optimiser did not converge"
        observed, fitted = self.target(loss), self.evaluate(found.theta[None])[0][0]
        if self.delta is not None:  # outliers would rule the correlation of the losses themselves
            observed, fitted = stats.rankdata(observed), stats.rankdata(fitted)
        if solve.trend_p_value(observed, fitted, 4) >= solve.TREND_LEVEL:
            return "the loss does not change with n and d beyond its noise"
        return ""

    def bounds_in_words(self, found: solve.Optimum) -> tuple[str, ...]:
        return tuple(f"{name} >= 0" for name in _NAMES)


def fit_additive_law(
    n: ArrayLike,
    d: ArrayLike,
    loss: ArrayLike,
    *,
    huber_delta: float | None = None,
    log_loss: bool = False,
    groups: ArrayLike | None = None,
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
    groups : (m,), optional
        Name of the run of each row. Rows of one run, such as its checkpoints, are not independent;
        standard errors and intervals then come from runs.

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
    blank = AdditiveLawFit.blank(
        _NAMES, y, n=size, d=data, huber_delta=huber_delta, log_loss=log_loss, objective=np.nan,
        weights=error_weights("relative" if log_loss else "absolute", y),
        runs=run_names(groups, len(y)),
    )  # fmt: skip
    fit = solve.fit(blank)
    if not fit.identified:
        return fit
    weights = fit.row_weights()
    rss = float(weights @ (fit.fitted() - y) ** 2)
    least = fit.rss if huber_delta is None else fit.rss / 2
    fit = replace(fit, rss=rss, r2=r_squared(y, rss, weights), objective=least)
    if huber_delta is None:
        return fit
    # The Jacobian's covariance rests on squares, and an outlier would rule it.
    spread = np.full((5, 5), np.nan)
    if len(y) >= 50:
        spread = np.cov(fit.row_bootstrap(draws=400).values, rowvar=False)
    return replace(fit, covariance=as_rows(spread))
