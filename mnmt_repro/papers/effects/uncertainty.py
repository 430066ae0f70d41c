"""How sure the laws are: noise, repeats, and laws compared.

Tables of several cohorts are of their grids (`grids.read_all`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    AdditiveLaw,
    error_summary,
    fit_additive_law,
    fit_fraction,
    leave_one_weight_out,
)
from mnmt_repro.laws.fit_result import LawFit, r_squared
from mnmt_repro.laws.fraction import Form
from mnmt_repro.laws.selection import Reading, pooled_aicc
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.fractions import FORMS
from mnmt_repro.papers.effects.grids import LossGrid
from mnmt_repro.papers.effects.noise import between_seeds, pooled_sd
from mnmt_repro.results.repeats import compare

KEY = ["run_id", "pair", "test_set", "domain"]
ONE_THREAD = ", 1 thread(s)"  # what every run of the mini tier has


@framed(
    *("run", "cohort", "size", "starts from", "stored on", "again on", "begins", "ends", "row"),
    "reproduced",
)
def repeats_table(
    rows: pd.DataFrame,
    stored: Iterable[Mapping[str, Any]],
    repeats: Iterable[Mapping[str, Any]],
) -> Rows:
    """What came of training stored runs again, a row a repeat.

    Parameters
    ----------
    rows
        From `results.load`; says which cohort a run belongs to.
    stored, repeats
        From `results.load_runs` and `results.load_repeats`.

    Returns
    -------
    DataFrame
        Run, the first cohort that declares it, size, what it `starts from`, processor of the stored
        run and of the repeat, and differences as fractions of the stored: `begins` at the first
        point of the learning curve, `ends` in the mean test loss, `row` where a test set differs
        most.

    Raises
    ------
    InputError
        When the run that was trained again is not stored.
    """
    kept = {content["run"]["run_id"]: content for content in stored}
    cohorts = rows.drop_duplicates("run_id").set_index("run_id")["cohort"]
    for again in repeats:
        first = kept.get(again["run"]["run_id"])
        if first is None:
            raise InputError(
                f"there is a repeat of run {again['run']['run_id']}, which is not stored"
            )
        run, outcome = first["run"], compare(first, again)
        verdict = "identical" if outcome.identical else "yes" if outcome.reproduced else "no"
        yield {
            "run": run["run_id"],
            "cohort": cohort_name(cohorts.get(run["run_id"], "")),
            "size": run["size"],
            "starts from": "an old model" if run["config"].get("upgrade") else "scratch",
            "stored on": run["hardware"].removesuffix(ONE_THREAD),
            "again on": again["run"]["hardware"].removesuffix(ONE_THREAD),
            "begins": outcome.beginning,
            "ends": outcome.mean,
            "row": outcome.largest,
            "reproduced": verdict,
        }


def noise_of_repeats(rows: pd.DataFrame, repeats: Iterable[Mapping[str, Any]]) -> tuple[float, int]:
    """Standard deviation of a run's loss, relative, from stored runs that were trained again.

    Two runs that begin alike and differ in rounding lie apart by the noise of both: the root mean
    square of the differences of log losses, over the square root of two. It is a lower bound on
    the noise between seeds, which draw other weights and batches besides.

    Parameters
    ----------
    rows
        From `results.load`, of one test set and domain.

    Returns
    -------
    The deviation, NaN where no run of `rows` was trained again with another outcome, and on how
    many losses it rests.
    """
    records = [
        {"run_id": again["run"]["run_id"]} | {k: row[k] for k in (*KEY[1:], "cross_entropy")}
        for again in repeats
        for row in again["rows"]
    ]
    if not records:
        return float("nan"), 0
    own = rows[rows["p"] > 0].drop_duplicates(KEY)
    both = own.merge(pd.DataFrame(records), on=KEY, suffixes=("", "_again"))
    apart = np.log(both["cross_entropy_again"] / both["cross_entropy"])
    apart = apart[apart != 0]
    deviation = float(np.sqrt(np.mean(apart**2) / 2)) if len(apart) else float("nan")
    return deviation, len(apart)


PERTURBATION = 0.01  # of each loss: the paper's footnote 5
ADDITIVE = "size and text"


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
            alone, joint = grid.fits[str(pair)]
            laws = {
                "Eq. 6": _compared([*alone.values()]),
                "Eq. 7": _compared([joint]),
                **{f"Eq. 11 with {FORMS[form]}": _fraction_law(rows, form, of) for form in FORMS},
                ADDITIVE: _law_of_text(rows, log=grid.errors == "relative"),
            }
            table = pd.DataFrame([{"law": name, **of_law} for name, of_law in laws.items()])
            table["ΔAICc"] = table["aicc"] - table["aicc"].min()
            yield table.assign(
                label=grid.row_label(str(pair)), cohort=grid.name, pair=pair_name(str(pair))
            )


def _fraction_law(rows: pd.DataFrame, form: Form, of: Reading) -> dict[str, float]:
    fit = fit_fraction(rows, form=form, **of)
    return _compared([fit], error_summary(leave_one_weight_out(rows, form, **of))["rmse"])


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
    return _compared([fit(rows)], float(np.sqrt(np.mean(known**2))) if len(known) else float("nan"))


def _compared(fits: Sequence[LawFit], weight_out: float = float("nan")) -> dict[str, float]:
    """How well a law of all rows, or laws of the rows of each weight, describe a pair."""
    loss = np.concatenate([fit.loss for fit in fits])
    weights = np.concatenate([fit.weights for fit in fits])
    return {
        "parameters": sum(len(fit.names) for fit in fits),
        "R²": r_squared(loss, sum(fit.rss for fit in fits), weights),
        "aicc": pooled_aicc(fits),
        "error on a weight": weight_out,
    }
