"""Effective fraction as a function of the weight: Equations 11, 12 and 13.

``loss = beta * (f(p) * n)**-alpha + l_inf`` with

* Eq. 12: ``f(p) = p + c1 * p**c2 * (1 - p)**c3``,
* Eq. 13: ``f(p) = c1 * (p - 1) + 1`` with c1 at most 1,

where alpha, beta and l_inf are the single pair's. All are fitted at once. Both forms give
f(1) = 1, and the fit keeps f above 0 at every p in (0, 1]: in Eq. 12 either c1 >= 0, or
-1 < c1 <= 0 with c2 >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import (
    Array,
    Direction,
    Errors,
    check_direction,
    check_level,
    error_weights,
    vector,
)
from mnmt_repro.laws.fit_result import (
    Floats,
    LawFit,
    as_rows,
    as_tuple,
    covariance_of,
    r_squared,
    rank_deficient,
)
from mnmt_repro.laws.joint_law import fit_joint_law, pair_rows
from mnmt_repro.laws.newton import Index, Minimum, minimise
from mnmt_repro.laws.uncertainty import Resampling

Form = Literal["eq12", "eq13"]
COEFFICIENTS = {"eq12": ("c1", "c2", "c3"), "eq13": ("c1",)}
_TINY = 1e-6
_BOXES = {
    "eq12": (
        ((0.0, 0.01, 0.01), (50.0, 10.0, 10.0)),
        ((-1.0 + 1e-6, 1.0, 0.01), (0.0, 10.0, 10.0)),
    ),
    "eq13": (((-50.0,), (1.0,)),),
}


@dataclass(frozen=True, kw_only=True)
class FractionFit(LawFit):
    """The law of one pair at any weight and size (Eq. 11); see `fit_fraction`.

    Parameters are in the order alpha, l_inf, beta, then c1 (c2, c3).
    """

    form: Form
    p: Floats
    n: Floats
    weights: Floats
    direction: Direction
    ceiling: float | None
    label: str = ""

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self.predict(self.p, self.n)

    def row_weights(self) -> Array:
        """Weights of the squared residuals, (m,)."""
        return np.array(self.weights)

    def design(self) -> Array:
        """Weight and size of each row, (m, 2)."""
        return np.column_stack([self.p, self.n])

    def refit(self, losses: Array) -> Array:
        """Fit the same law to other losses (B, m) at the same rows, from this optimum."""
        model = self._model(losses)
        start = np.repeat(model.scaled(np.array(self.values))[None], len(losses), 0)
        own = min(range(len(_BOXES[self.form])), key=lambda b: _outside(start[0], *model.box(b)))
        theta = _in_box(model, start, own, tolerance=1e-9).theta
        if self.form == "eq12":  # a draw that stops at c1 = 0 may belong to the other sign
            edge = np.flatnonzero(np.abs(theta[:, 3]) < _TINY)
            if len(edge):
                other = replace(model, loss=losses[edge])
                theta[edge] = _best_box(other, theta[edge])[0]
        return model.unscaled(theta)

    def fraction(self, p: ArrayLike) -> Array:
        """Effective fraction at weights `p` in (0, 1]."""
        return fraction_of(_weights(p), np.array(self.values)[None, 3:])[0]

    def fraction_band(
        self,
        p: ArrayLike,
        level: float = 0.95,
        method: Resampling = "residual",
        *,
        draws: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Effective fraction with a percentile band from refits: ``p, f, f_low, f_high``."""
        check_level(level)
        weights = _weights(p)
        many = fraction_of(weights, self.draws(method, draws=draws, seed=seed).values[:, 3:])
        low, high = np.quantile(many, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return pd.DataFrame({"p": weights, "f": self.fraction(p), "f_low": low, "f_high": high})

    def predict(self, p: ArrayLike, n: ArrayLike) -> Array:
        """Evaluate Eq. 11 at weights `p` in (0, 1] and sizes `n` (broadcast together)."""
        return self.predict_with(np.array(self.values)[None], p, n)[0]

    def predict_with(self, values: Array, p: ArrayLike, n: ArrayLike) -> Array:
        """Evaluate Eq. 11 with other parameters (B, P), such as draws: (B, m)."""
        size = vector("n", np.atleast_1d(n), positive=True)
        weights, size = np.broadcast_arrays(_weights(p), size)
        alpha, l_inf, beta = (values[:, i : i + 1] for i in range(3))
        reducible = beta * (fraction_of(weights, values[:, 3:]) * size) ** -alpha
        return l_inf + (reducible if self.direction == "min" else -reducible)

    def band(
        self,
        p: ArrayLike,
        n: ArrayLike,
        level: float = 0.95,
        method: Resampling = "residual",
        *,
        draws: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Predictions with a percentile band from refits: ``p, n, loss, low, high``."""
        check_level(level)
        many = self.predict_with(self.draws(method, draws=draws, seed=seed).values, p, n)
        low, high = np.quantile(many, [(1 - level) / 2, (1 + level) / 2], axis=0)
        size = vector("n", np.atleast_1d(n), positive=True)
        weights, size = np.broadcast_arrays(_weights(p), size)
        columns = {"p": weights, "n": size, "loss": self.predict(p, n), "low": low, "high": high}
        return pd.DataFrame(columns)

    def _model(self, losses: Array) -> _Fraction:
        return _Fraction(
            p=np.array(self.p),
            log_n=np.log(self.n),
            loss=losses,
            weights=self.row_weights(),
            form=self.form,
            sign=1.0 if self.direction == "min" else -1.0,
            ceiling=self.ceiling,
        )


def fraction_of(p: Array, c: Array) -> Array:
    """Eq. 12 for coefficients (B, 3), Eq. 13 for (B, 1), at weights (m,): (B, m).

    Examples
    --------
    >>> fraction_of(np.array([0.5, 1.0]), np.array([[0.4, 1.0, 1.0]])).tolist()
    [[0.6, 1.0]]
    >>> fraction_of(np.array([0.5, 1.0]), np.array([[0.8]])).tolist()
    [[0.6, 1.0]]
    """
    if c.shape[1] == 1:
        return c * (p - 1.0) + 1.0
    return p + c[:, :1] * p ** c[:, 1:2] * (1.0 - p) ** c[:, 2:3]


def _fraction_gradient(p: Array, c: Array) -> Array:
    """Differentiate f with respect to its coefficients, (B, m, number of coefficients)."""
    if c.shape[1] == 1:
        return np.broadcast_to((p - 1.0)[None, :, None], (len(c), len(p), 1))
    g = p ** c[:, 1:2] * (1.0 - p) ** c[:, 2:3]
    with np.errstate(divide="ignore"):
        rest = np.where(p < 1.0, np.log1p(-np.minimum(p, 1 - 1e-16)), 0.0)
    return np.stack([g, c[:, :1] * g * np.log(p), c[:, :1] * g * rest], axis=2)


@dataclass(frozen=True, kw_only=True)
class _Fraction:
    """Residuals in theta = (alpha, l_inf, log beta', c...), sizes divided by their mean."""

    p: Array
    log_n: Array
    loss: Array  # (B, m)
    weights: Array  # (m,), of the squared residuals
    form: Form
    sign: float
    ceiling: float | None

    def scaled(self, values: Array) -> Array:
        alpha, l_inf, beta = values[:3]
        return np.array([alpha, l_inf, np.log(beta) - alpha * self.log_n.mean(), *values[3:]])

    def unscaled(self, theta: Array) -> Array:
        beta = np.exp(theta[:, 2] + theta[:, 0] * self.log_n.mean())
        return np.column_stack([theta[:, :2], beta, theta[:, 3:]])

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        c = theta[:, 3:]
        f = np.maximum(fraction_of(self.p, c), 1e-12)
        log_x = np.log(f) + self.log_n - self.log_n.mean()
        t = self.sign * np.exp(np.minimum(theta[:, 2:3] - theta[:, :1] * log_x, 300.0))
        by_c = (-theta[:, :1] * t / f)[:, :, None] * _fraction_gradient(self.p, c)
        parts = [-t * log_x, np.ones_like(t), t]
        jacobian = np.concatenate([np.stack(parts, axis=2), by_c], axis=2)
        return t + theta[:, 1:2] - self.loss[index], jacobian

    def curvature(self, theta: Array, index: Index, score: Array) -> float:
        return 0.0

    def box(self, number: int) -> tuple[Array, Array]:
        low, high = _BOXES[self.form][number]
        least = 0.0 if self.sign > 0 else -np.inf
        most = np.inf if self.ceiling is None else self.ceiling
        lower = np.array([1e-3, least, -300.0, *low])
        return lower, np.array([10.0, most, 300.0, *high])


def fit_fraction(
    frame: pd.DataFrame,
    *,
    form: Form = "eq12",
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    ceiling: float | None = None,
    errors: Errors = "absolute",
    label: str = "",
) -> FractionFit:
    """Fit Eq. 11 with the effective fraction of Eq. 12 or Eq. 13, all parameters at once.

    ``loss = beta * (f(p) * n)**-alpha + l_inf``, with ``f(p) = p + c1 * p**c2 * (1 - p)**c3``
    (Eq. 12) or ``f(p) = c1 * (p - 1) + 1`` (Eq. 13).

    Parameters
    ----------
    frame : DataFrame
        Rows of ONE pair and test set, as for `fit_joint_law`; p = 0 is left out.
    form : ``"eq12"`` (three coefficients) or ``"eq13"`` (one, at most 1)
    n, loss, direction, ceiling, errors, label : as in `fit_joint_law`

    Returns
    -------
    FractionFit
        With ``identified=False`` and a reason when the rows leave no unique answer. When the data
        say f(p) = p, c1 is 0 and c2 and c3 are listed as undetermined.

    Raises
    ------
    InputError
        As `fit_joint_law`, and for an unknown form.
    """
    check_direction(direction)
    if form not in COEFFICIENTS:
        raise InputError(f"form: {form!r}; use one of {sorted(COEFFICIENTS)}")
    rows, p = pair_rows(frame, n, loss)
    joint = fit_joint_law(rows, n=n, loss=loss, direction=direction, ceiling=ceiling, errors=errors)
    y, size = vector(loss, rows[loss]), vector(n, rows[n], positive=True)
    weights = error_weights(errors, y)
    model = _Fraction(
        p=p,
        log_n=np.log(size),
        loss=y[None],
        weights=weights,
        form=form,
        sign=1.0 if direction == "min" else -1.0,
        ceiling=ceiling,
    )
    names = ("alpha", "l_inf", "beta", *COEFFICIENTS[form])
    fields: dict[str, Any] = {
        "form": form,
        "p": as_tuple(p),
        "n": as_tuple(size),
        "loss": as_tuple(y),
        "weights": as_tuple(weights),
        "direction": direction,
        "ceiling": ceiling,
        "label": label,
        "observations": len(y),
    }
    reason = "" if joint.identified else joint.reason
    others = len(np.unique(p[p < 1.0]))
    if not reason and others < len(COEFFICIENTS[form]):
        reason = (
            f"{others} weights below 1 cannot determine {len(COEFFICIENTS[form])} coefficients of "
            "the fraction; train more weights"
            + (", or use eq13, which has one" if form == "eq12" and others else "")
        )
    if not reason:
        theta, held, objective = _best_start(model, _starts(model, joint.alpha, joint.l_inf))
        jacobian = model.residual(theta[None], np.zeros(1, dtype=int))[1][0]
        loose = np.zeros(len(names), dtype=bool)
        if form == "eq12" and abs(theta[3]) < _TINY:
            theta[3], loose[4:] = 0.0, True
            held[3] = False  # zero is where the two boxes meet, no bound
        if rank_deficient(jacobian * np.sqrt(weights)[:, None], held | loose):
            reason = "several parameter sets fit equally well: the rows do not separate them"
            if not (p == 1.0).any():
                reason += "; add rows of the pair alone (p = 1)"
                reason += ', or use form="eq13"' * (form == "eq12")
        elif held[0]:
            reason = "the exponent ran to an end of its range: no power law in these sizes"
    if reason:
        return FractionFit.unidentified(reason, names, **fields)
    values = model.unscaled(theta[None])[0]
    change = np.eye(len(names))
    change[2, :3] = values[2] * np.array([model.log_n.mean(), 0.0, 1.0])
    scaled = covariance_of(jacobian, weights, 2 * objective, held | loose)
    return FractionFit(
        names=names,
        values=as_tuple(values),
        covariance=as_rows(change @ scaled @ change.T),
        rss=2 * objective,
        r2=r_squared(y, 2 * objective, weights),
        identified=True,
        active_bounds=_bounds(model, names, theta, held, loose),
        **fields,
    )


def _starts(model: _Fraction, alpha: float, l_inf: float) -> Array:
    """Pair the joint law's exponent and constant with several shapes of the fraction."""
    y = model.loss[0]
    shapes: list[tuple[float, ...]] = [(0.9,), (0.3,), (-0.5,)]
    if model.form == "eq12":
        shapes = [(c1, c2, c3) for c1 in (0.2, 1.0, -0.3) for c2 in (0.3, 1.0) for c3 in (0.5, 1.5)]
    starts = []
    for c in shapes:
        f = np.maximum(fraction_of(model.p, np.array([c]))[0], 1e-3)
        power = np.exp(-alpha * (np.log(f) + model.log_n - model.log_n.mean()))
        reducible = np.maximum(model.sign * (y - l_inf), 1e-3 * np.abs(y))
        starts.append([alpha, l_inf, np.log(reducible / power).mean(), *c])
    return np.array(starts)


def _best_start(model: _Fraction, starts: Array) -> tuple[Array, NDArray[np.bool_], float]:
    repeated = replace(model, loss=np.broadcast_to(model.loss, (len(starts), len(model.p))))
    theta, held, objective = _best_box(repeated, starts)
    best = int(objective.argmin())
    return theta[best].copy(), held[best], float(objective[best])


def _best_box(model: _Fraction, start: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Optimum of each problem over the boxes that keep the fraction positive."""
    found = [_in_box(model, start, number) for number in range(len(_BOXES[model.form]))]
    objective = np.stack([minimum.objective for minimum in found])
    best, rows = objective.argmin(0), np.arange(len(start))
    theta = np.stack([minimum.theta for minimum in found])[best, rows]
    held = np.stack([minimum.held for minimum in found])[best, rows]
    return theta, held, objective.min(0)


def _in_box(model: _Fraction, start: Array, number: int, tolerance: float = 1e-13) -> Minimum:
    lower, upper = model.box(number)
    weights = model.weights[None]
    return minimise(
        model, start, weights, lower=lower, upper=upper, iterations=200, tolerance=tolerance
    )


def _bounds(
    model: _Fraction,
    names: tuple[str, ...],
    theta: Array,
    held: NDArray[np.bool_],
    loose: NDArray[np.bool_],
) -> tuple[str, ...]:
    """Bounds that hold a parameter, in words."""
    box = min(range(len(_BOXES[model.form])), key=lambda b: _outside(theta, *model.box(b)))
    lower, upper = model.box(box)
    bounds = []
    for i, name in enumerate(names):
        if loose[i]:
            bounds.append(f"{name} undetermined, f(p) = p")
        elif held[i]:
            at_lower = theta[i] <= lower[i]
            bounds.append(f"{name} >= {lower[i]:g}" if at_lower else f"{name} <= {upper[i]:g}")
    return tuple(bounds)


def _outside(theta: Array, lower: Array, upper: Array) -> float:
    return float((np.maximum(lower - theta, 0) + np.maximum(theta - upper, 0)).sum())


def _weights(p: ArrayLike) -> Array:
    weights = vector("p", np.atleast_1d(p), positive=True)
    if (weights > 1).any():
        raise InputError(f"p: {weights.max():g}, and must lie in (0, 1]")
    return weights
