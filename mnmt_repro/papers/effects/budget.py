"""The same runs, longer: how much of a law's failure is due to under-training.

Other suspects are text that a pair was not shown (`split_gap`, `predicted_by_text`), tables that N
leaves out, and the mix of domains (`other_causes`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    direct_slopes,
    effective_fraction_direct,
    fit_additive_law,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.cells import mean_losses
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.scaling import observed

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


TEXT_PARTS = {"text": "the text it was not shown", "equal": "at equal text"}


def split_gap(curves: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """How far every cell with 0 < p < 1 is behind the single pair, before and after as much text.

    A mixture shows a pair only part of the budget. So its loss above that of the single-pair model
    of the same size is taken apart at the point where that model had read as much of the pair:

        L(p, N) - L(1, N)  =  [L(p, N) - L(1, N; the same text)]       at equal text
                            + [L(1, N; the same text) - L(1, N)]       text

    The parts bound the causes and are not the causes: at equal text the mixture has taken 1/p times
    the updates. So the first is the least that sharing the model can cost, and the second the most
    that can be due to text not shown. Losses are those of validation, since a single-pair model's
    is known at points of its training.

    The single-pair model's loss is interpolated along the logarithm of its tokens; cells that saw
    less text than its first point are left out, and so are those without one of their size.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.
    rows
        From `results.load`, of the same runs: how many target tokens of each pair they saw.

    Returns
    -------
    DataFrame
        ``pair, p, n, tokens`` (of the pair), ``loss``; ``gap`` (nats above the single-pair model)
        and its parts ``equal`` and ``text``.
    """
    seen = rows.drop_duplicates(["run_id", "pair"]).set_index(["run_id", "pair"])
    last = curves.sort_values("step").groupby(["run_id", "pair"], as_index=False).last()
    single = {
        (pair, n): group.groupby("target_tokens")["cross_entropy"].mean()
        for (pair, n), group in curves[curves["p"] == 1].groupby(["pair", "n_non_embedding"])
    }
    found = []
    for cell in last[(last["p"] > 0) & (last["p"] < 1)].to_dict("records"):
        alone = single.get((cell["pair"], cell["n_non_embedding"]))
        tokens = float(seen.loc[(cell["run_id"], cell["pair"]), "pair_target_tokens"])
        if alone is None or tokens < alone.index[0]:
            continue
        loss, end = cell["cross_entropy"], alone.iloc[-1]
        same_text = float(np.interp(np.log(tokens), np.log(alone.index), alone))
        key = (cell["pair"], cell["p"], cell["n_non_embedding"])
        found.append((*key, tokens, loss, loss - end, loss - same_text, same_text - end))
    columns = ["pair", "p", "n", "tokens", "loss", "gap", "equal", "text"]
    return pd.DataFrame(found, columns=columns).groupby(columns[:3], as_index=False).mean()


@framed()
def predicted_by_text(short: pd.DataFrame, longer: pd.DataFrame) -> Rows:
    """What a law of size and text, fitted to one budget, predicts of another one.

    If the weight acted by the text that it shows and by nothing else, then twice the budget at the
    same weight would be worth as much as twice the weight at the same budget.

    Parameters
    ----------
    short, longer
        From `results.load`: all runs of a grid at one budget, and runs of the same cells at a
        larger one.

    Returns
    -------
    DataFrame
        ``pair, p, n``, ``observed`` and ``predicted``: by how many nats the longer run is lower.
    """
    for pair, rows in short[short["p"] > 0].groupby("pair"):
        law = fit_additive_law(
            rows["n_non_embedding"], rows["pair_target_tokens"], rows["cross_entropy"]
        )
        both = rows.merge(longer[longer["pair"] == pair], on=CELL, suffixes=("", "_longer"))
        size, text = both["n_non_embedding"], "pair_target_tokens"
        yield both[CELL[:2]].assign(
            n=size,
            observed=both["cross_entropy"] - both["cross_entropy_longer"],
            predicted=law.predict(size, both[text]) - law.predict(size, both[f"{text}_longer"]),
        )


def common_domain(rows: pd.DataFrame) -> str:
    """The domain that is largest where it is smallest, over the pairs of the rows.

    Raises
    ------
    ValueError
        When no domain has text of all pairs.
    """
    parts = rows[(rows["domain"] != "all") & (rows["test_set"] == "indomain")]
    tokens = parts.pivot_table(index="domain", columns="pair", values="test_tokens", aggfunc="max")
    return str(tokens.dropna().min(axis=1).idxmax())


@framed(by=["pair"])
def other_causes(rows: pd.DataFrame) -> Rows:
    """The laws of a grid as they are, with the tables counted in N, and of one domain alone.

    Parameters
    ----------
    rows
        From `results.load`, of one grid, all its domains.

    Returns
    -------
    DataFrame
        A row a pair and setting: ``pair, fitted to``; ``α alone`` and ``α, least weight``, of the
        single pair's own law (Eq. 6) and of the smallest weight's, and the ``spread of α``, largest
        less smallest; at how many weights ``L∞ at bound`` is; ``slope of log f`` on log N, the mean
        of what the direct estimator gives over the weights that have one in every setting, and how
        many these ``weights`` are; ``R²`` of the joint law (Eq. 7); ``test tokens`` of the pair.
    """
    domain = common_domain(rows)
    own = rows[rows["test_set"] == "indomain"]
    whole = own[own["domain"] == "all"]
    settings = {
        "as above": ("all", observed(whole)),
        "N with the tables": ("all", observed(whole, "n_total")),
        f"{domain} alone": (domain, observed(own[own["domain"] == domain])),
    }
    tokens = own.groupby(["domain", "pair"])["test_tokens"].max()
    laws = {name: laws_by_budget(points.assign(budget=0)) for name, (_, points) in settings.items()}
    sloped = pd.concat([each.dropna(subset=["slope"]) for each in laws.values()])
    times = sloped.groupby(["pair", "p"]).size()
    in_all = set(times[times == len(laws)].index)
    for name, (text, points) in settings.items():
        for pair, group in laws[name].groupby("pair"):
            common = pd.Series([(pair, p) in in_all for p in group["p"]], index=group.index)
            mine = points[points["pair"] == pair]
            alpha = group.set_index("p")["alpha"]
            yield {
                "pair": pair_name(str(pair)),
                "fitted to": name,
                "α alone": alpha[1.0],
                "α, least weight": alpha[alpha.index.min()],
                "spread of α": alpha.max() - alpha.min(),
                "L∞ at bound": f"{int(group['at_bound'].sum())} of {len(group)}",
                "slope of log f": group.loc[common, "slope"].mean(),
                "weights": int(common.sum()),
                "test tokens": int(tokens[text, pair]),
                "R²": fit_joint_law(mine, n="n", loss="loss").r2,
            }
