"""A law is one class: its formula, gradient, start values and box, at the rows of one fit.

`mnmt_repro.laws.solve.fit` fits a law, and `mnmt_repro.laws.fit_result.LawFit` is what it gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mnmt_repro.laws.checks import Array, Direction, vector
from mnmt_repro.laws.minimise import (
    REFIT_TOLERANCE,
    TOLERANCE,
    Curve,
    Minimum,
    least,
    minimise,
)

TREND_LEVEL = 0.003
"""P-value below which the trend with size must lie for a law to count as identified. The test takes
the curve as fixed, though its exponent was chosen to follow the data: of eight losses that are
nothing but noise, one set in a hundred passes."""

Box = tuple[Array, Array]


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
    objective : half the weighted sum of squared residuals, or the sum of Huber losses
    converged : bool
    """

    theta: Array
    values: Array
    held: NDArray[np.bool_]
    jacobian: Array
    objective: float
    converged: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Law(Curve, ABC):
    """A formula at the rows of one fit, with its gradient, starts and box.

    Multipliers are searched as logarithms, and at the geometric mean of the sizes. A multiplier of
    raw sizes is the loss of a model of one parameter: it moves by orders of magnitude when the
    exponent moves by a tenth, and the search would follow a narrow curved valley.

    Attributes
    ----------
    weights : (m,)
        Of the squared residuals.
    direction : ``"min"`` for a loss, ``"max"`` for a quality
    ceiling : highest constant allowed of a quality, if any
    delta : of Huber's loss; None for squares
    """

    inputs: ClassVar[tuple[str, ...]] = ("n",)
    """What a prediction takes, in order."""
    logarithms: ClassVar[tuple[int, ...]] = ()
    """Positions of the parameters that are searched as logarithms."""
    iterations: ClassVar[int] = 500
    refit_tolerance: ClassVar[float] = REFIT_TOLERANCE

    weights: Array
    direction: Direction = "min"
    ceiling: float | None = None
    delta: float | None = None

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Parameters in order."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The law of a loss, in words of Python."""

    @property
    @abstractmethod
    def rows(self) -> Array:
        """What the law takes as known at each row (sizes, mixture weight), (m, k)."""

    @property
    @abstractmethod
    def boxes(self) -> tuple[Box, ...]:
        """Lowest and highest parameters searched, of each box."""

    @abstractmethod
    def model(self, theta: Array, rows: Array) -> Array:
        """The formula, with parameters as searched (..., P), at rows (m, k): (..., m)."""

    @abstractmethod
    def cannot(self, loss: Array) -> str:
        """Why no fit should be tried, from the rows (m,) alone; empty when one may be."""

    @abstractmethod
    def doubt(self, best: Optimum, loss: Array) -> str:
        """Why the optimum is no answer; empty when it is one."""

    def starts(self, loss: Array) -> Array:
        """Parameters from which `search` descends, (S, P)."""
        raise NotImplementedError

    def fraction_doubts(self, held: tuple[str, ...], label: str) -> tuple[str, ...]:
        """Why a fit with these active bounds leaves the effective fraction open."""
        return ()

    @property
    def keys(self) -> tuple[Any, ...]:
        """What has its own multiplier, such as each mixture weight; else empty."""
        return ()

    @property
    def sign(self) -> float:
        """1 for a loss, -1 for a quality, whose reducible part is taken away."""
        return 1.0 if self.direction == "min" else -1.0

    @property
    def shift(self) -> Array:
        """What a unit of each parameter adds to the logarithm of each multiplier, (P, P)."""
        return np.zeros((len(self.names), len(self.names)))

    def curve(self, values: Array, rows: Array) -> Array:
        """Evaluate the law with parameters (..., P) at rows (m, k): (..., m)."""
        return self.model(self.scaled(values), rows)

    def jacobian(self, theta: Array) -> Array:
        """Derivatives (m, P) of the curve by the parameters searched, at `theta` (P,)."""
        return self.evaluate(theta[None])[1][0]

    def rows_at(self, *at: ArrayLike) -> Array:
        """Rows (m, k) at values of `inputs`, broadcast together and checked."""
        columns = [
            vector(name, np.atleast_1d(values), positive=True)
            for name, values in zip(self.inputs, at, strict=True)
        ]
        return np.column_stack(np.broadcast_arrays(*columns))

    def columns_at(self, *at: ArrayLike) -> dict[str, Array]:
        """Values of `inputs`, broadcast together, by name."""
        return dict(zip(self.inputs, np.broadcast_arrays(*map(np.atleast_1d, at)), strict=True))

    def curve_names(self) -> list[str]:
        """Name of the curve of loss on size that each row belongs to."""
        return ["all"] * len(self.rows)

    def row_weights(self, loss: Array) -> Array:
        """Weights (m,) of the errors of the losses themselves."""
        return self.weights

    def target(self, losses: Array) -> Array:
        """Return what the curve is fitted to."""
        return losses

    def unscaled(self, theta: Array) -> Array:
        """Parameters of the law (..., P) at those that are searched (..., P)."""
        values, logs = theta + theta @ self.shift.T, list(self.logarithms)
        values[..., logs] = np.exp(values[..., logs])
        return values

    def scaled(self, values: Array) -> Array:
        """Parameters that are searched (..., P), at those of the law (..., P)."""
        theta, logs = values.copy(), list(self.logarithms)
        theta[..., logs] = np.log(np.maximum(values[..., logs], 1e-300))
        return np.asarray(theta - theta @ self.shift.T)

    def change(self, values: Array) -> Array:
        """Derivatives (P, P) of the law's parameters by those searched."""
        unit, logs = np.ones(len(values)), list(self.logarithms)
        unit[logs] = values[logs]
        return unit[:, None] * (np.eye(len(values)) + self.shift)

    def search(self, loss: Array) -> Minimum:
        """Best parameters for losses (m,), from nothing: a batch of one."""
        starts = self.starts(loss)
        many = np.broadcast_to(loss, (len(starts), len(loss)))
        return least([self.descend(many, starts, box) for box in self.boxes], 1)

    def follow(self, losses: Array, values: Array) -> Minimum:
        """Best parameters for losses (B, m) like those that gave `values` (P,), in one call."""
        # Refits stay in the box of the fit: noise seldom moves one to another box, and such a one
        # stops at the wall between them, where `FractionLaw` looks on both sides.
        start = np.repeat(self.scaled(values)[None], len(losses), 0)
        return self.descend(losses, start, self.own_box(start[0]), self.refit_tolerance)

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

    def bounds(self, best: Optimum) -> tuple[str, ...]:
        """The bound of each parameter, were it to hold, in words that begin with its name."""
        lower, upper = self.own_box(best.theta)
        low = best.theta - lower < upper - best.theta
        least = [0.0 if i in self.logarithms else end for i, end in enumerate(lower)]
        return tuple(
            f"{name} >= {least[i]:g}" if low[i] else f"{name} <= {upper[i]:g}"
            for i, name in enumerate(self.names)
        )

    def optimum(self, loss: Array) -> Optimum:
        """Describe the minimum that `search` ends at."""
        best = self.search(loss)
        return Optimum(
            theta=best.theta[0],
            values=self.unscaled(best.theta[0]),
            held=best.held[0],
            jacobian=self.jacobian(best.theta[0]),
            objective=float(best.objective[0]),
            converged=bool(best.converged[0]),
        )

    def several(self, best: Optimum) -> bool:
        """Whether other parameters fit equally well."""
        j = (best.jacobian * np.sqrt(self.weights)[:, None])[:, ~best.held]
        norm = np.linalg.norm(j, axis=0)
        if len(j) < j.shape[1] or (norm == 0).any():
            return True
        # Columns of one length first, as in `covariance_of`. What is left of a singular value is
        # rounding below this share: of derivatives in double precision, half the digits hold.
        singular = np.linalg.svd(j / norm, compute_uv=False)
        return bool(singular[-1] < 1e-7 * singular[0])


def is_flat(loss: Array) -> bool:
    """Whether losses (m,) differ by no more than rounding."""
    return bool(np.ptp(loss) <= 1e-10 * np.abs(loss).max())


def trend_p_value(loss: Array, fitted: Array, slopes: int) -> float:
    """P-value (F test) of the correlation between losses (m,) and a fitted curve (m,).

    The curve follows noise with its `slopes`: the number of its heights and exponents. The value is
    zero without rows to spare, because the noise is then unknown.
    """
    dof = len(loss) - slopes - 1
    if dof < 1:
        return 0.0
    r2 = float(np.corrcoef(fitted, loss)[0, 1]) ** 2
    return float(stats.f.sf(r2 / slopes * dof / max(1.0 - r2, 1e-300), slopes, dof))


def runs_alone(label: str, n: Array) -> str:
    """Which runs to add where no row has p = 1, for a pair of this name and its sizes."""
    ends = dict.fromkeys(f"{size:,.6g}" for size in (n.min(), n.max()))
    sizes = f"size{'s from' * (len(ends) > 1)} {' to '.join(ends)}"
    return f"no row has p = 1; add runs of {label or 'the pair'} alone at {sizes}"
