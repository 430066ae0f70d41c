"""Losses drawn around those of the cells, with the noise between their seeds.

One way gives all intervals of laws and fractions. There are `DRAWS` draws. In each, the mean log
loss of a cell gets the mean of as many residuals as it has seeds (`cells.residual_pools`). Every
cell is drawn, those of single pairs too, and all that a measure needs is refitted. The interval is
the percentiles of the measure. The pair is a fixed effect, not noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.power_law import PowerLaw
from mnmt_repro.papers.effects.cells import Cells
from mnmt_repro.papers.effects.intervals import DRAWS, NotIdentified, common_draws


def require(fit: LawFit, what: str) -> None:
    """`NotIdentified` unless the fit is identified and leaves residuals."""
    if not fit.identified:
        raise NotIdentified(f"{what}: {fit.reason}")
    if fit.degrees_of_freedom < 1:
        raise NotIdentified(f"{what}: as many parameters as rows")


def drawn(cells: Cells, seed: int = 0, draws: int = DRAWS) -> Array:
    """Losses (1 + draws, m): those of the cells, then those of each draw.

    Where a cell has no residuals to draw from, the first row is all. Equal cells in equal order get
    the same picks from the same `seed`, so two test sets of the same runs have one noise.
    """
    loss = cells["cross_entropy"].to_numpy(dtype=float)
    if not cells["pool"].map(len).all():
        return loss[None]
    random = np.random.default_rng(seed)
    noise = [
        random.choice(pool, (draws, seeds)).mean(1)
        for pool, seeds in zip(cells["pool"], cells["seeds"], strict=True)
    ]
    return np.vstack([loss, loss * np.exp(np.transpose(noise))])


def drawn_beside(losses: Array, cells: Cells, others: Cells, seed: int) -> list[Array]:
    """Losses of cells beside drawn losses of others; where the runs are the same, so are the draws.

    Returns
    -------
    the losses (1 + B, m), those of `others` (1 + B, k)
    """
    first, second = (each.copy() for each in common_draws(losses, drawn(others, seed)))
    place = {runs: k for k, runs in enumerate(cells["runs"])}
    for k, runs in enumerate(others["runs"]):
        if runs in place:
            second[:, k] = first[:, place[runs]]
    return [first, second]


def curve(values: Array, group: NDArray[np.intp], n: Array) -> Array:
    """Losses (B, m) of laws with parameters alpha, l_inf, beta... (B, P)."""
    return values[:, 1:2] + values[:, 2 + group] * n ** -values[:, :1]


def refit_power_laws(
    sizes: Sequence[Array], losses: Sequence[Array], weights: Sequence[Array]
) -> list[Array]:
    """Fit Eq. 6 to many losses (B, m) at each of several sets of sizes (m,).

    The weights (m,) are those of the squared residuals. All sets share one call: short ones are
    padded with rows of weight zero.

    Returns
    -------
    list of (B, 3)
        alpha, l_inf, beta, in the order given.
    """
    longest = max(map(len, sizes))
    counts = [len(each) for each in losses]

    def padded(rows: Array, mode: Literal["edge", "constant"]) -> Array:
        return np.pad(rows, ((0, 0), (0, longest - rows.shape[1])), mode=mode)

    law = PowerLaw(
        weights=np.repeat(
            np.vstack([padded(w[None], "constant") for w in weights]), counts, axis=0
        ),
        n=np.repeat(np.vstack([padded(size[None], "edge") for size in sizes]), counts, axis=0),
        group=np.zeros(longest, dtype=np.intp),
    )
    values = law.follow(np.vstack([padded(each, "edge") for each in losses])).theta
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
