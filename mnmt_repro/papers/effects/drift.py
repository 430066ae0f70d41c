"""The joint law with one coefficient allowed to drift with the weight (claims A3 and A4).

The line is straight in ``(1 - p) / 0.95``, which is 0 at p = 1 and 1 at p = 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mnmt_repro.laws import JointLawFit, PowerLawFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.minimise import REFIT_TOLERANCE, Minimum
from mnmt_repro.laws.trend import Coefficient, TrendLaw
from mnmt_repro.laws.uncertainty import robust_sd
from mnmt_repro.papers.effects.intervals import DRAWS, Measure, NotIdentified, measured
from mnmt_repro.papers.effects.noise import refit_power_laws


def along(p: Array) -> Array:
    """Place each weight on the drift: 0 at p = 1, 1 at p = 0.05."""
    return (1.0 - p) / 0.95


def fit_drift(fit: JointLawFit, coefficient: Coefficient) -> tuple[TrendLaw, Array]:
    """Fit a drift of one coefficient to the rows of a joint law.

    Returns
    -------
    law, parameters (P,)

    Raises
    ------
    NotIdentified
        When the fit does not converge.
    """
    law = TrendLaw.of(fit, along(np.array(fit.law.p)), coefficient)
    values = _found(law.fit(fit.loss[None], law.start))[0]
    if not np.isfinite(values).all():
        raise NotIdentified(f"a drift of {coefficient} with the weight cannot be fitted")
    return law, values


def _found(found: Minimum) -> Array:
    """Parameters (B, P); NaN where none are found."""
    return np.where(found.converged[:, None], found.theta, np.nan)


def shift(fit: JointLawFit, name: Coefficient, losses: Array) -> Measure:
    """Shift of a coefficient from p = 1 to p = 0.05: of alpha relative to itself.

    That of L_inf is relative to the loss of the smallest single-pair model.

    Parameters
    ----------
    losses : (1 + B, m)
        Of the law's rows, from `noise.drawn`.
    """
    law, values = fit_drift(fit, name)
    theta = _found(law.fit(losses, values, REFIT_TOLERANCE))
    one, small = law.ends
    alone = np.flatnonzero(fit.law.group == fit.law.index(1.0))
    smallest = alone[fit.law.n[alone].argmin()]
    unit = theta[:, one] if name == "alpha" else losses[:, smallest]
    return measured((theta[:, small] - theta[:, one]) / unit)


def spread_in_sd(laws: Sequence[PowerLawFit], name: Coefficient, sigma: float) -> float:
    """Largest difference of a coefficient of two laws, over the larger standard deviation.

    The standard deviations are those of refits to losses under noise, `sigma` of the loss. NaN of
    fewer than two laws.
    """
    if len(laws) < 2:
        return float("nan")
    values = np.array([law.params[name] for law in laws])
    sds = _robust_sds(tuple(laws), sigma)[:, laws[0].names.index(name)]
    larger = np.maximum.outer(sds, sds)
    return float((np.abs(np.subtract.outer(values, values)) / larger).max())


@lru_cache(maxsize=64)  # both coefficients are columns of the same refits
def _robust_sds(laws: tuple[PowerLawFit, ...], sigma: float) -> Array:
    """Standard deviations of the parameters (laws, 3) under noise of `sigma` times the loss."""
    drawn = []
    for k, law in enumerate(laws):
        loss = law.loss
        noise = np.random.default_rng(k).standard_normal((DRAWS, len(loss)))
        drawn.append(loss * (1 + sigma * noise))
    sizes, weights = [law.law.n for law in laws], [law.weights for law in laws]
    refitted = refit_power_laws(sizes, drawn, weights)
    return np.array([robust_sd(found) for found in refitted])
