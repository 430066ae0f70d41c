"""The result of every fit: a law, its parameters, their errors and intervals, a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import uncertainty
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.law import Law
from mnmt_repro.laws.uncertainty import LEVEL, Method, Resampling

if TYPE_CHECKING:
    import altair

CONSTANTS = ("l_inf", "E", "t")
"""Parameters that may be zero: the least loss possible, and what another pair is worth."""
POSITIVE = ("alpha", "alpha_e", "alpha_d", "beta", "gamma", "A", "B", "c2", "c3")
"""Parameters that cannot be below zero; their intervals by Student's t are on the log scale."""

L_co = TypeVar("L_co", bound=Law, covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LawFit(Generic[L_co]):
    """A fitted law; made by the ``fit_*`` functions.

    Attributes
    ----------
    law : Law
        The formula at the rows fitted.
    loss : (m,)
        The losses fitted, in the order of the rows.
    values : (P,)
        Parameters in the order of `names`. All NaN when the data do not identify the law.
    covariance : (P, P)
        Of `values`, from the Jacobian at the optimum; rows of parameters held at a bound are zero.
    rss : float
        Weighted sum of squared residuals.
    r2 : float
        Share of the variance of the losses explained, over all rows.
    identified : bool
        Whether the rows determine the parameters. Whether they also determine the effective
        fraction is what `fraction_doubts` says.
    reason : str
        Why the law is not identified; empty when it is.
    active_bounds : tuple of str
        Bounds that hold a parameter, such as ``"l_inf >= 0"``: its name, a space and what holds it.
    left_out : int
        Rows that were not fitted because they are zero-shot (p = 0), as in the paper.
    runs : tuple of str
        Run of each row, where rows of one run are not independent; else empty.
    label : str
        Free text, such as the pair and test set.
    """

    law: L_co
    loss: Array
    values: Array
    covariance: Array
    rss: float = math.nan
    r2: float = math.nan
    identified: bool = False
    reason: str = ""
    active_bounds: tuple[str, ...] = ()
    left_out: int = 0
    runs: tuple[str, ...] = ()
    label: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters in order."""
        return self.law.names

    @property
    def params(self) -> dict[str, float]:
        """Parameter values by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @property
    def alpha(self) -> float:
        """The exponent of the size."""
        return self._named("alpha")

    @property
    def l_inf(self) -> float:
        """The irreducible loss (the highest reachable quality with direction ``"max"``)."""
        return self._named("l_inf")

    @property
    def beta(self) -> Any:
        """The multiplier; of a joint law, a dict of multiplier by weight, or by group."""
        if keys := self.law.keys:
            return dict(zip(keys, self.values[2:].tolist(), strict=True))
        return self._named("beta")

    def _named(self, name: str) -> float:
        if name not in self.names:
            raise AttributeError(f"the law has no {name}; its parameters: {', '.join(self.names)}")
        return self.params[name]

    @property
    def observations(self) -> int:
        """Rows fitted."""
        return len(self.loss)

    @property
    def weights(self) -> Array:
        """Weights of the squared residuals, (m,)."""
        return self.law.row_weights(self.loss)

    def predict(self, *at: ArrayLike) -> Array:
        """Evaluate the law at values of its `inputs` in their order, broadcast together, (m,).

        Raises
        ------
        InputError
            When there are more or fewer of them, or one is not above zero.
        """
        if len(at) != len(self.law.inputs):
            wanted = ", ".join(self.law.inputs)
            raise InputError(f"give values of {wanted}, in this order; got {len(at)}")
        return self.law.curve(self.values, self.law.rows_at(*at))

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self.law.curve(self.values, self.law.rows)

    def refit(self, losses: Array) -> Array:
        """Parameters (B, P) of the law fitted to `losses` (B, m) at the same rows, in one call."""
        return self.law.unscaled(self.law.follow(losses, self.values).theta)

    def fraction_doubts(self) -> tuple[str, ...]:
        """Why the effective fraction by this law is not identified; empty where it is.

        Without p = 1 nothing says what a pair has alone, so f has no unit. A weight without any
        fall with size has no fraction.
        """
        if not self.identified:
            return (self.reason,)
        return self.law.fraction_doubts(self.active_bounds, self.label)

    def residuals(self) -> Array:
        """Losses less the curve, times the root of the weights, (m,)."""
        return np.asarray((self.loss - self.fitted()) * np.sqrt(self.weights))

    def basis(self) -> Array:
        """What the free parameters can follow at the rows: orthonormal columns, (m, free).

        Its rows' squared lengths are the leverages of the rows.
        """
        free = [name not in self.held for name in self.names]
        jacobian = self.law.jacobian(self.law.scaled(self.values))[:, free]
        weighted = jacobian * np.sqrt(self.law.weights)[:, None]
        return np.asarray(np.linalg.qr(weighted / np.linalg.norm(weighted, axis=0))[0])

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
    def stderr(self) -> dict[str, float]:
        """Standard errors from the Jacobian; NaN for a parameter held at a bound."""
        root = np.sqrt(np.diag(self.covariance)).tolist()
        held = self.held
        return {k: math.nan if k in held else v for k, v in zip(self.names, root, strict=True)}

    def draws(self, method: Resampling, *, draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
        """Refits of this law to drawn losses, a column a parameter; see `laws.uncertainty`.

        Raises
        ------
        InputError
            For a law that is not identified, an unknown method, or rows that do not allow it.
        """
        if not self.identified:
            raise InputError(f"no draws of a law that is not identified: {self.reason}")
        if method == "perturbation":
            losses = uncertainty.perturbed(self.loss, draws, seed)
        elif method == "residual":
            losses = uncertainty.residual_bootstrap(
                self.loss, self.fitted(), self.weights, self.degrees_of_freedom, draws, seed
            )
        elif method == "runs":
            free = uncertainty.free_residuals(self.residuals(), self.basis(), self.runs)
            losses = uncertainty.run_bootstrap(
                self.fitted(), free / np.sqrt(self.weights), self.runs, self.free_parameters,
                draws, seed,
            )  # fmt: skip
            if self.loss.min() > 0:  # an outlier's residual, with its sign changed, can pass zero
                losses = np.maximum(losses, 0.01 * self.loss.min())
        else:
            raise InputError(f"method: {method!r}; use one of {get_args(Resampling)}")
        return pd.DataFrame(self.refit(losses), columns=list(self.names))

    def refits(self, draws: int, seed: int = 0) -> Array:
        """Parameters (B, P) of `draws` by `resampling`; NaN without rows to spare."""
        if self.identified and self.spare < 1:
            return np.full((draws, len(self.names)), np.nan)
        return self.draws(self.resampling, draws=draws, seed=seed).to_numpy()

    def band(self, *at: ArrayLike, draws: int = 500) -> pd.DataFrame:
        """95 % confidence band of the curve (not of a new run), as percentiles of refits.

        Parameters
        ----------
        at : values of the law's `inputs`, broadcast together
        draws : int
            Number of refits, which are drawn as `resampling` says.

        Returns
        -------
        DataFrame
            The `inputs` (of a mixture, a column a pair), then ``loss, low, high``; without rows to
            spare, NaN limits.
        """
        loss = self.predict(*at)
        many = self.law.curve(self.refits(draws), self.law.rows_at(*at))
        low, high = uncertainty.percentiles(many)
        return pd.DataFrame({**self.law.columns_at(*at), "loss": loss, "low": low, "high": high})

    def interval(self, *, draws: int = 1_000) -> dict[str, tuple[float, float]]:
        """95 % confidence interval of each parameter, by `method`.

        Those of Student's t are on the log scale for exponents and factors, so that their limits
        are positive. The quantiles of ``fit.draws("perturbation")`` are the paper's (footnote 5).

        Parameters
        ----------
        draws : number of refits

        Returns
        -------
        dict of name to (low, high); NaN where `method` is None. A constant that cannot be below
        zero has no limit there.
        """
        method = self.method
        if method is None:
            return {name: (math.nan, math.nan) for name in self.names}
        if method != "t":
            low, high = uncertainty.percentiles(self.draws(method, draws=draws).to_numpy()).tolist()
            return dict(zip(self.names, zip(low, high, strict=True), strict=True))
        t, stderr, ends = self.t_quantile, self.stderr, {}
        for name, value in self.params.items():
            half, kind = t * stderr[name], name.partition("[")[0]
            if kind in POSITIVE and value > 0:
                factor = math.exp(min(half / value, 700.0))
                ends[name] = (value / factor, value * factor)
            else:
                least = 0.0 if kind in CONSTANTS and self.law.direction == "min" else -math.inf
                ends[name] = (max(value - half, least), value + half)
        return ends

    @property
    def method(self) -> Method | None:
        """How intervals are made; None when not identified, or with too few runs.

        By refits where a bound holds a parameter: standard errors take the bound for known, and
        then cover too rarely. Else, or without rows to spare, by Student's t: next to a bound,
        percentiles of refits that stop there cover too rarely.
        """
        if not self.identified or (self.runs and self.spare < 1):
            return None
        return self.resampling if self.held and self.spare > 0 else "t"

    def method_in_words(self, method: Method | None = None) -> str:
        """How intervals are made, in words; `method` in place of that of the fit."""
        method, runs = method or self.method, len(set(self.runs))
        if method is None or (runs and self.spare < 1):
            return f"none, because {runs} runs are no more than {self.free_parameters} parameters"
        words = uncertainty.METHOD_NAMES[method]
        return f"{words}, with {runs} runs as the observations" if runs else words

    @property
    def resampling(self) -> Resampling:
        """How refits are drawn by default, by runs where rows share them, else by residuals."""
        return "runs" if self.runs else "residual"

    @property
    def t_quantile(self) -> float:
        """Two-sided Student quantile at the `spare` observations; NaN without any."""
        return float(stats.t.ppf((1 + LEVEL) / 2, self.spare)) if self.spare > 0 else math.nan

    def summary(self) -> pd.DataFrame:
        """Parameters with standard errors and 95 % intervals by `interval`, one row each."""
        ends = self.interval()
        return pd.DataFrame(
            {
                "parameter": list(self.names),
                "value": self.values,
                "stderr": list(self.stderr.values()),
                "low": [ends[name][0] for name in self.names],
                "high": [ends[name][1] for name in self.names],
                "held": [name in self.held for name in self.names],
            }
        )

    def plot(self) -> altair.LayerChart:
        """The losses against size on log axes, with the law, in a colour per weight (or data).

        Raises
        ------
        InputError
            For Eq. 2, which has two sizes.
        """
        import altair as alt

        law, names = self.law, self.law.curve_names()
        n = getattr(law, "n", None)
        if n is None:
            raise InputError(f"plot: draws one size, and this law has {' and '.join(law.inputs)}")
        sizes = np.geomspace(n.min(), n.max(), 40)
        is_size = [np.array_equal(column, n) for column in law.rows.T]
        rows = {
            name: np.where(is_size, sizes[:, None], row)
            for name, row in zip(names, law.rows, strict=True)
        }
        curves = pd.concat(
            pd.DataFrame({"n": sizes, "loss": law.curve(self.values, row), "curve": name})
            for name, row in rows.items()
        )
        points = pd.DataFrame({"n": n, "loss": self.loss, "curve": names})
        log = alt.Scale(type="log", nice=False, padding=8)
        what = "loss" if law.direction == "min" else "quality"
        x = alt.X("n", scale=log, title="model size")
        y = alt.Y("loss", scale=log, title=what)
        visible = alt.SchemeParams(name="viridis", extent=[0, 0.8])  # without its pale end
        colour = alt.Color(
            "curve:O",
            scale=alt.Scale(scheme=visible),
            title="data" if "d" in law.inputs else "weight",
            legend=alt.Undefined if len(rows) > 1 else None,
        )
        lines = alt.Chart(curves, title=self.label).mark_line().encode(x, y, colour)
        return lines + alt.Chart(points).mark_point(filled=True, opacity=1).encode(x, y, colour)

    def __repr__(self) -> str:
        """The law in words: its formula, parameters with 95 % intervals, and what is in doubt."""
        table = self.summary().to_string(index=False, float_format="{:.5g}".format)
        first, *notes = self._words()
        return "\n".join([first, *[table] * self.identified, *notes])

    def _words(self) -> list[str]:
        formula = self.law.formula
        if self.law.direction == "max":
            formula = formula.replace("loss = ", "quality = l_inf - ").replace(" + l_inf", "")
        label, r2 = self.label and f"{self.label}: ", f", R² {self.r2:.5f}" * self.identified
        method = [f"95 % intervals: {self.method_in_words()}"] * self.identified
        return [f"{label}{formula}   ({self.observations} rows{r2})", *method, *self.notes()]

    def notes(self) -> list[str]:
        """Notes on the fit: why it, or its fraction, is not identified, bounds, rows left out."""
        unknown = "the effective fraction is not identified: "
        notes = [] if self.identified else [f"not identified: {self.reason}"]
        notes += [unknown + doubt for doubt in self.fraction_doubts() if self.identified]
        notes += ["bounds active: " + ", ".join(self.active_bounds)] if self.active_bounds else []
        notes += [f"{self.left_out} zero-shot rows (p = 0) left out"] if self.left_out else []
        return notes

    def _repr_html_(self) -> str:
        return f"<p>{escape('; '.join(self._words()))}</p>" + self.summary().to_html(index=False)


def r_squared(observed: Array, rss: float, weights: Array) -> float:
    """One less the share of the weighted variance left; NaN for losses that do not vary."""
    total = float(weights @ (observed - np.average(observed, weights=weights)) ** 2)
    return 1.0 - rss / total if total > 0 else math.nan
