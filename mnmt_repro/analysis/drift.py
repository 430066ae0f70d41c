"""The joint law with one coefficient allowed to drift with the weight (claims A3 and A4).

The line is straight in ``(1 - p) / 0.95``, which is 0 at p = 1 and 1 at p = 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mnmt_repro.analysis.intervals import DRAWS, Measure, Measures, NotIdentified, measure, power
from mnmt_repro.analysis.noise import noisy, refit_power_laws
from mnmt_repro.laws import JointLawFit, PowerLawFit
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.minimise import REFIT_TOLERANCE, Minimum
from mnmt_repro.laws.trend import Coefficient, TrendLaw
from mnmt_repro.laws.uncertainty import robust_sd


def along(p: Array) -> Array:
    """Place each weight on the drift: 0 at p = 1, 1 at p = 0.05."""
    return (1.0 - p) / 0.95


def fit_drift(fit: JointLawFit, coefficient: Coefficient) -> tuple[TrendLaw, Array, float]:
    """Fit a drift of one coefficient to the rows of a joint law.

    Returns
    -------
    law, parameters (P,), residual standard deviation (of the relative errors, where the joint law
    minimises these)

    Raises
    ------
    NotIdentified
        When the fit does not converge.
    """
    law = TrendLaw.of(fit, along(np.array(fit.p)), coefficient)
    values = _found(law.fit(fit.observed()[None], law.start))[0]
    if not np.isfinite(values).all():
        raise NotIdentified(f"a drift of {coefficient} with the weight cannot be fitted")
    residual = fit.observed() - law.predict(values[None])[0]
    spare = len(residual) - len(values)
    return law, values, float(np.sqrt((fit.row_weights() * residual**2).sum() / spare))


def _found(found: Minimum) -> Array:
    """Parameters (B, P); NaN where none are found."""
    return np.where(found.converged[:, None], found.theta, np.nan)


def drift_measures(
    fit: JointLawFit, name: Coefficient, effect: float, loss_scale: float, draws: int = DRAWS
) -> Measures:
    """Measure the `shift` of a coefficient from p = 1 to p = 0.05, and the power to see `effect`.

    Shifts are relative: of alpha to itself, of L_inf to `loss_scale`. The power is the smaller of
    both signs, of those that the law's bounds allow; its data are drawn from the joint law, with
    the alternative built in, and judged by the interval that data of the joint law have, whose
    noise is larger than the drifting law's where there is a drift.
    """
    law, values, sd = fit_drift(fit, name)
    one, small = law.ends
    unit = fit.alpha if name == "alpha" else loss_scale

    def shift(theta: Array) -> Array:
        moved = theta[:, small] - theta[:, one]
        return moved / (theta[:, one] if name == "alpha" else loss_scale)

    def refitted(theta: Array, noise_sd: Array, seed: int) -> Array:
        """Shifts of laws fitted to data of parameters `theta` (P,)."""
        losses = noisy(law.predict(theta[None])[0], noise_sd, seed, draws)
        return _finite(shift(_found(law.fit(losses, theta, REFIT_TOLERANCE))))

    value = shift(values[None])[0]
    noise, level = fit.noise_sd(), law.start
    deviations = refitted(values, sd / np.sqrt(fit.row_weights()), 0) - value
    undrifted = refitted(level, noise, 2)
    powers = []
    for sign in (1, -1):
        moved = level.copy()
        moved[small] += sign * effect * unit
        # A constant below zero, say, makes no law that could be drawn from.
        if ((law.lower <= moved) & (moved <= law.upper)).all():
            powers.append(power(refitted(moved, noise, 1), undrifted, sign))
    return {"shift": measure(value, deviations), "power": Measure(value=min(powers))}


def _finite(values: Array) -> Array:
    kept = values[np.isfinite(values)]
    if len(kept) < 0.9 * len(values):
        raise NotIdentified("more than a tenth of the refits under noise do not converge")
    return kept


def spread_in_sd(
    laws: Sequence[PowerLawFit], name: Coefficient, sigma: float, errors: Errors, draws: int
) -> float:
    """Largest difference of a coefficient of two laws, over the larger standard deviation.

    The standard deviations are those of refits to losses under noise, `sigma` of the loss. NaN of
    fewer than two laws.
    """
    if len(laws) < 2:
        return float("nan")
    values = np.array([law.params[name] for law in laws])
    sds = _robust_sds(tuple(laws), sigma, errors, draws)[:, laws[0].names.index(name)]
    larger = np.maximum.outer(sds, sds)
    return float((np.abs(np.subtract.outer(values, values)) / larger).max())


@lru_cache(maxsize=64)  # claims A3 and A4 read different columns of the same refits
def _robust_sds(laws: tuple[PowerLawFit, ...], sigma: float, errors: Errors, draws: int) -> Array:
    """Standard deviations of the parameters (laws, 3) under noise of `sigma` times the loss."""
    drawn = []
    for k, law in enumerate(laws):
        loss = law.observed()
        noise = np.random.default_rng(k).standard_normal((draws, len(loss)))
        drawn.append(loss * (1 + sigma * noise))
    refitted = refit_power_laws([np.array(law.n) for law in laws], drawn, errors)
    return np.array([robust_sd(found) for found in refitted])
