"""Laws refitted to losses under noise, which show how far a measure moves.

All draws are Gaussian around a law, with its residual standard deviation, and refitted in one
batched call. An interval is the spread of the refitted measure about its value at the law itself,
laid around the observed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_repro.analysis.intervals import DRAWS, NotIdentified
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.power_law import PARAMETERS
from mnmt_repro.laws.shared_exponent import SharedExponentFit, SharedExponentLaw


def require(fit: LawFit, what: str) -> None:
    """`NotIdentified` unless the fit is identified and leaves residuals."""
    if not fit.identified:
        raise NotIdentified(f"{what}: {fit.reason}")
    if fit.degrees_of_freedom < 1:
        raise NotIdentified(f"{what}: as many parameters as rows")


def noisy(mean: Array, sd: Array | float, seed: int, draws: int = DRAWS) -> Array:
    """Losses (draws, m) drawn around `mean` (m,), with one `sd` or one for each row (m,)."""
    return mean + sd * np.random.default_rng(seed).standard_normal((draws, len(mean)))


def refits(fit: SharedExponentFit, seed: int, draws: int = DRAWS) -> Array:
    """Parameters (draws, P) of the law refitted to draws around itself."""
    return fit.refit(noisy(fit.fitted(), fit.noise_sd(), seed, draws))


def curve(values: Array, group: NDArray[np.intp], n: Array) -> Array:
    """Losses (B, m) of laws with parameters alpha, l_inf, beta... (B, P)."""
    return values[:, 1:2] + values[:, 2 + group] * n ** -values[:, :1]


def refit_power_laws(
    sizes: Sequence[Array], losses: Sequence[Array], errors: Errors = "absolute"
) -> list[Array]:
    """Fit Eq. 6 to many losses (B, m) at each of several sets of sizes (m,).

    All sets share one call: short ones are padded with rows of weight zero. Relative errors are
    shares of the mean of the B losses.

    Returns
    -------
    list of (B, 3)
        alpha, l_inf, beta, in the order given.
    """
    longest = max(map(len, sizes))
    counts = [len(drawn) for drawn in losses]

    def padded(rows: Array, mode: Literal["edge", "constant"]) -> Array:
        return np.pad(rows, ((0, 0), (0, longest - rows.shape[1])), mode=mode)

    weights = [error_weights(errors, drawn.mean(0))[None] for drawn in losses]
    law = SharedExponentLaw(
        names=PARAMETERS,
        weights=np.repeat(np.vstack([padded(w, "constant") for w in weights]), counts, axis=0),
        n=np.repeat(np.vstack([padded(size[None], "edge") for size in sizes]), counts, axis=0),
        group=np.zeros(longest, dtype=np.intp),
        direction="min",
        ceiling=None,
    )
    values = law.follow(np.vstack([padded(drawn, "edge") for drawn in losses])).theta
    return np.split(values, np.cumsum(counts)[:-1])


def pooled_sd(fits: Iterable[LawFit]) -> float:
    """Residual standard deviation of several laws together; NaN where none leaves residuals."""
    known = [fit for fit in fits if fit.identified]
    spare = sum(fit.degrees_of_freedom for fit in known)
    return float(np.sqrt(sum(fit.rss for fit in known) / spare)) if spare > 0 else float("nan")


def between_seeds(rows: pd.DataFrame, *cell: str) -> tuple[float, int]:
    """Standard deviation of a log loss between the seeds of a cell, pooled over cells.

    Parameters
    ----------
    rows
        From `results.load`.
    cell
        Columns whose values seeds have in common.

    Returns
    -------
    The deviation, NaN where no cell has two seeds, and how many cells have.
    """
    grouped = np.log(rows["cross_entropy"]).groupby([rows[column] for column in cell])
    free, variance = grouped.size() - 1, grouped.var()
    several = free > 0
    if not several.any():
        return float("nan"), 0
    pooled = (variance * free)[several].sum() / free[several].sum()
    return float(np.sqrt(pooled)), int(several.sum())
