"""How sure the laws are: noise, standard deviations of coefficients, and which law to prefer.

Each table is of the grids of several cohorts (`grids.read_all`), and has a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    AdditiveLaw,
    compare_per_weight_joint,
    error_summary,
    fit_additive_law,
    fit_fraction,
    fit_joint_law,
    fit_per_weight_laws,
    leave_one_weight_out,
)
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import Form
from mnmt_repro.laws.selection import Reading, pooled_aicc
from mnmt_repro.laws.uncertainty import Method
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.fractions import FORMS
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.grids import LossGrid
from mnmt_repro.papers.effects.noise import between_seeds, pooled_sd
from mnmt_repro.papers.effects.repeats import noise_of_repeats

PERTURBATION = 0.01  # of each loss: the paper's footnote 5
METHODS: dict[str, Method] = {
    "1 % noise": "perturbation",
    "residuals": "residual",
    "standard error": "t",
    "seeds": "seeds",
}
ADDITIVE = "size and text"
_SYMBOLS = {"alpha": "α", "l_inf": "L∞"}


@framed()
def noise_levels(grids: Mapping[str, LossGrid], repeats: Sequence[Mapping[str, Any]] = ()) -> Rows:
    """Relative noise of the losses: what footnote 5 assumes, laws leave, seeds and repeats show.

    Parameters
    ----------
    repeats
        From `results.load_repeats`: stored runs that were trained again.

    Returns
    -------
    DataFrame
        ``label, cohort, pair, footnote 5, left by Eq. 6, left by Eq. 7, trained again, repeats,
        between seeds, cells with seeds``; standard deviations as fractions of the loss (of the
        mean loss, where laws minimise absolute errors), of the laws corrected for their
        parameters, of the seeds pooled over cells, of the repeats by `noise_of_repeats`. NaN where
        no run was trained again, or no cell has two seeds.
    """
    for grid in grids.values():
        for pair, (alone, joint) in grid.fits.items():
            points = grid.points[grid.points["pair"] == pair]
            scale = 1.0 if grid.errors == "relative" else float(points["loss"].mean())
            own = grid.rows[grid.rows["pair"] == pair]
            spread, cells = between_seeds(own, "p", grid.n)
            again, count = noise_of_repeats(own, repeats)
            yield {
                "label": grid.row_label(pair),
                "cohort": grid.name,
                "pair": pair_name(pair),
                "footnote 5": PERTURBATION,
                "left by Eq. 6": pooled_sd(alone.values()) / scale,
                "left by Eq. 7": pooled_sd([joint]) / scale,
                "trained again": again,
                "repeats": count,
                "between seeds": spread,
                "cells with seeds": cells,
            }


@framed()
def coefficient_errors(grids: Mapping[str, LossGrid], *, draws: int = 2000) -> Rows:
    """Standard deviations of α and L∞ by the paper's method and by three others.

    Parameters
    ----------
    draws
        Of the refits: to losses with 1 % noise (footnote 5), with resampled residuals, and with
        resampled seeds.

    Returns
    -------
    DataFrame
        ``label, cohort, pair, law, coefficient, value``, then a column a method of `METHODS`. A law
        is Eq. 6 at one weight, or the joint law. NaN where the rows give a method nothing to go by;
        at a bound the value does not move and has no standard error.
    """
    for grid in grids.values():
        for pair, (alone, joint) in grid.fits.items():
            own = grid.rows[grid.rows["pair"] == pair]
            single, together = {}, None
            if between_seeds(own, "p", grid.n)[1]:  # seeds are rows of their own to this bootstrap
                single = fit_per_weight_laws(own, n=grid.n, errors=grid.errors)
                together = fit_joint_law(own, n=grid.n, errors=grid.errors)
            laws: list[tuple[str, LawFit, LawFit | None]] = [
                (f"Eq. 6, p = {p:g}", law, single.get(p)) for p, law in alone.items()
            ]
            for name, law, with_seeds in [*laws, ("Eq. 7", joint, together)]:
                errors = {
                    title: _deviations(with_seeds if method == "seeds" else law, method, draws)
                    for title, method in METHODS.items()
                }
                for key, symbol in _SYMBOLS.items():
                    row: dict[str, Any] = {
                        "label": f"{grid.row_label(pair).rpartition(': ')[2]}, {name}",
                        "cohort": grid.name,
                        "pair": pair_name(pair),
                        "law": name,
                        "coefficient": symbol,
                        "value": law.params[key],
                    }
                    yield row | {title: found[key] for title, found in errors.items()}


def _deviations(law: LawFit | None, method: Method, draws: int) -> dict[str, float]:
    nothing = dict.fromkeys(_SYMBOLS, float("nan"))
    if law is None or not law.identified:
        return nothing
    if method == "t":
        return law.stderr
    try:
        return law.draws(method, draws=draws).spread()
    except InputError:  # no residuals, or no two seeds
        return nothing


@framed(*("label", "cohort", "pair", "law", "parameters", "R²", "ΔAICc", "error on a weight"))
def law_comparison(grids: Mapping[str, LossGrid]) -> Rows:
    """Which law describes and predicts best: Paper A's, or one to which the weight adds a term.

    Beside separate laws, the joint one and Eq. 11 in two forms stands the additive law
    E + A N^-α + B D^-β, D being the target tokens of the pair that a run has seen (ours). At one
    budget D is the weight by another name; what differs from Paper A is that it does not scale N.

    Returns
    -------
    DataFrame
        ``label, cohort, pair, law, parameters, R², ΔAICc, error on a weight``.
        AICc is pooled over all rows of a pair, without parameters that a bound holds, and given
        less the least of these laws; errors are root mean squares in nats per token over weights
        left out of the fit one at a time.
        Eq. 6 and 7 cannot predict a weight that they were not fitted to.
    """
    for grid in grids.values():
        cell = ["pair", "p", grid.n]
        seen = grid.rows.groupby(cell)["pair_target_tokens"].mean().rename_axis(["pair", "p", "n"])
        for pair, rows in grid.points.join(seen, on=["pair", "p", "n"]).groupby("pair"):
            of: Reading = {"n": "n", "loss": "loss", "errors": grid.errors}
            table = compare_per_weight_joint(rows, **of)
            table = table.rename(index={"per_weight": "Eq. 6", "joint": "Eq. 7"})
            table["error on a weight"] = np.nan
            for form, title in FORMS.items():
                table.loc[f"Eq. 11 with {title}"] = _fraction_law(rows, form, of)
            table.loc[ADDITIVE] = _law_of_text(rows, log=grid.errors == "relative")
            table = table.reset_index(names="law").rename(columns={"r2": "R²"})
            table["ΔAICc"] = table["aicc"] - table["aicc"].min()
            yield table.assign(
                label=grid.row_label(str(pair)),
                cohort=grid.name,
                pair=pair_name(str(pair)),
                parameters=table["parameters"].astype(int),
            )


def best_laws(laws: pd.DataFrame, column: str) -> str:
    """Which law is lowest in a column of `law_comparison`, and in how many cases."""
    known = laws.dropna(subset=[column])  # a small grid does not identify every law
    best = known.loc[known.groupby("label")[column].idxmin(), "law"].value_counts()
    said = ", ".join(f"{law} in {count}" for law, count in best.items())
    return f"{said} of {best.sum()} cases" if said else "no law is identified"


def _fraction_law(rows: pd.DataFrame, form: Form, of: Reading) -> dict[str, float]:
    fit = fit_fraction(rows, form=form, **of)
    return _compared(fit, error_summary(leave_one_weight_out(rows, form, **of))["rmse"])


def _law_of_text(rows: pd.DataFrame, log: bool) -> dict[str, float]:
    """The law of size and of the pair's own text; errors of the log loss are relative ones."""

    def fit(some: pd.DataFrame) -> LawFit[AdditiveLaw]:
        return fit_additive_law(some["n"], some["pair_target_tokens"], some["loss"], log_loss=log)

    errors = [
        fit(rows.drop(out.index)).predict(out["n"], out["pair_target_tokens"]) - out["loss"]
        for _, out in rows.groupby("p")
    ]
    known = np.concatenate(errors)
    known = known[np.isfinite(known)]  # none where no weight can be left out
    return _compared(fit(rows), float(np.sqrt(np.mean(known**2))) if len(known) else float("nan"))


def _compared(fit: LawFit, weight_out: float) -> dict[str, float]:
    found = {"parameters": len(fit.names), "r2": fit.r2, "aicc": pooled_aicc([fit])}
    return found | {"error on a weight": weight_out}
