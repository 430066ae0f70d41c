"""The joint law with one coefficient allowed to drift with the weight (claims A3 and A4).

The line is straight in ``(1 - p) / 0.95``, which is 0 at p = 1 and 1 at p = 0.05.
"""

from __future__ import annotations

import numpy as np

from mnmt_repro.analysis.intervals import NotIdentified
from mnmt_repro.laws import JointLawFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.trend import Coefficient, TrendLaw


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
    law = TrendLaw.of(fit, along(np.array(fit.p)), [coefficient])
    values = refit_drift(law, fit.observed()[None], law.start(fit))[0]
    if not np.isfinite(values).all():
        raise NotIdentified(f"a drift of {coefficient} with the weight cannot be fitted")
    residual = fit.observed() - law.predict(values[None])[0]
    spare = len(residual) - len(values)
    return law, values, float(np.sqrt((fit.row_weights() * residual**2).sum() / spare))


def refit_drift(law: TrendLaw, losses: Array, start: Array) -> Array:
    """Parameters (B, P) that fit losses (B, m) from `start` (P,); NaN where none are found."""
    found = law.fit(losses, start)
    return np.where(found.converged[:, None], found.theta, np.nan)
