"""Is a coefficient unchanged over the weights? A test with an interval and a stated power.

Absence of evidence is not invariance: a wide interval around zero proves nothing. So the test also
simulates how often it would have noticed a stated change, and answers *inconclusive* when that is
too seldom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, Direction, vector
from mnmt_repro.laws.joint_law import fit_joint_law, pair_rows
from mnmt_repro.laws.newton import Index, minimise

Parameter = Literal["alpha", "l_inf"]
ENOUGH_POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class InvarianceTest:
    """Outcome of `check_unchanged`.

    Attributes
    ----------
    parameter : ``"alpha"`` or ``"l_inf"``
    at_one : its value for the single pair (at the greatest weight)
    change : its value at the least weight less that at the greatest, under a trend in log p
    low, high : interval of `change`
    p_value : of no change
    alternative : the change whose detection `power` is about
    power : share of simulated data with that change in which the test rejects
    false_alarms : the same share without any change; should be near 1 - level
    verdict : ``"changed"``, ``"unchanged"`` or ``"inconclusive"``
    """

    parameter: Parameter
    at_one: float
    change: float
    low: float
    high: float
    level: float
    p_value: float
    alternative: float
    power: float
    false_alarms: float
    verdict: Literal["changed", "unchanged", "inconclusive"]


def check_unchanged(
    frame: pd.DataFrame,
    parameter: Parameter = "alpha",
    *,
    relative_alternative: float = 0.2,
    other_free: bool = True,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    level: float = 0.95,
    simulations: int = 1000,
    seed: int = 0,
) -> InvarianceTest:
    """Test whether alpha (or l_inf) changes with the weight, against a stated alternative.

    The joint law is widened by a trend, ``alpha(p) = alpha + change * log(p) / log(p_min)``, and
    likewise for l_inf, with a free multiplier at every weight; the change is tested by its t
    value. Power is the share of data sets simulated from the joint law, with the alternative put
    in and noise of the fit's standard deviation, in which the test rejects.

    Parameters
    ----------
    frame : rows of one pair, as for `fit_joint_law`
    parameter : which coefficient
    relative_alternative : change to be noticed, as a fraction of the joint law's coefficient
    other_free : bool
        Let the other coefficient have a trend of its own. Without, a trend in l_inf can pass for
        one in alpha; with it, power is less.
    level : one less the size of the test
    simulations, seed : of the power

    Returns
    -------
    InvarianceTest
        *changed* when the test rejects; *unchanged* when it does not and power is at least 80 %;
        else *inconclusive*.

    Raises
    ------
    InputError
        As `fit_joint_law`; fewer than two weights; too few rows; a joint law not identified.
    """
    if parameter not in ("alpha", "l_inf"):
        raise InputError(f'parameter: {parameter!r}; use "alpha" or "l_inf"')
    rows, p = pair_rows(frame, n, loss)
    joint = fit_joint_law(rows, n=n, loss=loss, direction=direction)
    if not joint.identified:
        raise InputError(f"the joint law is not identified: {joint.reason}")
    sign = 1.0 if direction == "min" else -1.0
    weights, group = np.unique(p, return_inverse=True)
    if len(weights) < 2:
        raise InputError("a trend over weights needs at least two of them")
    log_n = np.log(vector(n, rows[n], positive=True))
    model = _Trend(
        log_x=log_n - log_n.mean(),
        trend=(np.log(p / weights[-1]) / np.log(weights[0] / weights[-1])),
        group=group,
        loss=(sign * vector(loss, rows[loss]))[None],
        frozen=() if other_free else ((1,) if parameter == "alpha" else (0,)),
    )
    if model.spare < 1:
        raise InputError(f"{len(p)} rows leave nothing to judge noise by; train more sizes")
    which = 0 if parameter == "alpha" else 1
    start = model.start(joint.alpha, sign * joint.l_inf, np.array(joint.values[2:]), log_n.mean())
    theta, error = _fit(model, start[None])
    change, stderr = theta[0, which], error[0, which]
    critical = stats.t.ppf((1 + level) / 2, model.spare)
    size = joint.alpha if parameter == "alpha" else abs(joint.l_inf)
    alternative = relative_alternative * size
    noise = np.sqrt(2 * float(_objective(model, theta)[0]) / model.spare)
    shares = []
    for put_in in (alternative, 0.0):
        truth = start.copy()
        truth[which] = put_in
        shares.append(_rejections(model, truth, which, noise, critical, simulations, seed))
    p_value = float(2 * stats.t.sf(abs(change / stderr), model.spare))
    verdict: Literal["changed", "unchanged", "inconclusive"] = "inconclusive"
    if p_value < 1 - level:
        verdict = "changed"
    elif shares[0] >= ENOUGH_POWER:
        verdict = "unchanged"
    flip = sign if parameter == "l_inf" else 1.0
    ends = sorted((flip * (change - critical * stderr), flip * (change + critical * stderr)))
    return InvarianceTest(
        parameter=parameter,
        at_one=float(theta[0, 2] if parameter == "alpha" else sign * theta[0, 3]),
        change=float(flip * change),
        low=float(ends[0]),
        high=float(ends[1]),
        level=level,
        p_value=p_value,
        alternative=float(alternative),
        power=shares[0],
        false_alarms=shares[1],
        verdict=verdict,
    )


@dataclass(frozen=True, kw_only=True)
class _Trend:
    """Residuals in theta = (changes of alpha and l_inf, alpha, l_inf, log beta' by weight)."""

    log_x: Array
    trend: Array  # 0 at the greatest weight, 1 at the least
    group: NDArray[np.intp]
    loss: Array  # (B, m)
    frozen: tuple[int, ...]

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which parameters move."""
        return ~np.isin(np.arange(5 + int(self.group.max())), self.frozen)

    @property
    def spare(self) -> int:
        """Degrees of freedom."""
        return len(self.log_x) - int(self.free.sum())

    def start(self, alpha: float, l_inf: float, beta: Array, centre: float) -> Array:
        scaled = np.log(np.maximum(beta, 1e-12 * beta.max())) - alpha * centre
        return np.concatenate([[0.0, 0.0, alpha, l_inf], scaled])

    def predict(self, theta: Array) -> tuple[Array, Array]:
        alpha = theta[:, 2:3] + theta[:, :1] * self.trend
        exponent = theta[:, 4:][:, self.group] - alpha * self.log_x
        power = np.exp(np.minimum(exponent, 300.0))
        return power, power + theta[:, 3:4] + theta[:, 1:2] * self.trend

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        power, value = self.predict(theta)
        jacobian = np.zeros((*power.shape, theta.shape[1]))
        jacobian[:, :, 0] = -power * self.log_x * self.trend
        jacobian[:, :, 1] = self.trend
        jacobian[:, :, 2] = -power * self.log_x
        jacobian[:, :, 3] = 1.0
        jacobian[:, np.arange(len(self.group)), 4 + self.group] = power
        return value - self.loss[index], jacobian

    def curvature(self, theta: Array, index: Index, score: Array) -> float:
        return 0.0


def _fit(model: _Trend, start: Array) -> tuple[Array, Array]:
    """Optimum and standard errors of each problem, (B, k) each; errors of frozen ones are 0."""
    bound = np.where(model.free, np.inf, 0.0)
    ones = np.ones((1, len(model.log_x)))
    found = minimise(model, start, ones, lower=-bound, upper=bound, iterations=100, tolerance=1e-10)
    jacobian = model.residual(found.theta, np.arange(len(start)))[1][:, :, model.free]
    norm = np.linalg.norm(jacobian, axis=1, keepdims=True)
    scaled = jacobian / norm
    inverse = np.linalg.pinv(scaled.transpose(0, 2, 1) @ scaled, hermitian=True)
    variance = 2 * found.objective / model.spare
    error = np.zeros_like(found.theta)
    diagonal = np.einsum("bkk->bk", inverse) / norm[:, 0] ** 2
    error[:, model.free] = np.sqrt(variance[:, None] * diagonal)
    return found.theta, error


def _objective(model: _Trend, theta: Array) -> Array:
    residual = model.residual(theta, np.arange(len(theta)))[0]
    return 0.5 * (residual**2).sum(1)


def _rejections(
    model: _Trend,
    truth: Array,
    which: int,
    noise: float,
    critical: float,
    simulations: int,
    seed: int,
) -> float:
    """Share of data sets drawn from `truth` in which the change is found significant."""
    value = model.predict(truth[None])[1]
    rng = np.random.default_rng(seed)
    losses = value + noise * rng.standard_normal((simulations, value.shape[1]))
    drawn = replace(model, loss=losses)
    theta, error = _fit(drawn, np.repeat(truth[None], simulations, 0))
    return float((np.abs(theta[:, which]) > critical * error[:, which]).mean())
