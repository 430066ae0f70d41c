"""One exponent, one constant, a multiplier for each group: Equations 3, 6 and 7.

``loss = beta[g] * n**-alpha + l_inf``; for a quality (direction ``"max"``)
``score = l_inf - beta[g] * n**-alpha``. The power law has one group (Eq. 3 and 6), the joint law
one for each mixture weight (Eq. 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, Direction
from mnmt_repro.laws.fit_result import Floats, LawFit
from mnmt_repro.laws.minimise import Minimum
from mnmt_repro.laws.variable_projection import ALPHA_BOUNDS, project


@dataclass(frozen=True, kw_only=True)
class SharedExponentFit(LawFit):
    """Parameters in the order alpha, l_inf, then the multipliers; and the rows fitted.

    Attributes
    ----------
    n : sizes of the rows
    group : index of each row's multiplier
    """

    n: Floats
    group: tuple[int, ...]

    @property
    def alpha(self) -> float:
        """The exponent."""
        return self.values[0]

    @property
    def l_inf(self) -> float:
        """The irreducible loss (the highest reachable quality with direction ``"max"``)."""
        return self.values[1]

    def design(self) -> Array:
        """Group and size of each row, (m, 2)."""
        return np.column_stack([self.group, self.n])

    def law(self) -> SharedExponentLaw:
        """Return the formula at the rows fitted."""
        return SharedExponentLaw(
            names=self.names,
            weights=self.row_weights(),
            n=np.array(self.n),
            group=np.array(self.group),
            direction=self.direction,
            ceiling=self.ceiling,
        )

    def curve(self, values: Array, design: Array) -> Array:
        """Evaluate the law with parameters (..., P) at groups and sizes (m, 2): (..., m)."""
        group, n = design[:, 0].astype(int), design[:, 1]
        reducible = values[..., 2 + group] * n ** -values[..., :1]
        return values[..., 1:2] + (reducible if self.direction == "min" else -reducible)


@dataclass(frozen=True, kw_only=True)
class SharedExponentLaw(solve.Law):
    """The formula at given rows, which variable projection fits without starts.

    Attributes
    ----------
    n, group : (m,)
    direction, ceiling : as in `SharedExponentFit`
    """

    n: Array
    group: NDArray[np.intp]
    direction: Direction
    ceiling: float | None

    def search(self, loss: Array) -> Minimum:
        return self.follow(loss[None])

    def follow(self, losses: Array, values: Array | None = None) -> Minimum:
        # Sizes are divided by their geometric mean: exponent and multipliers then hardly depend on
        # each other, and no power of a size is too small or too large.
        centre = np.log(self.n).mean()
        sign = 1.0 if self.direction == "min" else -1.0
        lower = least_constant(self.direction, self.ceiling)
        found = project(np.log(self.n) - centre, sign * losses, self.group, self.weights, lower)
        alpha, l_inf, beta = np.split(found.theta, [1, 2], axis=1)
        return replace(found, theta=np.hstack([alpha, sign * l_inf, beta * np.exp(alpha * centre)]))

    def jacobian(self, theta: Array) -> Array:
        sign = 1.0 if self.direction == "min" else -1.0
        power = self.n ** -theta[0]
        gradient = np.zeros((len(self.n), len(theta)))
        gradient[:, 0] = -sign * theta[2 + self.group] * np.log(self.n) * power
        gradient[:, 1] = 1.0
        gradient[np.arange(len(self.n)), 2 + self.group] = sign * power
        return gradient

    def bounds_in_words(self, found: solve.Optimum) -> tuple[str, ...]:
        constant = "l_inf >= 0" if self.direction == "min" else f"l_inf <= {self.ceiling}"
        return ("alpha", constant, *(f"{name} >= 0" for name in self.names[2:]))

    def cannot(self, loss: Array) -> str:
        parameters, groups = len(self.names), len(self.names) - 2
        sizes = len(np.unique(self.n))
        cells = len(np.unique(np.column_stack([self.group, self.n]), axis=0))
        if sizes < 2 or (groups == 1 and sizes < 3):
            rows = f"{sizes} distinct size(s)"
        elif cells < parameters:
            rows = f"{cells} distinct rows"
        else:
            return "the loss is flat: it does not change with size" if solve.is_flat(loss) else ""
        return f"{rows} cannot determine {parameters} parameters; train more sizes"

    def doubt(self, found: solve.Optimum, loss: Array) -> str:
        worse = self._within(loss if self.direction == "min" else -loss)
        if (self.weights * worse) @ self._within(np.log(self.n)) >= 0:
            if self.direction == "max":
                return 'the score falls with size, against direction="max"'
            longer = "the loss rises with size: train larger models longer"
            return f'{longer}; if it is a score, give direction="max"'
        # An exponent at an end of its range is judged last: noise and too few sizes send it there,
        # and are the better reason.
        fixed = found.held & (np.arange(len(found.held)) > 0)
        if found.held[2:].all() or self.several(replace(found, held=fixed)):
            return "several parameter sets fit equally well: the sizes do not separate them"
        spare = len(loss) > len(found.values)
        if spare and self._trend_p_value(worse, found.values) >= solve.TREND_LEVEL:
            few = "; train more sizes" if len(np.unique(self.n)) < 4 else ""
            return f"the loss does not change with size beyond its noise{few}"
        if found.held[0]:
            low, high = ALPHA_BOUNDS
            return f"the exponent ran to an end of its range ({low:g}, {high:g}): no power law here"
        return ""

    def _trend_p_value(self, worse: Array, values: Array) -> float:
        """One-sided p-value of the correlation within groups between losses and fitted curve."""
        weights, power = self.weights, self._within(values[2 + self.group] * self.n ** -values[0])
        explained = (weights * worse) @ power
        r = float(explained) / np.sqrt(((weights * worse) @ worse) * ((weights * power) @ power))
        dof = len(self.n) - (len(self.names) - 2) - 1  # a mean for each group, and one slope
        unexplained = np.maximum(1.0 - r * r, 1e-300)
        return float(stats.t.sf(r * np.sqrt(dof / unexplained), dof))

    def _within(self, values: Array) -> Array:
        """Values less the weighted mean of their group."""
        share = np.eye(len(self.names) - 2)[self.group] * self.weights[:, None]
        return values - (values @ share / share.sum(0))[self.group]


_Fit = TypeVar("_Fit", bound=SharedExponentFit)


def fit_shared_exponent(blank: _Fit) -> _Fit:
    """Fit the law of a result without numbers; checks that its losses suit its direction."""
    loss, ceiling, direction = blank.observed(), blank.ceiling, blank.direction
    if direction not in ("min", "max"):
        raise InputError(f'direction: {direction!r}; use "min" for a loss, "max" for a quality')
    if ceiling is not None and direction == "min":
        raise InputError(f'ceiling: {ceiling} is of a quality: give direction="max"')
    if ceiling is not None and not ceiling > loss.max():
        raise InputError(f"ceiling: {ceiling} must lie above the best score, {loss.max():g}")
    if direction == "min" and (loss <= 0).any():
        raise InputError(
            f"losses must be above 0, the least is {loss.min():g}: change the sign of "
            'log-probabilities; for a quality give direction="max"'
        )
    return solve.fit(blank)


def least_constant(direction: Direction, ceiling: float | None) -> float:
    """Least constant of a fit to losses, or to negated qualities: 0, or less the ceiling."""
    if direction == "min":
        return 0.0
    return -np.inf if ceiling is None else -ceiling
