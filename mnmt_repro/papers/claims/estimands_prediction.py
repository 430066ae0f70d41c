"""Estimands of prediction: claims A14, A15, A17, A19 and A20 of Paper A.

Each function is pure: evidence, claim and setting in; for each pair its named measures out, or
under ``"all"`` those of all pairs together.
"""

from __future__ import annotations

import numpy as np

from mnmt_repro.laws import FractionFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fraction import Form
from mnmt_repro.papers.claims.estimands_law import errors_of
from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.effects.cells import Cells, in_regime
from mnmt_repro.papers.effects.held_out import (
    Unseen,
    fit_eq11,
    held_out,
    predict_unseen,
    root_mean_squares,
)
from mnmt_repro.papers.effects.intervals import (
    Measure,
    Measures,
    NoRowsYet,
    NotIdentified,
    centred,
    centred_r2,
)
from mnmt_repro.papers.effects.noise import drawn
from mnmt_repro.papers.effects.three_pairs import Refits, for_all_alike, prediction_measures


def held_out_prediction(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A14: Eq. 11 with Eq. 12 on weights and sizes that it was not fitted to."""
    options = claim.options
    units: Units = {}
    for pair, cells in evidence.grid(claim, setting).items():
        found, nearest = _predicted(cells, options["form"], setting.n, pair, claim)
        error, naive = root_mean_squares(found.relative), root_mean_squares(nearest.relative)
        units[pair] = {
            "error": centred(error),
            "r2": centred_r2(_r2(found.predicted, found.truth)),
            "naive_error": centred(naive),
            "error_over_naive": centred(error / naive),
        }
    return units


def held_out_forms(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A15: the held-out error of Eq. 13 beside that of Eq. 12."""
    units: Units = {}
    for pair, cells in evidence.grid(claim, setting).items():
        simple, flexible = (
            root_mean_squares(_predicted(cells, form, setting.n, pair, claim)[0].relative)
            for form in claim.options["forms"]
        )
        units[pair] = {"error": centred(simple), "error_ratio": centred(simple / flexible)}
    return units


def metric_frontier(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A17: as A14 for a metric of decoded output; errors in shares of its range.

    One seed of a run is decoded, so scores have no noise to draw, and errors no interval.
    """
    metric = claim.options["metric"]
    grid = evidence.grid(claim, setting, weights=(1,), scored=metric)
    return {pair: _metric(cells, pair, metric, claim, setting.n) for pair, cells in grid.items()}


def three_pairs_from_two(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A20: the last cohort's losses from the laws of the others."""
    options = claim.options
    *known, wanted = setting.cohorts
    laws: dict[str, list[Refits]] = {}
    for k, cohort in enumerate(known, 1):
        for pair, cells in evidence.grid(claim, setting, cohort).items():
            law = _law(cells, options["form"], setting.n, pair, claim)
            laws.setdefault(pair, []).append((law, law.refit(drawn(cells, seed=k))))
    cells = in_regime(evidence.cells(setting, wanted, apart=["mixture"]), options, wanted)
    if options.get("alike"):
        laws = for_all_alike(laws, sorted(cells["pair"].unique()))
    cells = cells[cells["pair"].isin(list(laws)) & cells["p"].between(0.05, 1, inclusive="left")]
    needs = options["needs_predicted"]
    for name, rows in cells.groupby("pair"):
        sizes, weights = rows["n_non_embedding"].nunique(), rows["p"].nunique()
        if sizes < needs["sizes"] or weights < needs["mixtures"]:
            raise NoRowsYet(f"{wanted}, {name}: {weights} weights and {sizes} sizes so far")
    if cells["pair"].nunique() < len(laws):
        raise NoRowsYet(f"{wanted}: not all of {', '.join(sorted(laws))} are there yet")
    return {"all": prediction_measures(laws, cells, setting.n)}


def _metric(cells: Cells, pair: str, metric: str, claim: Claim, n: str) -> Measures:
    form = claim.options["form"]
    scores, nearest = _predicted(cells, form, n, pair, claim, metric)
    losses, _ = _predicted(cells, form, n, pair, claim)
    error, naive = root_mean_squares(scores.of_spread), root_mean_squares(nearest.of_spread)
    return {
        "error": centred(error),
        "error_over_naive": centred(error / naive),
        "cross_entropy_error": centred(root_mean_squares(losses.of_spread)),
        "metric_range": Measure(value=float(scores.spread[0, 0])),
    }


def _law(
    cells: Cells, form: Form, n: str, pair: str, claim: Claim, metric: str = ""
) -> FractionFit:
    column = metric or "cross_entropy"
    fit = fit_eq11(cells, form, n=n, column=column, metric=metric, errors=errors_of(claim))
    if not fit.identified:
        raise NotIdentified(f"{form} for {pair}: {fit.reason}")
    return fit


def _predicted(
    cells: Cells, form: Form, n: str, pair: str, claim: Claim, metric: str = ""
) -> tuple[Unseen, Unseen]:
    options = claim.options
    unseen = held_out(
        cells, options["held_out_weights"], options["held_out_largest_sizes"], "n_non_embedding"
    )
    law = _law(cells[~unseen], form, n, pair, claim, metric)
    column = metric or "cross_entropy"
    losses = cells[column].to_numpy()[None] if metric else drawn(cells)
    return predict_unseen(cells, unseen, law, column, n, losses)


def _r2(predicted: Array, truth: Array) -> Array:
    total = ((truth - truth.mean(1, keepdims=True)) ** 2).sum(1)
    return np.asarray(1 - ((truth - predicted) ** 2).sum(1) / total)
