"""What every fitted law can tell: parameters, errors, intervals, a table, JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import uncertainty
from mnmt_repro.laws.checks import Array, Direction, check_level, vector

if TYPE_CHECKING:
    from mnmt_repro.laws.solve import Law

Floats = tuple[float, ...]

CONSTANTS = ("l_inf", "E")
"""Parameters that are the least loss possible."""
POSITIVE = ("alpha", "alpha_e", "alpha_d", "beta", "A", "B", "c2", "c3")
"""Parameters that cannot be below zero; their intervals by Student's t are on the log scale."""


@dataclass(frozen=True, kw_only=True)
class LawFit(ABC):
    """A fitted law. Base of the results of this room; made by the ``fit_*`` functions.

    Attributes
    ----------
    names, values
        Parameters in order. All NaN when the data do not identify the law.
    loss, weights
        The losses fitted, in the order of the rows, and the weights of their squared residuals.
    covariance : (P, P)
        Of `values`, from the Jacobian at the optimum; rows of parameters held at a bound are zero.
    rss : float
        Weighted sum of squared residuals.
    r2 : float
        Share of the variance of the losses explained, over all rows.
    observations : int
        Rows fitted.
    identified : bool
    reason : str
        Why the law is not identified; empty when it is.
    active_bounds : tuple of str
        Bounds that hold a parameter, such as ``"l_inf >= 0"``: its name, a space and what holds it.
    left_out : int
        Rows that were not fitted because they are zero-shot (p = 0), as in the paper.
    runs : tuple of str
        Run of each row, where rows of one run are not independent; else empty.
    direction : ``"min"`` for a loss, ``"max"`` for a quality
    ceiling : highest constant allowed of a quality, if any
    label : free text, such as the pair and test set
    """

    inputs: ClassVar[tuple[str, ...]] = ("n",)
    """What `predict` and `band` take, in order."""

    names: tuple[str, ...]
    loss: Floats
    weights: Floats
    values: Floats
    covariance: tuple[Floats, ...]
    rss: float
    r2: float
    observations: int
    identified: bool
    reason: str = ""
    active_bounds: tuple[str, ...] = ()
    left_out: int = 0
    runs: tuple[str, ...] = ()
    direction: Direction = "min"
    ceiling: float | None = None
    label: str = ""

    @classmethod
    def blank(cls, names: tuple[str, ...], loss: Array, **rows: Any) -> Self:
        """A result without numbers, for `solve.fit` to fill in; vectors become tuples."""
        nothing = (math.nan,) * len(names)
        numbers: dict[str, Any] = {"values": nothing, "covariance": (nothing,) * len(names)}
        rows = {"weights": np.ones(len(loss))} | rows
        rows = {k: tuple(v.tolist()) if isinstance(v, np.ndarray) else v for k, v in rows.items()}
        return cls(
            names=names, loss=as_tuple(loss), observations=len(loss), rss=math.nan, r2=math.nan,
            identified=False, **numbers, **rows,
        )  # fmt: skip

    @abstractmethod
    def law(self) -> Law:
        """Return the formula at the rows fitted."""

    @abstractmethod
    def design(self) -> Array:
        """Return what the law takes as given at each row (sizes, mixture weight), (m, k)."""

    @abstractmethod
    def curve(self, values: Array, design: Array) -> Array:
        """Evaluate the law with parameters (..., P) at rows (m, k): (..., m)."""

    def rows_at(self, *at: ArrayLike) -> Array:
        """Rows (m, k) at values of `inputs`, broadcast together and checked."""
        columns = [
            vector(name, np.atleast_1d(values), positive=True)
            for name, values in zip(self.inputs, at, strict=True)
        ]
        return np.column_stack(np.broadcast_arrays(*columns))

    def predict(self, *at: ArrayLike) -> Array:
        """Evaluate the law at values of `inputs` in their order, broadcast together, (m,).

        Raises
        ------
        InputError
            When there are more or fewer of them, or one is not above zero.
        """
        if len(at) != len(self.inputs):
            wanted = ", ".join(self.inputs)
            raise InputError(f"give values of {wanted}, in this order; got {len(at)}")
        return self.curve(np.array(self.values), self.rows_at(*at))

    def band(
        self,
        *at: ArrayLike,
        level: float = 0.95,
        method: uncertainty.Resampling | None = None,
        draws: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Confidence band of the curve (not of a new run), as percentiles of refits.

        Parameters
        ----------
        at : values of `inputs`, broadcast together
        level, method, draws, seed : of the refits; by default as `resampling` says

        Returns
        -------
        DataFrame
            The `inputs`, then ``loss, low, high``.
        """
        check_level(level)
        loss = self.predict(*at)
        many = self.draws(method or self.resampling, draws=draws, seed=seed).values
        low, high = uncertainty.percentiles(self.curve(many, self.rows_at(*at)), level)
        columns = dict(zip(self.inputs, np.broadcast_arrays(*map(np.atleast_1d, at)), strict=True))
        return pd.DataFrame({**columns, "loss": loss, "low": low, "high": high})

    def curve_names(self) -> list[str]:
        """Name of the curve of loss on size that each row belongs to."""
        return ["all"] * self.observations

    def doubts(self) -> tuple[str, ...]:
        """Why the effective fraction is not identified, and the runs to add; empty where it is."""
        return ()

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self.curve(np.array(self.values), self.design())

    def refit(self, losses: Array) -> Array:
        """Parameters (B, P) of the law fitted to `losses` (B, m) at the same rows, in one call."""
        law = self.law()
        return law.unscaled(law.follow(losses, np.array(self.values)).theta)

    def observed(self) -> Array:
        """Losses fitted, (m,)."""
        return np.array(self.loss)

    def row_weights(self) -> Array:
        """Weights of the squared residuals, (m,)."""
        return np.array(self.weights)

    def basis(self) -> Array:
        """What the free parameters can follow at the rows: orthonormal columns, (m, free).

        Its rows' squared lengths are the leverages of the rows.
        """
        law = self.law()
        free = [name not in self.held for name in self.names]
        jacobian = law.jacobian(law.scaled(np.array(self.values)))[:, free]
        weighted = jacobian * np.sqrt(law.weights)[:, None]
        return np.asarray(np.linalg.qr(weighted / np.linalg.norm(weighted, axis=0))[0])

    @property
    def params(self) -> dict[str, float]:
        """Parameter values by name."""
        return dict(zip(self.names, self.values, strict=True))

    @property
    def held(self) -> tuple[str, ...]:
        """Parameters that a bound holds."""
        return tuple(bound.split(" ")[0] for bound in self.active_bounds)

    @property
    def free_parameters(self) -> int:
        """Parameters that no bound holds."""
        return len(self.names) - len(self.held)

    @property
    def degrees_of_freedom(self) -> int:
        """Rows less free parameters."""
        return self.observations - self.free_parameters

    @property
    def spare(self) -> int:
        """Runs, or rows that are independent, less free parameters."""
        return (len(set(self.runs)) or self.observations) - self.free_parameters

    @property
    def residual_sd(self) -> float:
        """Standard deviation of the residuals; NaN without rows to spare."""
        spare = self.degrees_of_freedom
        return math.sqrt(self.rss / spare) if spare > 0 else math.nan

    @property
    def relative(self) -> bool:
        """Whether rows count by the share that an error is of their loss."""
        with np.errstate(divide="ignore"):
            return bool(np.allclose(self.row_weights(), self.observed() ** -2.0))

    def noise_at(self, loss: Array) -> Array:
        """Standard deviation of single runs with these losses; relative errors grow with them."""
        return self.residual_sd * (np.abs(loss) if self.relative else np.ones_like(loss))

    def noise_sd(self) -> Array:
        """Standard deviation of each row's noise, (m,): for relative errors in proportion to it."""
        return self.residual_sd / np.sqrt(self.row_weights())

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors from the Jacobian; NaN for a parameter held at a bound."""
        root = np.sqrt(np.diag(np.array(self.covariance)))
        return {
            name: math.nan if name in self.held else float(value)
            for name, value in zip(self.names, root, strict=True)
        }

    def interval(
        self,
        level: float = 0.95,
        method: uncertainty.Asked = "auto",
        *,
        draws: int = 1_000,
        seed: int = 0,
    ) -> dict[str, tuple[float, float]]:
        """Confidence interval of each parameter.

        Parameters
        ----------
        level : probability covered
        method
            ``"t"`` from standard errors, for exponents and factors on the log scale, so that their
            limits are positive; ``"perturbation"`` (the paper's, footnote 5), ``"residual"``,
            ``"seeds"`` or ``"runs"`` from refits, as percentiles; ``"auto"`` as `interval_method`
            says.
        draws, seed : of the refits

        Returns
        -------
        dict of name to (low, high); NaN where `method_of` gives no method. A constant that cannot
        be below zero has no limit there.
        """
        check_level(level)
        chosen = self.method_of(method)
        if chosen is None:
            return {name: (math.nan, math.nan) for name in self.names}
        if chosen != "t":
            return self.draws(chosen, draws=draws, seed=seed).interval(level)
        t, found = self.t_quantile(level), {}
        for name, value in self.params.items():
            half = t * self.stderr[name]
            if name.partition("[")[0] in POSITIVE and value > 0:
                factor = math.exp(min(half / value, 700.0))
                found[name] = (value / factor, value * factor)
            else:
                least = 0.0 if name in CONSTANTS and self.direction == "min" else -math.inf
                found[name] = (max(value - half, least), value + half)
        return found

    def method_of(self, asked: uncertainty.Asked = "auto") -> uncertainty.Method | None:
        """How intervals are made; None when not identified, or by ``"auto"`` with too few runs."""
        if not self.identified:
            return None
        if asked != "auto":
            return asked
        return None if self.runs and self.spare < 1 else self.interval_method

    def method_in_words(self, asked: uncertainty.Asked = "auto") -> str:
        """How intervals are made, in words."""
        method, runs = self.method_of(asked), len(set(self.runs))
        if method is None or (runs and self.spare < 1):
            return f"none, because {runs} runs are no more than {self.free_parameters} parameters"
        words = uncertainty.METHOD_NAMES[method]
        if method == "t" and self.held:
            words += ", which take the bounds for known and so are too small"
        return f"{words}, with {runs} runs as the observations" if runs else words

    @property
    def interval_method(self) -> uncertainty.Method:
        """How ``"auto"`` makes intervals.

        Refits where a bound holds a parameter: standard errors take the bound for known, and then
        cover too rarely. Else, or without rows to spare, Student's t: next to a bound, percentiles
        of refits that stop there cover too rarely.
        """
        return self.resampling if self.held and self.spare > 0 else "t"

    @property
    def resampling(self) -> uncertainty.Resampling:
        """How refits are drawn by default: by runs where rows share them, else by residuals."""
        return "runs" if self.runs else "residual"

    def draws(
        self, method: uncertainty.Resampling, *, draws: int = 10_000, seed: int = 0
    ) -> uncertainty.Draws:
        """Refits of this law to drawn losses; see `mnmt_repro.laws.uncertainty`."""
        if not self.identified:
            raise InputError(f"no draws of a law that is not identified: {self.reason}")
        return uncertainty.draw(self, method, draws=draws, seed=seed)

    def t_quantile(self, level: float) -> float:
        """Two-sided Student quantile at the `spare` observations; NaN without any.

        Raises
        ------
        InputError
            When the level is no probability.
        """
        check_level(level)
        return float(stats.t.ppf((1 + level) / 2, self.spare)) if self.spare > 0 else math.nan

    def summary(self, method: uncertainty.Asked = "auto") -> pd.DataFrame:
        """Parameters with standard errors and 95 % intervals by `interval`, one row each."""
        interval = self.interval(method=method)
        return pd.DataFrame(
            {
                "parameter": list(self.names),
                "value": list(self.values),
                "stderr": list(self.stderr.values()),
                "low": [interval[name][0] for name in self.names],
                "high": [interval[name][1] for name in self.names],
                "held": [name in self.held for name in self.names],
            }
        )

    def _repr_html_(self) -> str:
        notes = [f"{type(self).__name__}: {self.observations} rows, R² {self.r2:.4f}"]
        if not self.identified:
            notes.append(f"<strong>not identified</strong>: {self.reason}")
        if self.active_bounds:
            notes.append("bounds active: " + ", ".join(self.active_bounds))
        if self.left_out:
            notes.append(f"{self.left_out} zero-shot rows (p = 0) left out")
        notes.append(f"95 % intervals: {self.method_in_words()}")
        return f"<p>{'; '.join(notes)}</p>" + self.summary().to_html(index=False)


def r_squared(observed: Array, rss: float, weights: Array) -> float:
    """One less the share of the weighted variance left; NaN for losses that do not vary."""
    total = float(weights @ (observed - np.average(observed, weights=weights)) ** 2)
    return 1.0 - rss / total if total > 0 else math.nan


def as_tuple(array: Array) -> tuple[float, ...]:
    """Turn a vector into a tuple of plain floats."""
    return tuple(float(value) for value in array)


def as_rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    """Turn a matrix into a tuple of tuples of plain floats."""
    return tuple(as_tuple(row) for row in matrix)
