"""Did the runs settle? Tokens a parameter, longer runs, and effects in regime (A3, A7, A11 to A13).

A cell is *in regime* if its pair has read at least so many tokens per parameter. Here f(p, N) is
the share of N at which a single pair, trained for as many tokens, has the same loss. It is read
with log loss linear in log N between neighbouring single-pair sizes, and not outside them.

Other suspects are text that a pair was not shown (`split_gap`, `predicted_by_text`), tables that N
leaves out, and the mix of domains (`other_causes`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    direct_slopes,
    effective_fraction_direct,
    fit_additive_law,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.cells import (
    Cells,
    Rows,
    common_cells,
    framed,
    in_regime,
    mean_losses,
    own_tokens,
)
from mnmt_repro.papers.effects.convergence import PAPER_BATCH, PAPER_STEPS
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.fractions import pooled_slope
from mnmt_repro.papers.effects.noise import (
    Measure,
    NoRowsYet,
    NotIdentified,
    OutOfRegime,
    common_draws,
    drawn,
    measured,
    require,
)
from mnmt_repro.papers.effects.scaling import joint_law, observed, shift

_FEWEST_SIZES = 3
"""Sizes on which a change with size must rest."""


def capacity_by_interpolation(evidence: Evidence, setting: Setting) -> Units:
    """A11, A12, A13: f over p at a small weight, at the largest size in regime for all pairs.

    The geometric mean over pairs is judged. Every cell of that weight is told beside it.
    """
    cells, log_f = _interpolated(evidence, setting)
    n, log_capacity = cells[setting.n], log_f - np.log(setting.options["weight"])
    kept = in_regime(cells, setting.options, setting.name)
    pairs = kept.groupby(setting.n)["pair"].nunique()
    everywhere = pairs.index[pairs == cells["pair"].nunique()]
    if everywhere.empty:
        raise OutOfRegime(f"{setting.name}: no size is in regime for all pairs")
    chosen = n == everywhere.max()
    if np.isnan(log_f[0, chosen]).any():
        raise NotIdentified(f"{setting.name}: a loss lies outside those of single pairs")
    units: Units = {"all": {"capacity": _measured(np.exp(log_capacity[:, chosen].mean(1)))}}
    for k, (pair, size, own) in enumerate(zip(cells["pair"], n, own_tokens(cells), strict=True)):
        units[f"{pair}, N = {size:,}"] = {
            "capacity": _measured(np.exp(log_capacity[:, k])),
            "fraction": _measured(np.exp(log_f[:, k])),
            "own_tokens_per_parameter": Measure(value=own),
        }
    return units


def fraction_slope_by_interpolation(evidence: Evidence, setting: Setting) -> Units:
    """A7: slope of log f on log N over sizes in regime, with an intercept for each pair."""
    cells, log_f = _interpolated(evidence, setting)
    in_regime(cells, setting.options, setting.name)
    enough = own_tokens(cells) >= setting.options["least_own_tokens"]
    used = (enough & np.isfinite(log_f[0])).to_numpy()
    sizes, pairs = cells.loc[used, setting.n], cells.loc[used, "pair"].to_numpy()
    _require_sizes(sizes, f"{setting.name}: sizes in regime that can be read")
    slope = _measured(pooled_slope(np.log(sizes.to_numpy()), log_f[:, used], pairs))
    return {"all": {"slope": slope, "cells": Measure(value=int(used.sum()))}}


def exponent_shift_in_regime(evidence: Evidence, setting: Setting) -> Units:
    """A3: shift of alpha from p = 1 to p = 0.05, of a law fitted to the cells in regime."""
    units: Units = {}
    weight = setting.options["weight"]
    for pair, cells in _cells(evidence, setting).groupby("pair"):
        if not {weight, 1.0} <= set(cells["p"]):
            raise NoRowsYet(f"{setting.name}, {pair}: needs p = {weight:g} and p = 1")
        kept = in_regime(cells, setting.options, f"{setting.name}, {pair}")
        sizes = kept.loc[kept["p"] == weight, setting.n]
        _require_sizes(sizes, f"{setting.name}, {pair}: sizes in regime at p = {weight:g}")
        fit = joint_law(kept, setting, str(pair))
        units[str(pair)] = {"shift": shift(fit, "alpha", drawn(kept))}
    return units


def nearer_with_text(evidence: Evidence, setting: Setting) -> Units:
    """A19: how much nearer the law the largest model of a small weight comes with twice the text.

    The setting has a cohort at the whole budget, and the same one at half of it. The noise of both
    is common: the draws pick the same seeds.
    """
    whole, half = (
        {str(pair): cells for pair, cells in evidence.cells(setting, cohort).groupby("pair")}
        for cohort in setting.cohorts
    )
    distances = []
    for seed, pair in enumerate(sorted(set(whole) & set(half))):
        both = common_cells([whole[pair], half[pair]])
        distances.append(_distances(both, setting, pair, seed))
    if not distances:
        raise NoRowsYet(f"{setting.name}: no pair has both budgets")
    after, before = (np.mean(common_draws(*each), axis=0) for each in zip(*distances, strict=True))
    return {
        "all": {
            "nearer": measured(before - after),
            "distance_half": measured(before),
            "distance_whole": measured(after),
        }
    }


def _distances(budgets: Sequence[Cells], setting: Setting, pair: str, seed: int) -> list[Array]:
    """Log of the loss of the largest model of the small weight over the others' law, (1 + B,).

    Of each budget, the whole one first.
    """
    whole, weight = budgets[0], setting.options["weight"]
    small = whole.loc[whole["p"] == weight, setting.n]
    if small.empty:
        raise NoRowsYet(f"{setting.name}, {pair}: no cells at p = {weight:g}")
    last = ((whole["p"] == weight) & (whole[setting.n] == small.max())).to_numpy()
    in_regime(whole[last], setting.options, f"{setting.name}, {pair}")
    distances = []
    for cells in budgets:
        fit = fit_joint_law(cells[~last], n=setting.n, errors="relative")
        require(fit, f"joint law of {pair}")
        losses, at = drawn(cells, seed), cells[last]
        law = fit.law.curve(fit.refit(losses[:, ~last]), fit.law.rows_at(at["p"], at[setting.n]))
        distances.append(np.log(losses[:, last] / law)[:, 0])
    return common_draws(*distances)


def _cells(evidence: Evidence, setting: Setting) -> Cells:
    """Mixtures of the first cohort, and single pairs of the last."""
    mixed, alone = (evidence.cells(setting, setting.cohorts[k]) for k in (0, -1))
    parts = [mixed[mixed["p"] < 1], alone[alone["p"] == 1]]
    return pd.concat(parts, ignore_index=True)


def _interpolated(evidence: Evidence, setting: Setting) -> tuple[Cells, Array]:
    """Cells of the small weight, and log f (1 + B, m) of each; NaN where it cannot be read."""
    every, weight = _cells(evidence, setting), setting.options["weight"]
    log_loss, log_n = np.log(drawn(every)), np.log(every[setting.n].to_numpy(dtype=float))
    small = np.flatnonzero(every["p"] == weight)
    if not len(small):
        raise NoRowsYet(f"{setting.name}: no cells at p = {weight:g}")
    log_f = np.full((len(log_loss), len(every)), np.nan)
    for pair, cells in every.iloc[small].groupby("pair"):
        alone = every[(every["pair"] == pair) & (every["p"] == 1)].sort_values(setting.n).index
        if alone.empty:
            raise NoRowsYet(f"{setting.name}: no single-pair model of {pair}")
        # Noise may make a larger single-pair model worse. The curve is then level.
        falling = np.minimum.accumulate(log_loss[:, alone], axis=1)
        for draw, (mine, curve) in enumerate(zip(log_loss[:, cells.index], falling, strict=True)):
            at = np.interp(-mine, -curve, log_n[alone], left=np.nan, right=np.nan)
            log_f[draw, cells.index] = at - log_n[cells.index]
    return every.iloc[small].reset_index(drop=True), log_f[:, small]


def _require_sizes(sizes: pd.Series, what: str) -> None:
    """`OutOfRegime` with fewer sizes than a change with size must rest on."""
    if (count := sizes.nunique()) < _FEWEST_SIZES:
        raise OutOfRegime(f"{what}: {count} of {_FEWEST_SIZES}")


def _measured(values: Array) -> Measure:
    """As `measured`, without an interval where more than a tenth of the draws cannot be read."""
    try:
        return measured(values)
    except NotIdentified:
        return Measure(value=float(values[0]))


LAST_POINTS = 4  # of a learning curve, from which its end slope is read


def end_slopes(curves: pd.DataFrame) -> pd.DataFrame:
    """Slope of validation loss on log2(target tokens) at the end of each curve.

    It is what the loss would change by if the run were twice as long and kept its pace: minus 0.1
    means 0.1 nats lower. Read off the last four points by least squares.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.

    Returns
    -------
    DataFrame
        ``run_id, pair, p, size, n_non_embedding, end_slope``.
    """
    keys = ["run_id", "pair", "p", "size", "n_non_embedding"]
    last = curves.sort_values("target_tokens").groupby(keys).tail(LAST_POINTS)
    last = last[keys].assign(x=np.log2(last["target_tokens"]), y=last["cross_entropy"])
    last[["x", "y"]] -= last.groupby(keys)[["x", "y"]].transform("mean")
    sums = (
        last.assign(xy=last["x"] * last["y"], xx=last["x"] ** 2).groupby(keys)[["xy", "xx"]].sum()
    )
    return (sums["xy"] / sums["xx"]).rename("end_slope").reset_index()


def by_size(rows: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """How runs were trained, a row per cohort and size.

    Parameters
    ----------
    rows, curves
        From `results.load` and `results.load_curves`, of the same runs.

    Returns
    -------
    DataFrame
        ``cohort, group`` (real text, generated languages or Paper B), ``size, runs, n, n_total``,
        ``tokens`` (target tokens of a run, median), ``per`` (target tokens per non-embedding
        parameter), ``passes`` (most passes over the text of a pair), ``end_slope`` (median over the
        curves) and ``steepest``.
    """
    keys = ["cohort", "size"]
    table = rows.groupby(keys, as_index=False).agg(
        corpus=("corpus", "first"),
        runs=("run_id", "nunique"),
        n=("n_non_embedding", "first"),
        n_total=("n_total", "first"),
        tokens=("target_tokens", "median"),
        passes=("passes", "max"),
    )
    table["tokens"] = table["tokens"].astype(int)
    table["per"] = table["tokens"] / table["n"]
    ends = pd.concat(
        [end_slopes(part).assign(cohort=cohort) for cohort, part in curves.groupby("cohort")]
    )
    slopes = ends.groupby(keys)["end_slope"].agg(end_slope="median", steepest="min").reset_index()
    table = table.assign(group=table["corpus"].map(_group)).merge(slopes, on=keys)
    columns = ["cohort", "group", "size", "runs", "n", "n_total", "tokens", "per", "passes"]
    table = table[[*columns, "end_slope", "steepest"]]
    return table.sort_values(["cohort", "n"], ignore_index=True)


def half_and_whole(rows: pd.DataFrame, cohort: str) -> pd.DataFrame:
    """Losses of a cohort's runs at half their budget and at all of it.

    Parameters
    ----------
    rows
        From `results.load`, of one test set; the runs of half the budget are those of the cohort
        whose name ends in ``-half``.

    Returns
    -------
    DataFrame
        ``pair, p, n, seed, half, whole`` and ``change`` (as a share of ``half``), a row for each
        cell and seed that both have.
    """
    rows = rows.rename(columns={"n_non_embedding": "n"})
    keys = ["pair", "p", "n", "seed"]
    half, whole = (
        rows[rows["cohort"] == name].set_index(keys)["cross_entropy"].rename(column)
        for name, column in ((f"{cohort}-half", "half"), (cohort, "whole"))
    )
    both = pd.concat([half, whole], axis=1, join="inner").reset_index()
    return both.assign(p=both["p"].round(3), change=both["whole"] / both["half"] - 1)


def _group(corpus: str) -> str:
    """What kind of runs a corpus is for.

    >>> _group("webtech"), _group("conlang-sim0"), _group("conlang-upgrade-sim1")
    ('real text', 'generated languages', 'Paper B')
    """
    if corpus.startswith(("software25", "conlang-upgrade")):
        return "Paper B"
    return "generated languages" if corpus.startswith("conlang") else "real text"


@framed()
def cohort_table(rows: pd.DataFrame) -> Rows:
    """What is stored, a row a cohort; runs of no cohort are left out.

    Parameters
    ----------
    rows
        From `results.load`, of one test set.

    Returns
    -------
    DataFrame
        Cohort, runs, seeds, sizes, and as ranges: N, target tokens, tokens a (non-embedding)
        parameter; the most passes over a pair's text.
    """
    for cohort, group in rows[rows["cohort"] != ""].groupby("cohort"):
        runs = group.drop_duplicates("run_id")
        each = runs["target_tokens"] / runs["n_non_embedding"]
        yield {
            "cohort": cohort_name(str(cohort)),
            "runs": len(runs),
            "seeds": runs["seed"].nunique(),
            "sizes": runs["size"].nunique(),
            "N": _range(runs["n_non_embedding"]),
            "target tokens": _range(runs["target_tokens"]),
            "tokens a parameter": _range(each),
            "most passes": round(float(group["passes"].max()), 2),
        }


def paper_sizes() -> pd.DataFrame:
    """Paper A's eight models: ``n`` and ``per``, target tokens per non-embedding parameter.

    Its models below 500M parameters took half of the steps of the larger ones (section 3.1).
    """
    n = [parameter_counts(size.config)["non_embedding"] for size in PAPER_A]
    steps = [PAPER_STEPS // 2 if each < 500_000_000 else PAPER_STEPS for each in n]
    tokens = np.array(steps) * PAPER_BATCH
    return pd.DataFrame({"n": n, "per": tokens / np.array(n)})


def _range(values: pd.Series) -> str:
    """Write a range in short.

    >>> _range(pd.Series([2488, 115936])), _range(pd.Series([7.0, 7.0]))
    ('2,488 to 116k', '7')
    """
    ends = (_short(float(value)) for value in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends))


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value / 1e3:.3g}k" if value >= 1e4 else f"{value:,.0f}"


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
    cohorts_of_cell = kept.groupby(CELL)["cohort"].transform("nunique")
    kept = kept[cohorts_of_cell == len(set(cohorts))]
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
        solved = effective_fraction_direct(single, group[group["p"] < 1], n="n", loss="loss")
        yield solved[~solved["extrapolated"]].assign(pair=str(pair), budget=group["budget"].iloc[0])


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
    gaps = []
    for cell in last[(last["p"] > 0) & (last["p"] < 1)].to_dict("records"):
        alone = single.get((cell["pair"], cell["n_non_embedding"]))
        tokens = float(seen.loc[(cell["run_id"], cell["pair"]), "pair_target_tokens"])
        if alone is None or tokens < alone.index[0]:
            continue
        loss, end = cell["cross_entropy"], alone.iloc[-1]
        same_text = float(np.interp(np.log(tokens), np.log(alone.index), alone))
        key = (cell["pair"], cell["p"], cell["n_non_embedding"])
        gaps.append((*key, tokens, loss, loss - end, loss - same_text, same_text - end))
    columns = ["pair", "p", "n", "tokens", "loss", "gap", "equal", "text"]
    return pd.DataFrame(gaps, columns=columns).groupby(columns[:3], as_index=False).mean()


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
