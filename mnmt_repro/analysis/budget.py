"""The same runs, longer: how much of a law's failure is due to under-training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_repro.analysis.cells import mean_losses
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.cohorts.catalogue import get_cohort
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.errors import InputError
from mnmt_repro.laws import direct_slopes, effective_fraction_direct, fit_per_weight_laws

CELL = ["pair", "p", "n_non_embedding"]


def is_complete(rows: pd.DataFrame, cohort: str) -> bool:
    """Whether every run that a cohort declares is among the rows."""
    declared = {run.config_hash for run in get_cohort(cohort).runs()}
    return declared <= set(rows["config_hash"])


def common_rows(rows: pd.DataFrame, cohorts: Sequence[str]) -> pd.DataFrame:
    """Rows of the cells (pair, weight, size) that every cohort has, with each one's budget.

    Parameters
    ----------
    rows
        From `results.load`, of one test set and domain.
    cohorts
        The same grid at several budgets.

    Returns
    -------
    DataFrame
        `rows` with the column `budget`, in target tokens of all pairs; zero-shot rows (p = 0) are
        left out.

    Raises
    ------
    InputError
        When the cohorts have no cell in common.
    """
    kept = rows[(rows["p"] > 0) & rows["cohort"].isin(cohorts)]
    found = kept.groupby(CELL)["cohort"].transform("nunique")
    kept = kept[found == len(set(cohorts))]
    if kept.empty:
        raise InputError(f"no pair, weight and size is in all of {', '.join(cohorts)}")
    budgets = {name: get_cohort(name).corpus.training.planned_tokens for name in cohorts}
    return kept.assign(budget=kept["cohort"].map(budgets))


def cells_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean loss over seeds of each cell: ``budget, pair, p, n, loss, passes``.

    Parameters
    ----------
    rows
        From `common_rows`.
    """
    return mean_losses(rows, "budget", "pair", "p", passes=("passes", "max"))


@framed(by=["pair", "p", "budget"])
def laws_by_budget(cells: pd.DataFrame) -> Rows:
    """Each weight's own law (Eq. 6) and how its effective fraction moves with size.

    Parameters
    ----------
    cells
        From `cells_of`.

    Returns
    -------
    DataFrame
        ``pair, p, budget, alpha, l_inf, at_bound`` (is L∞ held at zero?), ``r2, slope, low, high,
        rows``: the slope of log f on log N by the direct estimator with its 95 % interval, which is
        zero where the fraction does not depend on size, and over how many sizes; NaN at p = 1, and
        with fewer than three sizes at which the single pair's law need not be extrapolated.
    """
    for (pair, budget), group in cells.groupby(["pair", "budget"]):
        laws = fit_per_weight_laws(group, n="n", loss="loss")
        mixed = group[group["p"] < 1]
        slopes = direct_slopes(laws[1.0], mixed, n="n", loss="loss").set_index("p")
        for p, law in laws.items():
            tilt = dict(slopes.loc[p]) if p in slopes.index else {}
            yield {
                "pair": pair,
                "p": p,
                "budget": budget,
                "alpha": law.alpha,
                "l_inf": law.params["l_inf"],
                "at_bound": "l_inf" in law.held,
                "r2": law.r2,
                **{name: tilt.get(name, np.nan) for name in ("slope", "low", "high", "rows")},
            }


@framed("pair", "p", "n", "budget", "f", "f_low", "f_high")
def fractions_by_budget(cells: pd.DataFrame) -> Rows:
    """Direct effective fraction (Eq. 8) of every cell with p < 1, each against its own budget.

    Losses outside those that the single-pair law of the same budget was fitted to are left out.

    Returns
    -------
    DataFrame
        ``pair, p, n, budget, f, f_low, f_high``.
    """
    for (pair, _), group in cells.groupby(["pair", "budget"]):
        single = fit_per_weight_laws(group, n="n", loss="loss")[1.0]
        found = effective_fraction_direct(single, group[group["p"] < 1], n="n", loss="loss")
        yield found[~found["extrapolated"]].assign(pair=str(pair), budget=group["budget"].iloc[0])


def budget_laws(table: pd.DataFrame) -> pd.DataFrame:
    """`laws_by_budget` under the names that a page uses."""
    names = {
        "alpha": "α",
        "l_inf": "L∞",
        "at_bound": "L∞ at its bound",
        "r2": "R²",
        "slope": "slope of log f",
        "rows": "sizes",
    }
    return table.assign(pair=table["pair"].map(pair_name)).rename(columns=names)


@framed()
def changes(table: pd.DataFrame) -> Rows:
    """What the longest budget changed against the shortest, a row per pair.

    Parameters
    ----------
    table
        From `laws_by_budget`.

    Returns
    -------
    DataFrame
        ``pair``; of both budgets, the ``spread`` of α over the weights, how many weights have L∞
        ``at_bound``, and the mean ``slope`` of log f over the weights that have one at both.
    """
    ends = [table["budget"].min(), table["budget"].max()]
    for pair, group in table.groupby("pair"):
        known = group.dropna(subset=["slope"]).groupby("p")["budget"].agg(set)
        both = [p for p, budgets in known.items() if budgets >= set(ends)]
        row: dict[str, object] = {"pair": pair_name(str(pair))}
        for when, budget in zip(("before", "after"), ends, strict=True):
            at = group[group["budget"] == budget]
            row[f"spread_{when}"] = at["alpha"].max() - at["alpha"].min()
            row[f"at_bound_{when}"] = int(at["at_bound"].sum())
            row[f"slope_{when}"] = at.loc[at["p"].isin(both), "slope"].mean()
        yield row
