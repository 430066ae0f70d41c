"""Does a law fit its rows? Curvature of the residuals, and gross outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.laws.fit_result import LawFit

FAULT = 0.05
"""P-value below which a law is said not to fit."""
ROUNDING = 1e-5
"""Residuals that are all a smaller share of the loss are left by the search, and no noise."""
GROSS = 1e-4
"""P-value, times the number of rows, below which a row is an outlier that no noise explains."""
GROSS_ROBUST = 10.0
"""The same for Huber's loss: distance in standard deviations, judged by the median residual."""


@dataclass(frozen=True, kw_only=True)
class LackOfFit:
    """Whether the residuals of a law are curved.

    Attributes
    ----------
    p_value : NaN without a test
    words : the outcome, or why there is no test
    """

    p_value: float = math.nan
    words: str

    @property
    def fault(self) -> bool:
        """Whether the law is said not to fit."""
        return self.p_value < FAULT


def lack_of_fit(fit: LawFit) -> LackOfFit:
    """Test whether a parabola in the log of the fitted loss explains residuals, an F test.

    It is RESET (Ramsey, 1969) along each curve: a law with the wrong shape errs alike at both ends
    of a curve, and otherwise in its middle. To first order, the parameters can follow the `basis`
    of the fit, so only the rest of the parabola counts.
    """
    if not fit.identified:
        return LackOfFit(words="the law is not identified")
    if fit.runs:
        return LackOfFit(words="untested, because errors are alike within a run or mixture")
    curve, residual, basis = fit.fitted(), fit.residuals(), fit.basis()
    spare = fit.degrees_of_freedom - 1
    if spare < 1:
        return LackOfFit(words="too few rows for a test")
    if np.abs(curve - fit.loss).max() <= ROUNDING * np.abs(fit.loss).max():
        return LackOfFit(words="the residuals are rounding")
    if curve.min() <= 0:
        return LackOfFit(words="untested, because the law passes zero")
    logs = pd.Series(np.log(curve))
    place = (logs - logs.groupby(fit.law.curve_names()).transform("mean")).to_numpy()
    parabola = place**2 * np.sqrt(fit.weights)
    bend = parabola - basis @ (basis.T @ parabola)
    if bend @ bend <= 1e-12 * (parabola @ parabola):
        return LackOfFit(words="too few sizes for a test: the law can follow any losses at them")
    explained = float(bend @ residual) ** 2 / float(bend @ bend)
    left = float(residual @ residual) - explained
    p = float(stats.f.sf(spare * explained / left, 1, spare))
    words = "the law does not fit: its residuals are" if p < FAULT else "no sign that residuals are"
    return LackOfFit(p_value=p, words=f"{words} curved (p = {p:.2g})")


def outliers(fit: LawFit) -> dict[int, float]:
    """Rows that no noise explains, with their distance from the law in standard deviations.

    By least squares each row is judged by the law and the noise of the others (the externally
    studentised residual, Bonferroni's bound over the rows). For Huber's loss the median residual is
    the measure of noise.

    Returns
    -------
    dict of row number (from 0) to distance, the furthest first
    """
    left, size = fit.residuals(), np.abs(fit.loss) * np.sqrt(fit.weights)
    if not fit.identified or np.abs(left).max() <= ROUNDING * size.max():
        return {}
    if fit.law.delta is not None:
        far = np.abs(left) / (1.4826 * np.median(np.abs(left)))
        gross = np.flatnonzero(far > GROSS_ROBUST)
    else:
        open_ = np.maximum(1 - (fit.basis() ** 2).sum(1), 1e-9)  # of itself, what a row leaves
        spare = fit.degrees_of_freedom - 1
        if spare < 2:
            return {}
        others = np.maximum(float(left @ left) - left**2 / open_, 1e-300) / spare
        far = np.abs(left) / np.sqrt(others * open_)
        gross = np.flatnonzero(2 * len(left) * stats.t.sf(far, spare) < GROSS)
    return {int(row): float(far[row]) for row in sorted(gross, key=lambda row: -far[row])}
