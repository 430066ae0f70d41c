"""Effective parameters and the trade-off frontier: Paper A's Figures 7 and 18."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro import laws
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.grids import LossGrid
from mnmt_repro.analysis.held_out import fit_eq11
from mnmt_repro.analysis.scaling import PairFits
from mnmt_repro.cohorts.names import cohort_name, pair_name
from mnmt_repro.laws.fraction import Form


@framed("p", "f", "f_low", "f_high", "relative", "relative_low", "relative_high", "pair")
def fractions(fits: PairFits) -> Rows:
    """Effective fraction of each pair at each weight, by the joint law (Eq. 10).

    Returns
    -------
    DataFrame
        As `laws.effective_fraction`, and ``pair``.
    """
    for pair, (_, joint) in fits.items():
        yield laws.effective_fraction(joint).assign(pair=pair)


@framed(
    *("p", "n", "loss", "n_effective", "f", "f_low", "f_high", "relative", "extrapolated", "pair")
)
def direct_fractions(points: pd.DataFrame, fits: PairFits) -> Rows:
    """Effective fraction at every pair, weight and size, solved from Eq. 8 on the single-pair law.

    Nothing is assumed about how f depends on size. Losses outside those that the single-pair law
    was fitted to are left out, since the law would have to be extrapolated to them; so are pairs
    whose single-pair law the rows do not identify.

    Returns
    -------
    DataFrame
        As `laws.effective_fraction_direct`, and ``pair``.
    """
    for pair, (alone, _) in fits.items():
        if alone[1.0].identified:
            own = points[points["pair"] == pair]
            found = laws.effective_fraction_direct(alone[1.0], own, n="n", loss="loss")
            yield found[~found["extrapolated"]].assign(pair=pair)


SLOPE_DRAWS = 300


@framed("cohort", "pair", "p", "slope", "low", "high", "rows", "draws")
def fraction_slopes(grids: Mapping[str, LossGrid], weights: Sequence[float]) -> Rows:
    """Slope of log f on log N of the direct estimator, at chosen weights.

    Parameters
    ----------
    grids
        From `grids.read_grids`. A pair whose single-pair law is not identified is left out.

    Returns
    -------
    DataFrame
        ``cohort, pair, p, slope, low, high, rows, draws``: 95 % intervals, the sizes at which the
        single-pair law need not be extrapolated, and the refits of `SLOPE_DRAWS` behind the
        interval (in the others some fraction is infinite or zero).
    """
    wanted = {round(weight, 9) for weight in weights}
    for cohort, grid in grids.items():
        for pair, (alone, _) in grid.fits.items():
            if not alone[1.0].identified:
                continue
            mine = grid.points[grid.points["pair"] == pair]
            mine = mine[[round(p, 9) in wanted for p in mine["p"]]]
            found = laws.direct_slopes(alone[1.0], mine, n="n", loss="loss", draws=SLOPE_DRAWS)
            yield found.assign(cohort=cohort_name(cohort), pair=pair_name(pair))


def fraction_fits(
    points: pd.DataFrame, form: Form = "eq12", **options: Any
) -> dict[str, laws.FractionFit]:
    """Eq. 11 for each pair, from all points given; `options` are those of `fit_eq11`."""
    return {str(pair): fit_eq11(group, form, **options) for pair, group in points.groupby("pair")}


def observed_frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Observed trade-offs: ``n, p`` (of the first pair) and a column of losses a pair."""
    first = sorted(points["pair"].unique())[0]
    own = points.assign(share=np.where(points["pair"] == first, points["p"], 1 - points["p"]))
    own["share"] = own["share"].round(9)
    wide = own.pivot_table(index=["n", "share"], columns="pair", values="loss").dropna()
    return wide.reset_index().rename(columns={"share": "p"})
