"""Is a coefficient unchanged over the weights? A test with an interval and a stated power.

Absence of evidence is not invariance: a wide interval around zero proves nothing. So the test also
simulates how often it would have noticed a stated change, and answers *inconclusive* when that is
too seldom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, Direction, check_level
from mnmt_repro.laws.joint_law import fit_joint_law
from mnmt_repro.laws.minimise import REFIT_TOLERANCE, TOLERANCE
from mnmt_repro.laws.trend import Coefficient, TrendLaw

Verdict = Literal["changed", "unchanged", "inconclusive"]
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
    alternative : the change, up or down, whose detection `power` is about
    power : share of simulated data with that change in which the test rejects; the smaller of
        the shares for a change up and one down
    false_alarms : the same share without any change; should be near 1 - level
    verdict : ``"changed"``, ``"unchanged"`` or ``"inconclusive"``
    reason : why the verdict is inconclusive, otherwise empty. Where no answer was found, interval,
        p-value and power are NaN.
    """

    parameter: Coefficient
    at_one: float
    change: float
    low: float
    high: float
    level: float
    p_value: float
    alternative: float
    power: float
    false_alarms: float
    verdict: Verdict
    reason: str = ""


def check_unchanged(
    frame: pd.DataFrame,
    parameter: Coefficient = "alpha",
    *,
    relative_alternative: float = 0.2,
    other_free: bool = True,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    ceiling: float | None = None,
    level: float = 0.95,
    simulations: int = 1000,
    seed: int = 0,
) -> InvarianceTest:
    """Test whether alpha (or l_inf) changes with the weight, against a stated alternative.

    The joint law is widened by a trend, ``alpha(p) = alpha + change * log(p) / log(p_min)``, and
    likewise for l_inf, with a free multiplier at every weight. The bounds of the joint law hold at
    every weight. The change is tested by its t value. Power is the share of data sets simulated
    from the joint law, with the alternative put in and noise of the fit's standard deviation, in
    which the test rejects; a data set without an optimum counts as no rejection.

    Parameters
    ----------
    frame : rows of one pair, as for `fit_joint_law`
    parameter : which coefficient
    relative_alternative : change to be noticed, up or down, as a fraction of the joint law's
        coefficient
    other_free : bool
        Let the other coefficient have a trend of its own. Without, a trend in l_inf can pass for
        one in alpha; with it, power is less.
    n, loss, direction, ceiling : as in `fit_joint_law`
    level : one less the size of the test
    simulations, seed : of the power

    Returns
    -------
    InvarianceTest
        *changed* when the test rejects; *unchanged* when it does not and power is at least 80 %;
        else *inconclusive*, with the reason.

    Raises
    ------
    InputError
        As `fit_joint_law`; fewer than two weights; too few rows; a joint law not identified.
    """
    if parameter not in ("alpha", "l_inf"):
        raise InputError(f'parameter: {parameter!r}; use "alpha" or "l_inf"')
    if not 0 < relative_alternative < 1:
        raise InputError(f"relative_alternative: {relative_alternative}; give a number in (0, 1)")
    check_level(level)
    joint = fit_joint_law(frame, n=n, loss=loss, direction=direction, ceiling=ceiling)
    if not joint.identified:
        raise InputError(f"the joint law is not identified: {joint.reason}")
    if len(joint.p) < 2:
        raise InputError("a trend over weights needs at least two of them")
    log_p = np.log(np.array(joint.p) / joint.p[-1])
    trends: list[Coefficient] = ["alpha", "l_inf"] if other_free else [parameter]
    law = TrendLaw.of(joint, log_p / log_p[0], trends)
    start = law.start(joint)
    if len(law.group) <= len(start):
        raise InputError(f"{len(law.group)} rows leave nothing to judge noise by; train more sizes")
    fit = _fit(law, parameter, law.sign * joint.observed()[None], start)
    change, stderr, spare = fit.change[0], fit.stderr[0], fit.spare[0]
    size = joint.alpha if parameter == "alpha" else abs(joint.l_inf)
    alternative = float(relative_alternative * size)
    with np.errstate(divide="ignore", invalid="ignore"):  # data without any noise
        p_value = float(2 * stats.t.sf(np.abs(change / stderr), spare))
    one, least_weight = law.ends(parameter)
    reason, power, false_alarms = fit.reason, np.nan, np.nan
    if not reason:
        truth = {put_in: start.copy() for put_in in (0.0, alternative, -alternative)}
        for put_in, values in truth.items():
            values[least_weight] += put_in
        share = {
            put_in: _rejections(law, parameter, values, fit.noise, level, simulations, seed)
            for put_in, values in truth.items()
        }
        false_alarms = share[0.0]
        if alternative > 0:
            power = min(share[alternative], share[-alternative])
    verdict: Verdict = "inconclusive"
    if p_value < 1 - level:
        verdict = "changed"
    elif power >= ENOUGH_POWER:
        verdict = "unchanged"
    elif not reason and alternative == 0:
        reason = f"the joint law's {parameter} is 0, and no fraction of it is a change to notice"
    elif not reason:
        reason = f"its power, {power:.2f}, is less than {ENOUGH_POWER:g}"
    flip = law.sign if parameter == "l_inf" else 1.0
    half = stats.t.ppf((1 + level) / 2, spare) * stderr
    return InvarianceTest(
        parameter=parameter,
        at_one=float(flip * fit.theta[0, one]),
        change=float(flip * change),
        low=float(flip * change - half),
        high=float(flip * change + half),
        level=level,
        p_value=p_value,
        alternative=alternative,
        power=power,
        false_alarms=false_alarms,
        verdict=verdict,
        reason=reason,
    )


@dataclass(frozen=True, kw_only=True)
class _TrendFit:
    """Optimum of each problem of a batch, and the change that is tested.

    Attributes
    ----------
    theta : (B, k)
    change, stderr, spare : (B,)
        `stderr` is NaN where there is no answer.
    noise : standard deviation of the residuals of the first problem
    reason : why the first problem has no answer, or empty
    """

    theta: Array
    change: Array
    stderr: Array
    spare: Array
    noise: float
    reason: str


def _fit(
    law: TrendLaw,
    parameter: Coefficient,
    losses: Array,
    start: Array,
    tolerance: float = TOLERANCE,
) -> _TrendFit:
    """Fit losses (B, m) from `start` (k,), and say how sure the change of `parameter` is."""
    found = law.fit(losses, start, tolerance)
    ends = law.ends(parameter)
    jacobian = law.evaluate(found.theta)[1] * ~found.held[:, None]
    norm = np.linalg.norm(jacobian, axis=1, keepdims=True)
    scaled = jacobian / np.where(norm > 0, norm, 1.0)
    contrast = np.zeros((len(losses), len(start), 1))
    contrast[:, ends, 0] = -1.0, 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        contrast = np.where(found.held[:, :, None], 0.0, contrast / norm.transpose(0, 2, 1))
    inverse = np.linalg.pinv(scaled.transpose(0, 2, 1) @ scaled, hermitian=True)
    spare = losses.shape[1] - len(start) + found.held.sum(1)
    variance = 2 * found.objective / spare
    stderr = np.sqrt(variance * (contrast.transpose(0, 2, 1) @ inverse @ contrast)[:, 0, 0])
    singular = np.linalg.svd(scaled, compute_uv=False)
    free = len(start) - found.held.sum(1)
    faults = {
        "the optimiser found no optimum": ~found.converged,
        "the exponent ran to an end of its range": found.held[:, law.ends("alpha")].any(1),
        f"{parameter} is at its bound at every weight": found.held[:, ends].all(1),
        "several parameter sets fit equally well": singular[np.arange(len(losses)), free - 1]
        < 1e-7 * singular[:, 0],
    }
    return _TrendFit(
        theta=found.theta,
        change=law.change(parameter, found.theta),
        stderr=np.where(np.any(list(faults.values()), axis=0), np.nan, stderr),
        spare=spare,
        noise=float(np.sqrt(variance[0])),
        reason=next((why for why, where in faults.items() if where[0]), ""),
    )


def _rejections(
    law: TrendLaw,
    parameter: Coefficient,
    truth: Array,
    noise: float,
    level: float,
    simulations: int,
    seed: int,
) -> float:
    """Share of data sets drawn from `truth` (k,) in which the change is found significant."""
    value = law.predict(truth[None])
    rng = np.random.default_rng(seed)
    losses = value + noise * rng.standard_normal((simulations, value.shape[1]))
    fit = _fit(law, parameter, losses, truth, REFIT_TOLERANCE)
    critical = stats.t.ppf((1 + level) / 2, fit.spare)
    return float((np.abs(fit.change) > critical * fit.stderr).mean())
