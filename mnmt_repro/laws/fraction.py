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
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, Direction, Errors, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.joint_law import fit_joint_law, pair_rows, row_runs
from mnmt_repro.laws.law import Box, Law, Optimum, runs_alone
from mnmt_repro.laws.minimise import Minimum, least

Form = Literal["eq12", "eq13"]
COEFFICIENTS = {"eq12": ("c1", "c2", "c3"), "eq13": ("c1",)}
_F = {"eq12": "p + c1 * p**c2 * (1 - p)**c3", "eq13": "c1 * (p - 1) + 1"}
_TINY = 1e-6
_BOXES = {
    "eq12": (
        ((0.0, 0.01, 0.01), (50.0, 10.0, 10.0)),
        ((-1.0 + 1e-6, 1.0, 0.01), (0.0, 10.0, 10.0)),
    ),
    "eq13": (((-50.0,), (1.0,)),),
}


def fraction_of(p: Array, c: Array) -> Array:
    """Eq. 12 for coefficients (..., 3), Eq. 13 for (..., 1), at weights (m,): (..., m).

    Examples
    --------
    >>> fraction_of(np.array([0.5, 1.0]), np.array([[0.4, 1.0, 1.0]])).tolist()
    [[0.6, 1.0]]
    >>> fraction_of(np.array([0.5, 1.0]), np.array([[0.8]])).tolist()
    [[0.6, 1.0]]
    """
    if c.shape[-1] == 1:
        return c * (p - 1.0) + 1.0
    return p + c[..., :1] * p ** c[..., 1:2] * (1.0 - p) ** c[..., 2:3]


def _fraction_gradient(p: Array, c: Array) -> Array:
    """Differentiate f with respect to its coefficients, (B, m, number of coefficients)."""
    if c.shape[1] == 1:
        return np.broadcast_to((p - 1.0)[None, :, None], (len(c), len(p), 1))
    g = p ** c[:, 1:2] * (1.0 - p) ** c[:, 2:3]
    with np.errstate(divide="ignore"):
        rest = np.where(p < 1.0, np.log1p(-np.minimum(p, 1 - 1e-16)), 0.0)
    return np.stack([g, c[:, :1] * g * np.log(p), c[:, :1] * g * rest], axis=2)


@dataclass(frozen=True, kw_only=True, eq=False)
class FractionLaw(Law):
    """``loss = beta * (f(p) * n)**-alpha + l_inf``, Eq. 11, the law of a pair at any weight.

    Parameters are in the order alpha, l_inf, beta, then c1 (c2, c3). They are searched as
    theta = (alpha, l_inf, log beta', c...), with sizes divided by their mean.

    Attributes
    ----------
    p : (m,)
        Weight of each row.
    n : (m,)
        Size of each row.
    form : str
        Of the fraction, ``"eq12"`` or ``"eq13"``.
    joint : (2,)
        Exponent and constant of the joint law, from which the search starts.
    """

    p: Array
    n: Array
    form: Form
    joint: Array

    inputs = ("p", "n")
    iterations = 200
    logarithms = (2,)

    @property
    def formula(self) -> str:
        return f"loss = beta * (f(p) * n)**-alpha + l_inf, f(p) = {_F[self.form]}"

    @property
    def names(self) -> tuple[str, ...]:
        return ("alpha", "l_inf", "beta", *COEFFICIENTS[self.form])

    @property
    def rows(self) -> Array:
        return np.column_stack([self.p, self.n])

    def rows_at(self, *at: ArrayLike) -> Array:
        checked_weights(at[0])
        return super().rows_at(*at)

    def curve_names(self) -> list[str]:
        return [f"{p:g}" for p in self.p]

    @property
    def shift(self) -> Array:
        shift = np.zeros((len(self.names), len(self.names)))
        shift[2, 0] = np.log(self.n).mean()
        return shift

    @property
    def boxes(self) -> tuple[Box, ...]:
        constant = 0.0 if self.direction == "min" else -np.inf
        ceiling = np.inf if self.ceiling is None else self.ceiling
        return tuple(
            (np.array([1e-3, constant, -300.0, *low]), np.array([10.0, ceiling, 300.0, *high]))
            for low, high in _BOXES[self.form]
        )

    def model(self, theta: Array, rows: Array) -> Array:
        return self._reducible(theta, rows)[2] + theta[..., 1:2]

    def _reducible(self, theta: Array, rows: Array) -> tuple[Array, Array, Array]:
        """Fraction, log of the effective size over the mean size, and reducible loss (..., m)."""
        p, n = rows.T
        # On the way a fraction may come within rounding of zero, which has no logarithm; likewise
        # an exponent may make the power overflow.
        f = np.maximum(fraction_of(p, theta[..., 3:]), 1e-12)
        log_x = np.log(f) + np.log(n) - np.log(self.n).mean()
        exponent = theta[..., 2:3] - theta[..., :1] * log_x
        return f, log_x, self.sign * np.exp(np.minimum(exponent, 300.0))

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        f, log_x, t = self._reducible(theta, self.rows)
        by_c = (-theta[:, :1] * t / f)[:, :, None] * _fraction_gradient(self.p, theta[:, 3:])
        parts = np.stack([-t * log_x, np.ones_like(t), t], axis=2)
        return t + theta[:, 1:2], np.concatenate([parts, by_c], axis=2)

    def starts(self, loss: Array) -> Array:
        """Pair the joint law's exponent and constant with several shapes of the fraction."""
        shapes: list[tuple[float, ...]] = [(0.9,), (0.3,), (-0.5,)]
        if self.form == "eq12":
            shapes = [(a, b, c) for a in (0.2, 1.0, -0.3) for b in (0.3, 1.0) for c in (0.5, 1.5)]
        alpha, l_inf = self.joint
        log_n = np.log(self.n)
        starts = []
        for c in shapes:
            f = np.maximum(fraction_of(self.p, np.array([c]))[0], 1e-3)
            power = np.exp(-alpha * (np.log(f) + log_n - log_n.mean()))
            reducible = np.maximum(self.sign * (loss - l_inf), 1e-3 * np.abs(loss))
            starts.append([alpha, l_inf, np.log(reducible / power).mean(), *c])
        return np.array(starts)

    def follow(self, losses: Array, values: Array) -> Minimum:
        best = super().follow(losses, values)
        edge = np.flatnonzero(self._proportional(best.theta))
        if len(edge):  # a draw that stops at c1 = 0 may belong to the other sign
            again = best.theta[edge]
            both = [self.descend(losses[edge], again, box) for box in self.boxes]
            best.theta[edge] = least(both, len(edge)).theta
        return best

    def _proportional(self, theta: Array) -> NDArray[np.bool_]:
        """Where c1 of Eq. 12 vanishes, so that f(p) = p and the other two say nothing, (B,)."""
        return np.asarray((np.abs(theta[:, 3]) < _TINY) & (self.form == "eq12"))

    def optimum(self, loss: Array) -> Optimum:
        best = super().optimum(loss)
        if not self._proportional(best.theta[None])[0]:
            return best
        position = np.arange(len(self.names))
        # Zero is where the two boxes meet, and no bound.
        held = (best.held & (position != 3)) | (position > 3)
        return replace(best, held=held, values=np.where(position == 3, 0.0, best.values))

    def cannot(self, loss: Array) -> str:
        others, coefficients = len(np.unique(self.p[self.p < 1.0])), len(COEFFICIENTS[self.form])
        if others >= coefficients:
            return ""
        return (
            f"{others} weights below 1 cannot determine {coefficients} coefficients of "
            "the fraction; train more weights"
            + (', or use form="eq13", which has one' if self.form == "eq12" and others else "")
        )

    def doubt(self, best: Optimum, loss: Array) -> str:
        if self.several(best):
            reason = "several parameter sets fit equally well: the rows do not separate them"
            if not (self.p == 1.0).any():
                reason += "; add rows of the pair alone (p = 1)"
                reason += ', or use form="eq13"' * (self.form == "eq12")
            return reason
        if best.held[0]:
            return "the exponent ran to an end of its range: no power law in these sizes"
        return ""

    def bounds(self, best: Optimum) -> tuple[str, ...]:
        words = super().bounds(best)
        if best.values[3] != 0.0:
            return words
        return (*words[:4], *(f"{name} undetermined, f(p) = p" for name in self.names[4:]))

    def fraction_doubts(self, held: tuple[str, ...], label: str) -> tuple[str, ...]:
        return () if self.p.max() == 1 else (runs_alone(label, self.n),)


FractionFit = LawFit[FractionLaw]


def fit_fraction(
    frame: pd.DataFrame,
    *,
    form: Form = "eq12",
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    ceiling: float | None = None,
    errors: Errors = "absolute",
    groups: str | None = None,
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
    n, loss, direction, ceiling, errors, groups, label : as in `fit_joint_law`

    Returns
    -------
    LawFit of a FractionLaw
        With ``identified=False`` and a reason when the rows leave no unique answer. When the data
        say f(p) = p, c1 is 0 and c2 and c3 are listed as undetermined.

    Raises
    ------
    InputError
        As `fit_joint_law`, and for an unknown form.
    """
    if form not in COEFFICIENTS:
        raise InputError(f"form: {form!r}; use one of {sorted(COEFFICIENTS)}")
    rows, p = pair_rows(frame, n, loss)
    joint = fit_joint_law(rows, n=n, loss=loss, direction=direction, ceiling=ceiling, errors=errors)
    law = FractionLaw(
        weights=joint.law.weights, direction=direction, ceiling=ceiling, p=p, n=joint.law.n,
        form=form, joint=joint.values[:2],
    )  # fmt: skip
    return solve.fit(
        law, joint.loss, reason=joint.reason, left_out=len(frame) - len(rows),
        runs=row_runs(rows, groups), label=label,
    )  # fmt: skip


def checked_weights(p: ArrayLike) -> Array:
    """Weights as a vector; `InputError` for one outside (0, 1]."""
    weights = vector("p", np.atleast_1d(p), positive=True)
    if (weights > 1).any():
        raise InputError(f"p: {weights.max():g}, and must lie in (0, 1]")
    return weights
