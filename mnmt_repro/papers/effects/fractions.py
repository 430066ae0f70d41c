"""Effective parameters and the trade-off frontier: Paper A's Figures 7 and 18.

Both forms of the fraction, Eq. 12 and the straight line of Eq. 13 (Appendix E), are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    FractionFit,
    direct_slopes,
    effective_fraction,
    effective_fraction_direct,
)
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fraction import Form, fraction_of
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.grids import LossGrid
from mnmt_repro.papers.effects.held_out import fit_eq11, held_out, predict_unseen
from mnmt_repro.papers.effects.scaling import PairFits


@framed("p", "f", "f_low", "f_high", "relative", "relative_low", "relative_high", "pair")
def fractions(fits: PairFits) -> Rows:
    """Effective fraction of each pair at each weight, by the joint law (Eq. 10).

    Returns
    -------
    DataFrame
        As `laws.effective_fraction`, and ``pair``.
    """
    for pair, (_, joint) in fits.items():
        yield effective_fraction(joint).assign(pair=pair)


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
            found = effective_fraction_direct(alone[1.0], own, n="n", loss="loss")
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
            found = direct_slopes(alone[1.0], mine, n="n", loss="loss", draws=SLOPE_DRAWS)
            yield found.assign(cohort=cohort_name(cohort), pair=pair_name(pair))


def fraction_fits(
    points: pd.DataFrame, form: Form = "eq12", **options: Any
) -> dict[str, FractionFit]:
    """Eq. 11 for each pair, from all points given; `options` are those of `fit_eq11`."""
    return {str(pair): fit_eq11(group, form, **options) for pair, group in points.groupby("pair")}


def observed_frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Observed trade-offs: ``n, p`` (of the first pair) and a column of losses a pair."""
    first = sorted(points["pair"].unique())[0]
    own = points.assign(share=np.where(points["pair"] == first, points["p"], 1 - points["p"]))
    own["share"] = own["share"].round(9)
    wide = own.pivot_table(index=["n", "share"], columns="pair", values="loss").dropna()
    return wide.reset_index().rename(columns={"share": "p"})


FORMS: dict[Form, str] = {"eq12": "Eq. 12", "eq13": "Eq. 13"}


def both_forms(
    points: pd.DataFrame, errors: Errors = "absolute"
) -> dict[Form, dict[str, FractionFit]]:
    """Eq. 11 with each form of the fraction, for each pair: form to pair to fit.

    `errors` as of `laws.fit_fraction`.
    """
    return {form: fraction_fits(points, form, errors=errors) for form in FORMS}


@framed(
    *("pair", "form", "parameters", "c₁", "R²", "error", "held-out error", "held-out worst"),
    "at a bound",
    by=["pair", "form"],
)
def form_table(
    points: pd.DataFrame,
    laws: Mapping[Form, Mapping[str, FractionFit]],
    errors: Errors = "absolute",
) -> Rows:
    """How well each form describes the runs it is fitted to, and predicts those it is not.

    Parameters
    ----------
    points
        From `scaling.observed`.
    laws, errors
        From `both_forms`, and its option.

    Returns
    -------
    DataFrame
        ``pair, form, parameters, c₁, R², error`` (root mean square relative error on all runs,
        which the fit has seen), ``held-out error, held-out worst`` (on the weights and sizes that
        claims A14 and A15 hold out; NaN where the grid is not full enough for it) and ``at a
        bound``, the coefficients that stopped at the end of their range. Fits that are not
        identified have no row.
    """
    for form, fits in laws.items():
        for pair, law in fits.items():
            if not law.identified:
                continue
            own = points[points["pair"] == pair]
            seen = law.predict(own["p"], own["n"]) / own["loss"].to_numpy() - 1
            unseen = _held_out(own, form, errors)
            yield {
                "pair": pair_name(pair),
                "form": FORMS[form],
                "parameters": len(law.names),
                "c₁": law.params["c1"],
                "R²": law.r2,
                "error": float(np.sqrt(np.mean(seen**2))),
                "held-out error": float(np.sqrt(np.mean(unseen**2))),
                "held-out worst": float(np.abs(unseen).max()),
                "at a bound": ", ".join(map(_bound, law.active_bounds)) or "none",
            }


def _bound(name: str) -> str:
    """A bound as a page writes it.

    >>> _bound("c1 <= 1"), _bound("l_inf >= 0")
    ('c₁ ≤ 1', 'L∞ ≥ 0')
    """
    signs = {"c1": "c₁", "c2": "c₂", "c3": "c₃", "l_inf": "L∞", "<=": "≤", ">=": "≥"}
    return " ".join(signs.get(part, part) for part in name.split(" "))


def _held_out(points: pd.DataFrame, form: Form, errors: Errors) -> Array:
    """Relative errors on the cells of one pair that are held out."""
    unseen = held_out(points)
    try:
        law = fit_eq11(points[~unseen], form, errors=errors)
    except InputError:
        return np.array([np.nan])
    by_law, _ = predict_unseen(points, unseen, law)
    return by_law.relative


@framed("pair", "form", "p", "f")
def form_curves(laws: Mapping[Form, Mapping[str, FractionFit]]) -> Rows:
    """Fraction of each form over the weight: ``pair, form, p, f``."""
    grid = np.linspace(0.01, 1, 100)
    for form, fits in laws.items():
        for pair, law in fits.items():
            if law.identified:
                f = fraction_of(grid, law.values[3:])
                yield pd.DataFrame({"pair": pair, "form": FORMS[form], "p": grid, "f": f})
