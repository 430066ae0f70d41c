"""Estimands of prediction: claims A14, A15, A17, A19 and A20 of Paper A.

Each function is pure: evidence, claim and scope in; for each pair its named measures out, or under
``"all"`` those of all pairs together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_repro.analysis.intervals import (
    DRAWS,
    Measure,
    Measures,
    NoRowsYet,
    NotIdentified,
    measure,
    quantiles,
)
from mnmt_repro.analysis.noise import curve, noisy, refits
from mnmt_repro.claims.estimands_law import errors_of, joint_law
from mnmt_repro.claims.evidence import Cells, Evidence, Units, check_grid
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.laws import FractionFit, extrapolate_curve, fit_fraction, mixture_errors
from mnmt_repro.laws.checks import Array, error_weights
from mnmt_repro.results.schema import CEILINGS

Form = Literal["eq12", "eq13"]


def held_out_prediction(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A14: Eq. 11 with Eq. 12 on weights and sizes that it was not fitted to."""
    options = claim.options
    units: Units = {}
    for pair, cells in evidence.grid(scope, scope.cohorts[0], options["needs"]).items():
        fitted = _fitted(cells, options)
        held = cells[~fitted]
        truth = held["cross_entropy"].to_numpy()
        predicted = _predicted(cells[fitted], held, options["form"], scope.n, pair, claim)
        naive = _relative(nearest_seen(cells[fitted], held, "cross_entropy"), truth)
        error = _relative(predicted, truth)
        units[pair] = {
            "error": _rms(error),
            "r2": _r2(predicted, truth),
            "naive_error": _rms(naive),
            "error_over_naive": _rms_ratio(error, naive),
        }
    return units


def held_out_forms(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A15: the held-out error of Eq. 13 beside that of Eq. 12."""
    options = claim.options
    simple, flexible = options["forms"]
    units: Units = {}
    for pair, cells in evidence.grid(scope, scope.cohorts[0], options["needs"]).items():
        fitted = _fitted(cells, options)
        held = cells[~fitted]
        errors = [
            _relative(
                _predicted(cells[fitted], held, form, scope.n, pair, claim),
                held["cross_entropy"].to_numpy(),
            )
            for form in (simple, flexible)
        ]
        units[pair] = {"error": _rms(errors[0]), "error_ratio": _rms_ratio(*errors)}
    return units


def metric_frontier(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A17: as A14 for a metric of decoded output; errors in shares of its range."""
    options, metric = claim.options, claim.options["metric"]
    decoded = evidence.cells(scope, scope.cohorts[0], scored=metric)
    units: Units = {}
    reasons = []
    for pair, rows in decoded.groupby("pair"):
        try:
            check_grid(rows, f"{scope.cohorts[0]}, {pair}", options["needs"], (1,))
        except NoRowsYet as reason:
            reasons.append(reason)
            continue
        units[str(pair)] = _metric(rows.reset_index(drop=True), str(pair), metric, claim, scope.n)
    if not units:
        raise reasons[0]
    return units


def three_pairs_from_two(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A20: the last cohort's losses from the laws of the others."""
    options = claim.options
    *known, wanted = scope.cohorts
    laws: dict[str, list[FractionFit]] = {}
    for cohort in known:
        for pair, cells in evidence.grid(scope, cohort, options["needs"]).items():
            laws.setdefault(pair, []).append(_law(cells, options["form"], scope.n, pair, claim))
    cells = evidence.cells(scope, wanted, apart=["mixture"])
    if options.get("alike"):
        every = [law for found in laws.values() for law in found]
        laws = {str(pair): every for pair in sorted(cells["pair"].unique())}
    cells = cells[cells["pair"].isin(list(laws)) & cells["p"].between(0.05, 1, inclusive="left")]
    needs = options["needs_predicted"]
    for name, rows in cells.groupby("pair"):
        sizes, weights = rows["n_non_embedding"].nunique(), rows["p"].nunique()
        if sizes < needs["sizes"] or weights < needs["mixtures"]:
            raise NoRowsYet(f"{wanted}, {name}: {weights} weights and {sizes} sizes so far")
    if cells["pair"].nunique() < len(laws):
        raise NoRowsYet(f"{wanted}: not all of {', '.join(sorted(laws))} are there yet")
    frame = mixture_errors(laws, cells, n=scope.n)
    truth, predicted = (frame[column].to_numpy() for column in ("loss", "predicted"))
    error = frame["relative_error"].to_numpy()
    centre = frame.groupby("pair")["loss"].transform("mean").to_numpy()
    r2 = 1 - ((truth - predicted) ** 2).sum() / ((truth - centre) ** 2).sum()
    bias = truth / predicted - 1
    low, high = quantiles(bias[_resampled(len(bias))].mean(1))
    return {
        "all": {
            "error": _rms(error),
            "r2": Measure(value=float(r2)),
            "bias": Measure(value=float(bias.mean()), low=low, high=high),
        }
    }


def convergence_correction(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A19: distance of the largest models at small weights from the law of the others."""
    options, cohort = claim.options, scope.cohorts[0]
    curves = evidence.curves
    if curves.empty:
        raise NoRowsYet(f"no learning curves of {cohort}")
    curves = curves[
        (curves["cohort"] == cohort)
        & (curves["tier"] == scope.tier)
        & (curves["p"] > 0)
        & (curves["p"].round(9) <= options["max_weight"])
    ]
    before, after, moves = [], [], []
    for k, (pair, cells) in enumerate(
        evidence.grid(scope, cohort, options["needs"], weights=(0.05, 1)).items()
    ):
        largest = np.sort(cells["n_non_embedding"].unique())[-options["largest_sizes"] :]
        corrected = cells["n_non_embedding"].isin(largest) & (cells["p"] <= options["max_weight"])
        fit = joint_law(cells[~corrected], scope.n, pair, errors=errors_of(claim))
        rows = cells[corrected]
        group, n = fit.index(rows["p"]), rows[scope.n].to_numpy(dtype=float)
        law = np.asarray(fit.predict(rows["p"], n))
        loss = rows["cross_entropy"].to_numpy()
        ratio = np.array([_longer(curves, pair, row, options["multiple"]) for row in _rows(rows)])
        before.append(loss / law - 1)
        after.append(loss * ratio / law - 1)
        values = refits(fit, seed=k)
        sd = fit.residual_sd / np.sqrt(error_weights(errors_of(claim), law))
        moves.append(noisy(law, sd, seed=100 + k) / curve(values, group, n) - 1)
    first, second = np.concatenate(before), np.concatenate(after)
    deviations = np.hstack(moves).mean(1)
    return {
        "all": {
            "before": measure(first.mean(), deviations),
            "after": measure(second.mean(), deviations),
            "closer_share": Measure(value=float(np.mean(np.abs(second) < np.abs(first)))),
            "shrinkage": Measure(value=float(np.abs(second).mean() / np.abs(first).mean())),
        }
    }


def _longer(curves: pd.DataFrame, pair: str, cell: Mapping[str, Any], multiple: float) -> float:
    """Loss predicted at `multiple` of the budget over the fitted loss at its end, mean of runs."""
    mine = curves[
        (curves["pair"] == pair)
        & (curves["n_non_embedding"] == cell["n_non_embedding"])
        & (curves["p"].round(9) == cell["p"])
    ]
    what = f"{pair} at p = {cell['p']:g}, N = {cell['n_non_embedding']:,}"
    if mine.empty:
        raise NoRowsYet(f"no learning curve of {what}")
    ratios = []
    for _, run in mine.groupby("run_id"):
        read = extrapolate_curve(run["step"], run["cross_entropy"], multiple=multiple)
        if not read.law.identified:
            raise NotIdentified(f"learning curve of {what}: {read.law.reason}")
        ratios.append(read.ratio)
    return float(np.mean(ratios))


def _metric(cells: Cells, pair: str, metric: str, claim: Claim, n: str) -> Measures:
    options = claim.options
    fitted = _fitted(cells, options)
    held = cells[~fitted]

    def errors(column: str, direction: Literal["min", "max"]) -> tuple[Array, Array]:
        truth, spread = held[column].to_numpy(), np.ptp(cells[column].to_numpy())
        form = options["form"]
        predicted = _predicted(cells[fitted], held, form, n, pair, claim, column, direction)
        naive = nearest_seen(cells[fitted], held, column)
        return (predicted - truth) / spread, (naive - truth) / spread

    error, naive = errors(metric, "max")
    loss_error, _ = errors("cross_entropy", "min")
    return {
        "error": _rms(error),
        "error_over_naive": _rms_ratio(error, naive),
        "cross_entropy_error": _rms(loss_error),
        "metric_range": Measure(value=float(np.ptp(cells[metric].to_numpy()))),
    }


def _fitted(cells: Cells, options: Mapping[str, Any]) -> pd.Series:
    """Which cells the law may see."""
    sizes = np.sort(cells["n_non_embedding"].unique())
    seen = sizes[: len(sizes) - options["held_out_largest_sizes"]]
    return ~cells["p"].isin(options["held_out_weights"]) & cells["n_non_embedding"].isin(seen)


def _law(
    cells: Cells,
    form: Form,
    n: str,
    pair: str,
    claim: Claim,
    column: str = "cross_entropy",
    direction: Literal["min", "max"] = "min",
) -> FractionFit:
    fit = fit_fraction(
        cells,
        form=form,
        n=n,
        loss=column,
        direction=direction,
        ceiling=CEILINGS.get(column),
        errors=errors_of(claim),
    )
    if not fit.identified:
        raise NotIdentified(f"{form} for {pair}: {fit.reason}")
    return fit


def _predicted(
    seen: Cells,
    held: Cells,
    form: Form,
    n: str,
    pair: str,
    claim: Claim,
    column: str = "cross_entropy",
    direction: Literal["min", "max"] = "min",
) -> Array:
    law = _law(seen, form, n, pair, claim, column, direction)
    return np.asarray(law.predict(held["p"], held[n]))


def nearest_seen(seen: Cells, held: Cells, column: str, n: str = "n_non_embedding") -> Array:
    """No law: the value at the nearest weight seen, and there at the nearest size."""
    found = []
    for cell in _rows(held):
        distance = (seen["p"] - cell["p"]).abs()
        near = seen[distance <= distance.min() + 1e-9]
        apart = np.abs(np.log(near[n] / cell[n]))
        found.append(near.loc[apart <= apart.min() + 1e-9, column].mean())
    return np.array(found)


def _rows(cells: Cells) -> list[dict[str, Any]]:
    return [dict(zip(cells.columns, row, strict=True)) for row in cells.itertuples(index=False)]


def _relative(predicted: Array, truth: Array) -> Array:
    return predicted / truth - 1


def _resampled(rows: int) -> NDArray[np.intp]:
    return np.random.default_rng(0).integers(rows, size=(DRAWS, rows))


def _rms(error: Array) -> Measure:
    """Root mean square, its interval by resampling."""
    low, high = quantiles(np.sqrt((error[_resampled(len(error))] ** 2).mean(1)))
    return Measure(value=float(np.sqrt((error**2).mean())), low=low, high=high)


def _rms_ratio(error: Array, other: Array) -> Measure:
    """Ratio of two root mean squares over the same cells, its interval by resampling them."""
    pick = _resampled(len(error))
    low, high = quantiles(np.sqrt((error[pick] ** 2).mean(1)) / np.sqrt((other[pick] ** 2).mean(1)))
    return Measure(value=_rms(error).value / _rms(other).value, low=low, high=high)


def _r2(predicted: Array, truth: Array) -> Measure:
    total = ((truth - truth.mean()) ** 2).sum()
    return Measure(value=float(1 - ((truth - predicted) ** 2).sum() / total))
