"""What the power law and the joint law share: one exponent, one constant, a multiplier a group.

``loss = beta[g] * n**-alpha + l_inf``; for a quality (direction ``"max"``)
``score = l_inf - beta[g] * n**-alpha``. Sizes are divided by their geometric mean while fitting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, Direction, vector
from mnmt_repro.laws.fit_result import (
    Floats,
    LawFit,
    as_rows,
    as_tuple,
    covariance_of,
    r_squared,
    rank_deficient,
)
from mnmt_repro.laws.projection import ALPHA_BOUNDS, project

TREND_LEVEL = 0.003
"""P-value below which the trend with size must lie for a law to count as identified. The test takes
the curve as given, though its exponent was chosen to follow the data: of eight losses that are
nothing but noise, one set in a hundred passes."""


@dataclass(frozen=True, kw_only=True)
class GroupedLawFit(LawFit):
    """Parameters in the order alpha, l_inf, then the multipliers; and the rows fitted.

    Attributes
    ----------
    n, loss, weights : row values
    group : index of each row's multiplier
    direction : ``"min"`` for a loss, ``"max"`` for a quality
    ceiling : highest `l_inf` allowed of a quality, if any
    label : free text, such as the pair and test set
    """

    n: Floats
    weights: Floats
    group: tuple[int, ...]
    direction: Direction
    ceiling: float | None
    label: str = ""

    @property
    def alpha(self) -> float:
        """The exponent."""
        return self.values[0]

    @property
    def l_inf(self) -> float:
        """The irreducible loss (the highest reachable quality with direction ``"max"``)."""
        return self.values[1]

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self._curve(np.array(self.values), np.array(self.group), np.array(self.n))

    def row_weights(self) -> Array:
        """Weights of the squared residuals, (m,)."""
        return np.array(self.weights)

    def design(self) -> Array:
        """Group and size of each row, (m, 2)."""
        return np.column_stack([self.group, self.n])

    def refit(self, losses: Array) -> Array:
        """Fit the same law to other losses (B, m) at the same rows, all in one call."""
        return _solve(
            np.array(self.n),
            losses,
            np.array(self.group),
            self.row_weights(),
            self.direction,
            self.ceiling,
        )[0]

    def _curve(self, values: Array, group: NDArray[np.intp], n: Array) -> Array:
        reducible = values[..., 2 + group] * n ** -values[..., :1]
        return values[..., 1:2] + (reducible if self.direction == "min" else -reducible)

    def _predict(self, group: NDArray[np.intp], n: ArrayLike) -> Array:
        size = vector("n", np.atleast_1d(n), positive=True)
        return self._curve(np.array(self.values), *np.broadcast_arrays(group, size))

    def _band(self, group: NDArray[np.intp], n: ArrayLike, level: float) -> pd.DataFrame:
        size = vector("n", np.atleast_1d(n), positive=True)
        size, group = np.broadcast_arrays(size, group)
        mean = self._predict(group, size)
        gradient = gradient_of(np.array(self.values), group, size, self.direction)
        sd = np.sqrt(np.einsum("ij,jk,ik->i", gradient, np.array(self.covariance), gradient))
        half = self.t_quantile(level) * sd
        return pd.DataFrame({"n": size, "loss": mean, "low": mean - half, "high": mean + half})


def gradient_of(values: Array, group: NDArray[np.intp], n: Array, direction: Direction) -> Array:
    """Differentiate the law with respect to alpha, l_inf and the multipliers, (m, P)."""
    sign = 1.0 if direction == "min" else -1.0
    power = n ** -values[0]
    gradient = np.zeros((len(n), len(values)))
    gradient[:, 0] = -sign * values[2 + group] * np.log(n) * power
    gradient[:, 1] = 1.0
    gradient[np.arange(len(n)), 2 + group] = sign * power
    return gradient


Fit = TypeVar("Fit", bound=GroupedLawFit)


def fit_grouped(
    kind: type[Fit],
    n: Array,
    loss: Array,
    group: NDArray[np.intp],
    weights: Array,
    direction: Direction,
    ceiling: float | None,
    multipliers: tuple[str, ...],
    **about: Any,
) -> Fit:
    """Fit a `kind` of law to checked data; `multipliers` names one parameter a group.

    `about` are the kind's own fields.
    """
    if ceiling is not None and direction == "min":
        raise InputError(f'ceiling: {ceiling} is of a quality: give direction="max"')
    if ceiling is not None and not ceiling > loss.max():
        raise InputError(f"ceiling: {ceiling} must lie above the best score, {loss.max():g}")
    if direction == "min" and (loss <= 0).any():
        raise InputError(
            f"losses must be above 0, the least is {loss.min():g}: change the sign of "
            'log-probabilities; for a quality give direction="max"'
        )
    names = ("alpha", "l_inf", *multipliers)
    fields: dict[str, Any] = about | {
        "n": as_tuple(n),
        "loss": as_tuple(loss),
        "weights": as_tuple(weights),
        "group": tuple(int(g) for g in group),
        "direction": direction,
        "ceiling": ceiling,
        "observations": len(n),
    }
    reason = _cannot(n, loss, group)
    if not reason:
        values, held, rss = _solve(n, loss[None], group, weights, direction, ceiling)
        reason = _unidentified(n, loss, group, weights, direction, values[0], held[0])
    if reason:
        return kind.unidentified(reason, names, **fields)
    jacobian = gradient_of(values[0], group, n, direction)
    bound = "l_inf >= 0" if direction == "min" else f"l_inf <= {ceiling}"
    bounds = (bound, *(f"{name} >= 0" for name in multipliers))
    return kind(
        names=names,
        values=as_tuple(values[0]),
        covariance=as_rows(covariance_of(jacobian, weights, rss[0], held[0])),
        rss=float(rss[0]),
        r2=r_squared(loss, float(rss[0]), weights),
        identified=True,
        active_bounds=tuple(b for b, h in zip(bounds, held[0, 1:], strict=True) if h),
        **fields,
    )


def least_constant(direction: Direction, ceiling: float | None) -> float:
    """Least constant of a fit to losses, or to negated qualities: 0, or less the ceiling."""
    if direction == "min":
        return 0.0
    return -np.inf if ceiling is None else -ceiling


def _solve(
    n: Array,
    losses: Array,
    group: NDArray[np.intp],
    weights: Array,
    direction: Direction,
    ceiling: float | None,
) -> tuple[Array, NDArray[np.bool_], Array]:
    """Values (B, P) in the units of `n`, held (B, P), rss (B,)."""
    centre = np.log(n).mean()
    sign = 1.0 if direction == "min" else -1.0
    lower = least_constant(direction, ceiling)
    found = project(np.log(n) - centre, sign * losses, group, weights, lower)
    beta = found.beta * np.exp(found.alpha * centre)[:, None]
    values = np.column_stack([found.alpha, sign * found.l_inf, beta])
    held = np.column_stack([found.alpha_at_bound, found.l_inf_at_bound, found.beta <= 0])
    return values, held, found.rss


def _cannot(n: Array, loss: Array, group: NDArray[np.intp]) -> str:
    """Why no fit should be tried, from the rows alone; empty when one may be."""
    groups = int(group.max()) + 1
    sizes = len(np.unique(n))
    cells = len(np.unique(np.column_stack([group, n]), axis=0))
    if sizes < 2 or (groups == 1 and sizes < 3):
        return (
            f"{sizes} distinct size(s) cannot determine {2 + groups} parameters; train more sizes"
        )
    if cells < 2 + groups:
        return f"{cells} distinct rows cannot determine {2 + groups} parameters; train more sizes"
    if np.ptp(loss) <= 1e-10 * np.abs(loss).max():
        return "the loss is flat: it does not change with size"
    return ""


def _unidentified(
    n: Array,
    loss: Array,
    group: NDArray[np.intp],
    weights: Array,
    direction: Direction,
    values: Array,
    held: NDArray[np.bool_],
) -> str:
    """Why the optimum found is no answer; empty when it is one."""
    worse = _within(loss if direction == "min" else -loss, group, weights)
    size = _within(np.log(n), group, weights)
    if (weights * worse) @ size >= 0:
        what = "loss rises" if direction == "min" else "score falls"
        return f'the {what} with size, against direction="{direction}"'
    gradient = gradient_of(values, group, n, direction)
    fixed = held & (np.arange(len(held)) > 0)
    if held[2:].all() or rank_deficient(gradient * np.sqrt(weights)[:, None], fixed):
        return "several parameter sets fit equally well: the sizes do not separate them"
    if len(n) > len(values) and _trend_p_value(n, worse, group, weights, values) >= TREND_LEVEL:
        return "the loss does not change with size beyond its noise"
    if held[0]:
        low, high = ALPHA_BOUNDS
        return f"the exponent ran to an end of its range ({low:g}, {high:g}): no power law here"
    return ""


def _trend_p_value(
    n: Array, worse: Array, group: NDArray[np.intp], weights: Array, values: Array
) -> float:
    """One-sided p-value of the correlation within groups between the loss and the fitted curve."""
    power = _within(values[2 + group] * n ** -values[0], group, weights)
    explained = (weights * worse) @ power
    r = float(explained) / np.sqrt(((weights * worse) @ worse) * ((weights * power) @ power))
    dof = len(n) - int(group.max()) - 2
    unexplained = np.maximum(1.0 - r * r, 1e-300)
    return float(stats.t.sf(r * np.sqrt(dof / unexplained), dof))


def _within(values: Array, group: NDArray[np.intp], weights: Array) -> Array:
    """Values less the weighted mean of their group."""
    share = np.eye(int(group.max()) + 1)[group] * weights[:, None]
    return values - (values @ share / share.sum(0))[group]
