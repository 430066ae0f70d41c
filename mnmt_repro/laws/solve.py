"""The one driver of all fits: checks, starts, minimum, is it an answer?, covariance, result.

A law is a formula with its gradient, its starts and its box (`Law`). A fit is a result without
numbers (`LawFit.blank`) that `fit` fills in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fit_result import LawFit, as_rows, as_tuple, r_squared
from mnmt_repro.laws.minimise import (
    REFIT_TOLERANCE,
    TOLERANCE,
    Curve,
    Minimum,
    least,
    minimise,
)
from mnmt_repro.laws.uncertainty import free_residuals

TREND_LEVEL = 0.003
"""P-value below which the trend with size must lie for a law to count as identified. The test takes
the curve as given, though its exponent was chosen to follow the data: of eight losses that are
nothing but noise, one set in a hundred passes."""

Box = tuple[Array, Array]
_Fit = TypeVar("_Fit", bound=LawFit)


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best parameters for one set of losses, before they count as an answer.

    Attributes
    ----------
    theta : (P,)
        In the parameters that are searched.
    values : (P,)
        In those of the law.
    held : (P,) bool
        Parameters that are not free, because of a bound or because the losses do not depend on
        them.
    jacobian : (m, P)
        Of the curve with respect to `theta`.
    rss : weighted sum of squared residuals; twice the sum of Huber losses
    converged : bool
    """

    theta: Array
    values: Array
    held: NDArray[np.bool_]
    jacobian: Array
    rss: float
    converged: bool


@dataclass(frozen=True, kw_only=True)
class Law(ABC):
    """A formula at the rows of one fit, with what its fit needs.

    Attributes
    ----------
    names : of the parameters, in order
    weights : (m,)
        Of the squared residuals.
    """

    names: tuple[str, ...]
    weights: Array

    @abstractmethod
    def cannot(self, loss: Array) -> str:
        """Why no fit should be tried, from the rows (m,) alone; empty when one may be."""

    @abstractmethod
    def search(self, loss: Array) -> Minimum:
        """Best parameters for losses (m,), from nothing: a batch of one."""

    @abstractmethod
    def follow(self, losses: Array, values: Array) -> Minimum:
        """Best parameters for losses (B, m) like those that gave `values` (P,), in one call."""

    @abstractmethod
    def jacobian(self, theta: Array) -> Array:
        """Derivatives of the curve at `theta` (P,): (m, P)."""

    @abstractmethod
    def doubt(self, found: Optimum, loss: Array) -> str:
        """Why the optimum found is no answer; empty when it is one."""

    def bounds(self, found: Optimum) -> tuple[str, ...]:
        """Bounds that hold a parameter, in words that begin with its name."""
        words = self.bounds_in_words(found)
        return tuple(bound for bound, held in zip(words, found.held, strict=True) if held)

    @abstractmethod
    def bounds_in_words(self, found: Optimum) -> tuple[str, ...]:
        """The bound of each parameter, were it to hold."""

    def several(self, found: Optimum) -> bool:
        """Whether other parameters fit equally well."""
        j = (found.jacobian * np.sqrt(self.weights)[:, None])[:, ~found.held]
        norm = np.linalg.norm(j, axis=0)
        if len(j) < j.shape[1] or (norm == 0).any():
            return True
        # Columns of one length first, as in `covariance_of`. What is left of a singular value is
        # rounding below this share: of derivatives in double precision, half the digits hold.
        singular = np.linalg.svd(j / norm, compute_uv=False)
        return bool(singular[-1] < 1e-7 * singular[0])

    def unscaled(self, theta: Array) -> Array:
        """Parameters of the law (B, P) at those that are searched (B, P)."""
        return theta

    def scaled(self, values: Array) -> Array:
        """Parameters that are searched (P,), at those of the law (P,)."""
        return values

    def change(self, values: Array) -> Array | None:
        """Derivatives (P, P) of the law's parameters by those searched; None where they are one."""
        return None

    def optimum(self, loss: Array) -> Optimum:
        """Describe the minimum that `search` finds."""
        found = self.search(loss)
        return Optimum(
            theta=found.theta[0],
            values=self.unscaled(found.theta)[0],
            held=found.held[0],
            jacobian=self.jacobian(found.theta[0]),
            rss=2 * float(found.objective[0]),
            converged=bool(found.converged[0]),
        )


@dataclass(frozen=True, kw_only=True)
class CurveLaw(Law, Curve):
    """A law that `minimise` fits, from several starts and in one or more boxes.

    Multipliers are searched as logarithms, and at the geometric mean of the sizes. A multiplier of
    raw sizes is the loss of a model of one parameter: it moves by orders of magnitude when the
    exponent moves by a tenth, and the search would follow a narrow curved valley.
    """

    logarithms: ClassVar[tuple[int, ...]]
    """Positions of the parameters that are searched as logarithms."""
    iterations: ClassVar[int] = 500
    refit_tolerance: ClassVar[float] = REFIT_TOLERANCE
    delta: float | None = None
    """Of Huber's loss; None for squares."""

    @property
    @abstractmethod
    def shift(self) -> Array:
        """What a unit of each parameter adds to the logarithm of each multiplier, (P, P)."""

    @property
    @abstractmethod
    def boxes(self) -> tuple[Box, ...]:
        """Lowest and highest parameters of each box."""

    @abstractmethod
    def starts(self, loss: Array) -> Array:
        """Parameters from which `search` descends, (S, P)."""

    def unscaled(self, theta: Array) -> Array:
        values, logs = theta + theta @ self.shift.T, list(self.logarithms)
        values[:, logs] = np.exp(values[:, logs])
        return values

    def scaled(self, values: Array) -> Array:
        theta, logs = values.copy(), list(self.logarithms)
        theta[logs] = np.log(np.maximum(values[logs], 1e-300))
        return theta - self.shift @ theta

    def change(self, values: Array) -> Array:
        unit, logs = np.ones(len(values)), list(self.logarithms)
        unit[logs] = values[logs]
        return unit[:, None] * (np.eye(len(values)) + self.shift)

    def jacobian(self, theta: Array) -> Array:
        return self.evaluate(theta[None])[1][0]

    def search(self, loss: Array) -> Minimum:
        starts = self.starts(loss)
        many = np.broadcast_to(loss, (len(starts), len(loss)))
        return least([self.descend(many, starts, box) for box in self.boxes], 1)

    def follow(self, losses: Array, values: Array) -> Minimum:
        # Refits stay in the box of the fit: noise seldom moves one to another box, and such a one
        # stops at the wall between them, where `FractionLaw` looks on both sides.
        start = np.repeat(self.scaled(values)[None], len(losses), 0)
        return self.descend(losses, start, self.own_box(start[0]), self.refit_tolerance)

    def target(self, losses: Array) -> Array:
        """Return what the curve is fitted to."""
        return losses

    def descend(
        self, losses: Array, start: Array, box: Box, tolerance: float = TOLERANCE
    ) -> Minimum:
        """Minimise in one box, each of the losses (B, m) from its own start (B, P)."""
        return minimise(
            self, self.target(losses), start, np.atleast_2d(self.weights), lower=box[0],
            upper=box[1], delta=self.delta, iterations=self.iterations, tolerance=tolerance,
        )  # fmt: skip

    def own_box(self, theta: Array) -> Box:
        """The box that holds `theta` (P,), or is nearest to it."""
        return min(self.boxes, key=lambda box: float(np.abs(theta - np.clip(theta, *box)).sum()))


def fit(blank: _Fit, law: Law | None = None) -> _Fit:
    """Fit the law of a result without numbers, and fill these in.

    Without an answer the numbers stay NaN, and the result says why.

    Parameters
    ----------
    blank : with the rows and losses
    law : needed only where the starts rest on more than the rows
    """
    law, loss = law or blank.law(), blank.observed()
    reason = law.cannot(loss)
    if not reason:
        found = law.optimum(loss)
        reason = law.doubt(found, loss)
    if reason:
        return replace(blank, reason=reason)
    fitted = replace(blank, values=as_tuple(found.values), active_bounds=law.bounds(found))
    covariance = covariance_of(found.jacobian, law.weights, found.rss, found.held)
    if blank.runs:
        residual = free_residuals(fitted)
        covariance = covariance_by_run(
            found.jacobian, law.weights, residual, found.held, blank.runs
        )
    change = law.change(found.values)
    if change is not None:
        covariance = change @ covariance @ change.T
    return replace(
        fitted,
        covariance=as_rows(covariance),
        rss=found.rss,
        r2=r_squared(loss, found.rss, law.weights),
        identified=True,
    )


def covariance_of(jacobian: Array, weights: Array, rss: float, held: NDArray[np.bool_]) -> Array:
    """Covariance of least-squares parameters; NaN without degrees of freedom.

    Parameters
    ----------
    jacobian : (m, P)
    weights : (m,)
    held : (P,) bool
        Parameters at a bound: their rows and columns are zero.
    """
    free = ~held
    dof = len(jacobian) - int(free.sum())
    covariance = np.zeros((len(held), len(held)))
    j = jacobian[:, free] * np.sqrt(weights)[:, None]
    # Columns of one length first: multipliers and exponents differ by orders of magnitude, and the
    # pseudo-inverse would take the smaller ones for rounding.
    norm = np.linalg.norm(j, axis=0)
    inverse = np.linalg.pinv((j / norm).T @ (j / norm), hermitian=True) / np.outer(norm, norm)
    covariance[np.ix_(free, free)] = inverse * (rss / dof if dof > 0 else math.nan)
    return covariance


def covariance_by_run(
    jacobian: Array,
    weights: Array,
    residual: Array,
    held: NDArray[np.bool_],
    runs: tuple[str, ...],
) -> Array:
    """Covariance of least-squares parameters when the rows of one run err together.

    The sandwich by clusters: what a run adds to the gradient is one observation, however many rows
    it has. NaN unless there are more runs than free parameters.

    Parameters
    ----------
    jacobian, weights, held : as in `covariance_of`
    residual : (m,)
        From `uncertainty.free_residuals`.
    runs : name of each row's run
    """
    free = ~held
    names, run = np.unique(np.array(runs), return_inverse=True)
    few = len(names) <= free.sum()
    unit = covariance_of(jacobian, weights, float(len(jacobian) - free.sum()), held)
    rows = np.where(free, jacobian, 0.0) * (np.sqrt(weights) * residual)[:, None]
    sums = np.zeros((len(names), len(held)))
    np.add.at(sums, run, rows)
    return np.asarray(unit @ sums.T @ sums @ unit * (np.nan if few else 1.0))


def is_flat(loss: Array) -> bool:
    """Whether losses (m,) differ by no more than rounding."""
    return bool(np.ptp(loss) <= 1e-10 * np.abs(loss).max())


def trend_p_value(loss: Array, fitted: Array, slopes: int) -> float:
    """P-value (F test) of the correlation between losses (m,) and a fitted curve (m,).

    The curve has so many `slopes`, heights and exponents alike, to follow noise with. Zero where
    there are no rows to spare, as there is then no noise to judge by.
    """
    dof = len(loss) - slopes - 1
    if dof < 1:
        return 0.0
    r2 = float(np.corrcoef(fitted, loss)[0, 1]) ** 2
    return float(stats.f.sf(r2 / slopes * dof / max(1.0 - r2, 1e-300), slopes, dof))
