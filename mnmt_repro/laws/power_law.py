"""The power law of one mixture weight: Equations 3 and 6 of the scaling paper.

Its class also holds what the joint law (Eq. 7) adds: a multiplier for each of several groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import (
    Array,
    Direction,
    Errors,
    error_weights,
    run_names,
    same_length,
    vector,
)
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.law import TREND_LEVEL, Box, Law, Optimum, is_flat
from mnmt_repro.laws.minimise import Minimum
from mnmt_repro.laws.variable_projection import ALPHA_BOUNDS, project


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerLaw(Law):
    """``loss = beta[g] * n**-alpha + l_inf``, with one exponent and constant for all groups g.

    Of a quality, ``score = l_inf - beta[g] * n**-alpha``. Parameters are in the order alpha, l_inf,
    then the multipliers. Variable projection fits them without starts; its box is positive
    multipliers, exponents in `ALPHA_BOUNDS` and the constant above `least_constant`.

    Attributes
    ----------
    n : (m,)
        Sizes of the rows.
    group : (m,) int
        Index of each row's multiplier; all 0 in the power law.
    """

    n: Array
    group: NDArray[np.intp]

    formula = "loss = beta * n**-alpha + l_inf"

    @property
    def names(self) -> tuple[str, ...]:
        return ("alpha", "l_inf", "beta")

    @property
    def rows(self) -> Array:
        return np.column_stack([self.group, self.n])

    def rows_at(self, *at: ArrayLike) -> Array:
        return np.insert(super().rows_at(*at), 0, 0.0, axis=1)

    @property
    def boxes(self) -> tuple[Box, ...]:
        box = np.array([ALPHA_BOUNDS, (0.0, np.inf), *[(0.0, np.inf)] * (len(self.names) - 2)])
        if self.direction == "max":
            box[1] = -np.inf, -least_constant(self)
        return ((box[:, 0], box[:, 1]),)

    def model(self, theta: Array, rows: Array) -> Array:
        group, n = rows[:, 0].astype(int), rows[:, 1]
        return np.asarray(
            theta[..., 1:2] + self.sign * theta[..., 2 + group] * n ** -theta[..., :1]
        )

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        power = self.n ** -theta[:, :1]
        gradient = np.zeros((*power.shape, theta.shape[1]))
        gradient[..., 0] = -self.sign * theta[:, 2 + self.group] * np.log(self.n) * power
        gradient[..., 1] = 1.0
        gradient[:, np.arange(len(self.n)), 2 + self.group] = self.sign * power
        return self.model(theta, self.rows), gradient

    def search(self, loss: Array) -> Minimum:
        return self.follow(loss[None])

    def follow(self, losses: Array, values: Array | None = None) -> Minimum:
        # Variable projection needs no start. Sizes are divided by their geometric mean: exponent
        # and multipliers then hardly depend on each other, and no power is too small or too large.
        centre = np.log(self.n).mean()
        log_x, lower = np.log(self.n) - centre, least_constant(self)
        best = project(log_x, self.sign * losses, self.group, self.weights, lower)
        alpha, l_inf, beta = np.split(best.theta, [1, 2], axis=1)
        theta = np.hstack([alpha, self.sign * l_inf, beta * np.exp(alpha * centre)])
        return replace(best, theta=theta)

    def cannot(self, loss: Array) -> str:
        parameters, sizes = len(self.names), len(np.unique(self.n))
        cells = len(np.unique(self.rows, axis=0))
        if sizes < 2 or (parameters == 3 and sizes < 3):
            rows = f"{sizes} distinct size(s)"
        elif cells < parameters:
            rows = f"{cells} distinct rows"
        else:
            return "the loss is flat: it does not change with size" if is_flat(loss) else ""
        return f"{rows} cannot determine {parameters} parameters; train more sizes"

    def doubt(self, best: Optimum, loss: Array) -> str:
        worse = self._within(self.sign * loss)
        if (self.weights * worse) @ self._within(np.log(self.n)) >= 0:
            if self.direction == "max":
                return 'the score falls with size, against direction="max"'
            longer = "the loss rises with size: train larger models longer"
            return f'{longer}; if it is a score, give direction="max"'
        # An exponent at an end of its range is judged last: noise and too few sizes send it there,
        # and are the better reason.
        fixed = best.held & (np.arange(len(best.held)) > 0)
        if best.held[2:].all() or self.several(replace(best, held=fixed)):
            return "several parameter sets fit equally well: the sizes do not separate them"
        spare = len(loss) > len(best.values)
        if spare and self._trend_p_value(worse, best.values) >= TREND_LEVEL:
            few = "; train more sizes" if len(np.unique(self.n)) < 4 else ""
            return f"the loss does not change with size beyond its noise{few}"
        if best.held[0]:
            low, high = ALPHA_BOUNDS
            return f"the exponent ran to an end of its range ({low:g}, {high:g}): no power law here"
        return ""

    def _trend_p_value(self, worse: Array, values: Array) -> float:
        """One-sided p-value of the correlation within groups between losses and fitted curve."""
        weights, power = self.weights, self._within(values[2 + self.group] * self.n ** -values[0])
        explained = (weights * worse) @ power
        r = float(explained) / np.sqrt(((weights * worse) @ worse) * ((weights * power) @ power))
        dof = len(self.n) - (len(values) - 2) - 1  # a mean for each group, and one slope
        unexplained = np.maximum(1.0 - r * r, 1e-300)
        return float(stats.t.sf(r * np.sqrt(dof / unexplained), dof))

    def _within(self, values: Array) -> Array:
        """Values less the weighted mean of their group."""
        share = np.eye(len(self.names) - 2)[self.group] * self.weights[:, None]
        return values - (values @ share / share.sum(0))[self.group]


PowerLawFit = LawFit[PowerLaw]


def fit_power_law(
    n: ArrayLike,
    loss: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    errors: Errors = "absolute",
    direction: Direction = "min",
    ceiling: float | None = None,
    groups: ArrayLike | None = None,
    label: str = "",
) -> PowerLawFit:
    """Fit Eq. 3 (Eq. 6 at one mixture weight) by least squares.

    Parameters
    ----------
    n : (m,)
        Model sizes in parameters, or any other positive scale (examples, steps).
    loss : (m,)
        Losses, all in one unit such as nats per token; `beta` and `l_inf` are in it, and `alpha`
        does not depend on it. Or a quality with ``direction="max"``, when the law is
        ``score = l_inf - beta * n**-alpha``.
    weights : (m,), optional
        Weights of the squared residuals; by default as `errors` says.
    errors : as in `fit_joint_law`
    direction : ``"min"`` or ``"max"``
    ceiling : float, optional
        Highest `l_inf` of a quality, such as 100 for chrF.
    groups : (m,), optional
        Name of the run of each row. Rows of one run, such as its checkpoints or test sets, are not
        independent; standard errors and intervals then come from runs.
    label : free text kept with the result

    Returns
    -------
    LawFit of a PowerLaw
        With ``identified=False`` and a reason when fewer than three sizes, a flat loss, a trend
        against the direction or noise leave no unique answer.

    Raises
    ------
    InputError
        Unequal lengths, NaN or infinite values, sizes or weights not above zero.

    Examples
    --------
    >>> fit = fit_power_law([1, 4, 16, 64], [5.0, 3.0, 2.0, 1.5])
    >>> {name: round(value, 6) for name, value in fit.params.items()}
    {'alpha': 0.5, 'l_inf': 1.0, 'beta': 4.0}
    >>> fit_power_law([1, 2], [3.0, 2.0]).reason
    '2 distinct size(s) cannot determine 3 parameters; train more sizes'
    """
    size, y = vector("n", n, positive=True), vector("loss", loss)
    own = error_weights(errors, y) if weights is None else vector("weights", weights, positive=True)
    same_length(n=size, loss=y, weights=own)
    check_direction(y, direction, ceiling)
    one = np.zeros(len(size), dtype=np.intp)
    law = PowerLaw(weights=own, direction=direction, ceiling=ceiling, n=size, group=one)
    return solve.fit(law, y, runs=run_names(groups, len(size)), label=label)


def check_direction(loss: Array, direction: Direction, ceiling: float | None) -> None:
    """`InputError` unless losses (m,) are above 0, and qualities below their ceiling."""
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


def least_constant(law: Law) -> float:
    """Least constant of a fit to losses, or to negated qualities: 0, or less the ceiling."""
    if law.direction == "min":
        return 0.0
    return -np.inf if law.ceiling is None else -law.ceiling
