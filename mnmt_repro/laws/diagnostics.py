"""Does a law fit its rows? Lack of fit, curvature of the residuals, and gross outliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.laws.checks import Array
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
    """Whether the residuals of a law are more than noise.

    Attributes
    ----------
    test
        ``"repeats"`` compares them with the noise between rows of one cell (F test).
        ``"runs"`` counts runs of one sign along the sizes: curved residuals have few.
        ``"none"`` where the rows cannot show a fault.
    p_value : NaN without a test
    words : the outcome in a sentence
    """

    test: Literal["repeats", "runs", "none"]
    p_value: float = math.nan
    words: str

    @property
    def fault(self) -> bool:
        """Whether the law is said not to fit."""
        return self.p_value < FAULT


def lack_of_fit(fit: LawFit, *, draws: int = 500) -> LackOfFit:
    """Test whether a law fits its rows.

    Parameters
    ----------
    fit : LawFit
    draws : simulated fits with which the runs of signs are compared

    Returns
    -------
    LackOfFit
    """
    rows = fit.law.rows
    if not fit.identified:
        return LackOfFit(test="none", words="the law is not identified")
    if len(np.unique(rows[:, -1])) < 3:
        return LackOfFit(test="none", words="too few sizes for a test: any two lie on a law")
    if fit.degrees_of_freedom < 1:
        return LackOfFit(test="none", words="too few rows for a test: there are as many parameters")
    _, cell = np.unique(rows, axis=0, return_inverse=True)
    cell = cell.ravel()
    cells = int(cell.max()) + 1
    # Rows of one run err together, so their agreement within a cell is no measure of noise.
    if len(cell) > cells > fit.free_parameters and not fit.runs:
        return _by_repeats(fit, cell, cells)
    return _by_signs(fit, draws)


def _by_repeats(fit: LawFit, cell: NDArray[np.intp], cells: int) -> LackOfFit:
    weights, loss = fit.weights, fit.loss
    mean = np.bincount(cell, weights * loss) / np.bincount(cell, weights)
    pure = float(weights @ (loss - mean[cell]) ** 2)
    if pure <= (4 * np.finfo(float).eps * loss.max()) ** 2 * weights.sum():
        return LackOfFit(test="none", words="the rows of each cell are equal, so show no noise")
    spare, repeats = cells - fit.free_parameters, len(loss) - cells
    ratio = (fit.rss - pure) / spare / (pure / repeats)
    p = float(stats.f.sf(ratio, spare, repeats))
    said = f"residuals vary {ratio:.1f} times as much as repeats of a cell (p = {p:.2g})"
    words = f"the law does not fit: {said}" if p < FAULT else f"no sign of a lack: {said}"
    return LackOfFit(test="repeats", p_value=p, words=words)


def _by_signs(fit: LawFit, draws: int) -> LackOfFit:
    residual = fit.loss - fit.fitted()
    if np.abs(residual).max() <= ROUNDING * np.abs(fit.loss).max():
        return LackOfFit(test="none", words="the residuals are rounding")
    lines = _lines(fit)
    seen = count_runs(residual, lines)
    # The textbook distribution of runs assumes independent signs. Residuals of a fitted curve
    # change sign more often, so the distribution is simulated by refits to the law with noise.
    # Rows of one run share an error and so a sign, which is no curvature.
    noise = np.random.default_rng(0).standard_normal((draws, len(residual)))
    if fit.runs and fit.spare > 0:
        losses = fit.draws("runs", draws=draws).losses
    else:
        losses = fit.fitted() + fit.residual_sd / np.sqrt(fit.weights) * noise
    if fit.loss.min() > 0:
        losses = np.maximum(losses, 1e-3 * fit.loss.min())
    residuals = losses - fit.law.curve(fit.refit(losses), fit.law.rows)
    drawn = np.array([count_runs(each, lines) for each in residuals])
    p = float((1 + (drawn <= seen).sum()) / (1 + draws))
    said = f"residuals form {seen} runs of one sign, where noise gives about {drawn.mean():.0f}"
    fault = f"the law does not fit: {said}, so they are curved (p = {p:.2g})"
    words = fault if p < FAULT else f"no sign of curvature: {said} (p = {p:.2g})"
    return LackOfFit(test="runs", p_value=p, words=words)


def _lines(fit: LawFit) -> list[NDArray[np.intp]]:
    """Rows along which residuals are followed: each weight by size, or all by their fitted loss."""
    first, last = fit.law.rows[:, 0], fit.law.rows[:, -1]
    groups = [np.flatnonzero(first == value) for value in np.unique(first)]
    if min(map(len, groups)) >= 3:
        return [rows[np.argsort(last[rows], kind="stable")] for rows in groups]
    return [np.argsort(fit.fitted(), kind="stable")]


def count_runs(residual: Array, lines: Sequence[NDArray[np.intp]]) -> int:
    """Count the runs of one sign along each line of rows.

    Examples
    --------
    >>> count_runs(np.array([1.0, 2.0, -1.0, -2.0, 1.0]), [np.arange(5)])
    3
    """
    return sum(1 + int((np.diff(np.sign(residual[line])) != 0).sum()) for line in lines)


def favour_relative(fit: LawFit) -> float:
    """Log likelihood of noise in proportion to the loss, above that of noise of one size.

    Both are of Gaussian noise about the fitted curve. The other kind of errors would also move the
    curve towards its own optimum, so what it could gain is understated. Zero where there is no
    noise to judge by.
    """
    if not fit.identified or fit.degrees_of_freedom < 1:
        return 0.0
    curve = fit.fitted()
    left = fit.loss - curve
    if np.abs(left).max() <= ROUNDING * np.abs(curve).max():
        return 0.0
    logs = np.log(np.mean(left**2)) - np.log(np.mean((left / curve) ** 2))
    return float(len(left) / 2 * logs - np.log(np.abs(curve)).sum())


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
