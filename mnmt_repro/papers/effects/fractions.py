"""Effective fractions f(p) (Eqs. 8 to 13): Figures 6, 7 and 18, claims A8 to A10 and A21.

Both forms of the fraction, Eq. 12 and the straight line of Eq. 13 (Appendix E), are compared.
`compare_lines` reads what Figure 6 compares as tidy lines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit, effective_fraction
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fraction import Form, fraction_of
from mnmt_repro.laws.joint_law import log_fraction
from mnmt_repro.papers.cohorts.names import beside_hub, language, pair_name
from mnmt_repro.papers.effects.cells import Cells, Rows, common_cells, framed
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.grids import LossGrid, read_grid
from mnmt_repro.papers.effects.noise import Measure, common_draws, drawn, drawn_beside, measured
from mnmt_repro.papers.effects.prediction import FORMS, fit_eq11, held_out, predict_unseen
from mnmt_repro.papers.effects.scaling import PairFits, joint_law


def interpolated(cells: Cells, weights: Sequence[float]) -> int:
    """How many sizes at each of the weights, at least, have a loss that a single pair also has.

    A fraction is read off the losses of single-pair models. Beyond the range of those losses it is
    an extrapolation.
    """
    single = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(single.min(), single.max())
    return min(int((inside & (cells["p"] == p)).sum()) for p in weights)


def pooled_slope(x: Array, y: Array, group: NDArray[np.generic]) -> Array:
    """One slope and an intercept a group, for each row of `y` (B, m); NaN in `y` gives NaN."""
    _, place = np.unique(group, return_inverse=True)
    member = np.eye(int(place.max()) + 1)[place]
    x = x - member @ ((x @ member) / member.sum(0))
    return np.asarray((y @ x) / (x @ x))


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


def both_forms(
    points: pd.DataFrame, errors: Errors = "absolute"
) -> dict[Form, dict[str, FractionFit]]:
    """Eq. 11 with each form of the fraction, for each pair: form to pair to fit.

    `errors` as of `laws.fit_fraction`.
    """
    return {form: fraction_fits(points, form, errors=errors) for form in FORMS}


@framed(
    *("pair", "form", "parameters", "c₁", "c₂", "c₃", "R²", "error", "held-out error"),
    *("held-out worst", "at a bound"),
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
        ``pair, form, parameters, c₁, c₂, c₃`` (Eq. 13 has c₁ only), ``R², error`` (root mean
        square relative error on all runs, which the fit has seen), ``held-out error, held-out
        worst`` (on the weights and sizes that
        claims A14 and A15 hold out; NaN where the grid is not full enough for it) and ``at a
        bound``, the coefficients that stopped at the end of their range. Fits that are not
        identified have no row.
    """
    for pair in sorted(laws["eq12"], key=pair_name):
        for form, fits in laws.items():
            law = fits[pair]
            if not law.identified:
                continue
            own = points[points["pair"] == pair]
            seen = law.predict(own["p"], own["n"]) / own["loss"].to_numpy() - 1
            unseen = _held_out(own, form, errors)
            yield {
                "pair": pair_name(pair),
                "form": FORMS[form],
                "parameters": len(law.names),
                **{_SIGNS[c]: law.params.get(c, np.nan) for c in ("c1", "c2", "c3")},
                "R²": law.r2,
                "error": float(np.sqrt(np.mean(seen**2))),
                "held-out error": float(np.sqrt(np.mean(unseen**2))),
                "held-out worst": float(np.abs(unseen).max()),
                "at a bound": ", ".join(map(_bound, law.active_bounds)) or "none",
            }


_SIGNS = dict(c1="c₁", c2="c₂", c3="c₃", l_inf="L∞") | {"<=": "≤", ">=": "≥", "-0.999999": "−1"}


def _bound(name: str) -> str:
    """A bound as a page writes it.

    >>> _bound("c1 >= -0.999999"), _bound("l_inf >= 0")
    ('c₁ ≥ −1', 'L∞ ≥ 0')
    """
    return " ".join(_SIGNS.get(part, part) for part in name.split(" "))


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


_COLUMNS = ["panel", "line", "test_set", "language", "p", "w", "f", "f_low", "f_high", "sizes"]


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one line of a panel shows.

    Attributes
    ----------
    panel, label : str
        Title of the panel, and what sets the line apart from the others in it.
    cohort, test_set : str
        The grid that it reads.
    pairs : collection of str
        Which pairs of the cohort; default all.
    """

    panel: str
    label: str
    cohort: str
    test_set: str = "indomain"
    pairs: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """The lines that the stored rows give.

    Attributes
    ----------
    lines
        From `fraction_lines`, one below the other.
    rows
        The rows behind them, for their provenance.
    """

    lines: pd.DataFrame
    rows: pd.DataFrame


def compare_lines(stored: pd.DataFrame, wanted: Sequence[Line]) -> _Comparison:
    """Read the lines of a figure out of stored rows; those without enough rows are left out.

    The lines of a panel are fitted to the weights and sizes that all of them have, so that they
    differ in nothing but what is compared.

    Parameters
    ----------
    stored
        From `results.load`, of one tier and domain.
    wanted
        Lines in the order of the legend.
    """
    lines = [pd.DataFrame(columns=_COLUMNS)]
    rows = [stored.iloc[:0]]
    panels: dict[str, list[tuple[Line, pd.DataFrame]]] = {}
    for line in wanted:
        if grid := read_grid(stored, line.cohort, line.test_set):
            own = grid.rows[grid.rows["pair"].isin(list(line.pairs))] if line.pairs else grid.rows
            panels.setdefault(line.panel, []).append((line, own))
    for panel in panels.values():
        common = common_cells([own for _, own in panel])
        for (line, _), kept in zip(panel, common, strict=True):
            shared = read_grid(kept, line.cohort, line.test_set)
            if shared is None:  # too few weights and sizes in common with the others
                continue
            table = fraction_lines(shared, panel=line.panel, line=line.label)
            lines = [*lines, table] if len(table) else lines
            rows.append(shared.rows)
    return _Comparison(
        lines=pd.concat(lines[1:] or lines, ignore_index=True),
        rows=pd.concat(rows[1:] or rows, ignore_index=True),
    )


def fraction_lines(grid: LossGrid, *, panel: str, line: str) -> pd.DataFrame:
    """Effective fraction of the pairs of a grid at each weight, by the joint law (Eq. 10).

    Parameters
    ----------
    panel
        Title of the panel that it is drawn in.
    line
        What sets the grid apart from the others of its panel: ``"in-domain"``.

    Returns
    -------
    DataFrame
        ``panel, line, test_set, language, p, w, f, f_low, f_high, sizes``; `w` is the share of
        target tokens that the weight comes to (NaN where the rows do not say). A law that the rows
        do not identify leaves its rows out.
    """
    f = fractions({pair: fit for pair, fit in grid.fits.items() if fit[1].identified})
    rows = grid.rows.assign(w=grid.rows.get("token_share", float("nan")))
    of_cell = rows.assign(p=rows["p"].round(9)).groupby(["pair", "p"], as_index=False)
    cells = of_cell.agg(w=("w", "mean"), sizes=(grid.n, "nunique"))
    both = f.assign(p=f["p"].round(9)).merge(cells, on=["pair", "p"], how="left")
    names = [language(beside_hub(pair)) for pair in both["pair"]]
    about = {"panel": panel, "line": line, "test_set": grid.test_set, "language": names}
    return both.assign(**about)[_COLUMNS]


SIMILARITY_COHORTS = {
    tier: {0.0: none, 0.25: f"{of}025", 0.5: f"{of}05", 0.75: f"{of}075", 1.0: f"{of}1"}
    for tier, none, of in (
        ("mini", "conlang-sim0", "conlang-sim"),
        ("steady", "conlang-steady", "conlang-steady-sim"),
    )
}
"""Tier and similarity of generated languages to the cohort that has it. Those of a tier differ in
nothing else that a model is trained on."""


def _log_f(cells: Cells, losses: Array, setting: Setting, pair: str) -> Array:
    """Log f(p) (1 + B, W) of the joint law at the weights that the options name (Eq. 10)."""
    fit = joint_law(cells, setting, pair)
    every = log_fraction(fit.refit(losses), int(fit.law.index(1.0)[0]))
    return every[:, fit.law.index(setting.options["weights"])]


def fraction_contrast(evidence: Evidence, setting: Setting) -> Units:
    """A8, A9, A10: log ratio of the fractions of two test sets, partners or directions.

    Where both sides read the same runs their noise is one. Two test sets get the same picks of
    residuals, from the same seed of the draws. Two cohorts get the same draws of the runs that
    both have.
    """
    options = setting.options

    def grid(cohort: str, test_set: str) -> dict[str, Cells]:
        return evidence.grid(setting, cohort, test_set, weights=(*options["weights"], 1))

    same_test = options["between"] != "test_set"
    if same_test:
        first, second = (grid(cohort, setting.test_set) for cohort in setting.cohorts)
        matched = _match(first, second, options["pairs"])
    else:
        first = grid(setting.cohorts[0], setting.test_set)
        second = grid(setting.cohorts[0], setting.other_test_set)
        matched = [(pair, pair) for pair in sorted(set(first) & set(second))]
    units: Units = {}
    for a, b in matched:
        losses = drawn(first[a])
        if same_test:
            losses, others = drawn_beside(losses, first[a], second[b])
        else:
            losses, others = common_draws(losses, drawn(second[b]))
        ratio = _log_f(second[b], others, setting, b) - _log_f(first[a], losses, setting, a)
        inside = min(interpolated(cells, options["weights"]) for cells in (first[a], second[b]))
        units[a if a == b else f"{b} against {a}"] = {
            "interpolated": Measure(value=inside),
            "mean_log_ratio": measured(ratio.mean(1)),
            "max_log_ratio": Measure(value=float(np.abs(ratio[0]).max())),
        }
    return units


def fraction_trend(evidence: Evidence, setting: Setting) -> Units:
    """A21: slope of mean log f on the similarity of generated languages, on their common cells."""
    weights = setting.options["weights"]
    grids = [evidence.grid(setting, cohort, weights=(*weights, 1)) for cohort in setting.cohorts]
    of_cohort = {cohort: value for value, cohort in SIMILARITY_COHORTS[setting.tier].items()}
    similarity = np.array([of_cohort[cohort] for cohort in setting.cohorts])
    away = similarity - similarity.mean()
    units: Units = {}
    for pair in sorted(set.intersection(*(set(grid) for grid in grids))):
        tables = common_cells([grid[pair] for grid in grids])
        log_f = [
            _log_f(cells, drawn(cells, seed=k), setting, pair) for k, cells in enumerate(tables)
        ]
        inside = min(interpolated(grid[pair], weights) for grid in grids)
        mean = np.array([each.mean(1) for each in common_draws(*log_f)])
        units[pair] = {
            "slope": measured(away @ mean / (away @ away)),
            "spread": Measure(value=float(np.ptp(mean[:, 0]))),
            "cells": Measure(value=len(tables[0])),
            "interpolated": Measure(value=inside),
        }
    return units


def _match(first: dict[str, Cells], second: dict[str, Cells], how: str) -> list[tuple[str, str]]:
    """Pairs to compare: the same, or each with its reverse; in sorted order where none is."""

    def partner(pair: str) -> str:
        return pair if how == "common" else "-".join(reversed(pair.split("-")))

    matched = [(pair, partner(pair)) for pair in sorted(first) if partner(pair) in second]
    return matched or list(zip(sorted(first), sorted(second), strict=False))
