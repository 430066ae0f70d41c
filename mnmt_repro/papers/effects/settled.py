"""Did the runs settle? Tokens a parameter, longer runs, and effects in regime (A3, A7, A11 to A13).

A cell is *in regime* if its pair has read at least so many tokens per parameter. Here f(p, N) is
the share of N at which a single pair, trained for as many tokens, has the same loss. It is read
with log loss linear in log N between neighbouring single-pair sizes, and not outside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.laws import extrapolate_curve, fit_joint_law
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.convergence import PAPER_MULTIPLE, SKIP
from mnmt_repro.papers.cohorts.names import cohort_name
from mnmt_repro.papers.effects.cells import (
    Cells,
    Rows,
    cells_of,
    common_cells,
    framed,
    in_regime,
    own_tokens,
)
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
from mnmt_repro.papers.effects.scaling import joint_law, shift

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
    return _mixtures_and_singles(*(evidence.cells(setting, setting.cohorts[k]) for k in (0, -1)))


def _mixtures_and_singles(mixed: Cells, alone: Cells) -> Cells:
    """Cells of two cohorts: the mixtures of the first, and the single pairs of the second."""
    parts = [mixed[mixed["p"] < 1], alone[alone["p"] == 1]]
    return pd.concat(parts, ignore_index=True)


def _interpolated(evidence: Evidence, setting: Setting) -> tuple[Cells, Array]:
    """`interpolated_fraction` of the cells of a setting, at the weight of its options."""
    return interpolated_fraction(_cells(evidence, setting), setting.options["weight"], setting.n)


def interpolated_fraction(
    cells: Cells, weight: float, n: str = "n_non_embedding"
) -> tuple[Cells, Array]:
    """Read f(p, N) at one weight between the losses of single pairs (Eq. 8, without a law).

    Log loss is linear in log N between neighbouring single-pair sizes.

    Parameters
    ----------
    cells
        Of one grid, single pairs (p = 1) among them; with a fresh index.
    weight
        p of the cells whose fraction is read.

    Returns
    -------
    cells of that weight, and log f (1 + B, m) of each
        Of the observed means and of B draws of their noise; NaN outside the losses of single pairs.

    Raises
    ------
    NoRowsYet
        When no cell has the weight, or a pair has no single-pair model.
    """
    log_loss, log_n = np.log(drawn(cells)), np.log(cells[n].to_numpy(dtype=float))
    small = np.flatnonzero(cells["p"] == weight)
    if not len(small):
        raise NoRowsYet(f"no cells at p = {weight:g}")
    log_f = np.full((len(log_loss), len(cells)), np.nan)
    for pair, own in cells.iloc[small].groupby("pair"):
        alone = cells[(cells["pair"] == pair) & (cells["p"] == 1)].sort_values(n).index
        if alone.empty:
            raise NoRowsYet(f"no single-pair model of {pair}")
        # Noise may make a larger single-pair model worse. The curve is then level.
        falling = np.minimum.accumulate(log_loss[:, alone], axis=1)
        for draw, (mine, curve) in enumerate(zip(log_loss[:, own.index], falling, strict=True)):
            at = np.interp(-mine, -curve, log_n[alone], left=np.nan, right=np.nan)
            log_f[draw, own.index] = at - log_n[own.index]
    return cells.iloc[small].reset_index(drop=True), log_f[:, small]


def ways(grid: str) -> dict[str, tuple[str, str]]:
    """Cohorts of the mixtures and of the single pairs, by how a grid of this tier is trained."""
    return {
        "half of the text": (f"{grid}-half", f"{grid}-half"),
        "long runs": (grid, grid),
        "text-matched": (f"{grid}-matched", grid),
        "equal-first": (f"{grid}-equal-first", grid),
    }


@framed()
def fractions_by_way(
    rows: pd.DataFrame, cohorts: Mapping[str, tuple[str, str]], weight: float
) -> Rows:
    """How many times its weight a pair gets of a model, by each way to train that has rows.

    It is the geometric mean of f over p (`interpolated_fraction`) over the pairs of a size. Sizes
    at which some pair is not trained, or cannot be read, are left out. The deficit is what the
    small weight costs: the geometric mean over pairs of the loss over that of a single pair of this
    size and way, less 1.
    Text-matched pairs have read as much as the single pair. So their deficit is the weight's alone.

    Parameters
    ----------
    rows
        From `results.load`, of one test set.
    cohorts
        As of `ways`.

    Returns
    -------
    DataFrame
        ``way, n, times, low, high`` (95 %), ``deficit, deficit_low, deficit_high`` (per cent) and,
        of the pair with the fewest, ``own`` tokens per parameter and ``passes`` over its text.
        The deficit is NaN where a pair has no single-pair model of the size. ``unread`` is the
        share of draws of the noise in which a loss lies outside those of single pairs; where it
        exceeds a tenth, there is no interval.
    """
    for way, names in cohorts.items():
        mixed, alone = (rows[rows["cohort"] == name] for name in names)
        at, single = mixed[mixed["p"].round(9) == weight], alone["p"] == 1
        if at.empty or not single.any():
            continue
        every = _mixtures_and_singles(cells_of(mixed), cells_of(alone))
        cells, log_f = interpolated_fraction(every, weight)
        passes = at.groupby("n_non_embedding")["passes"].max()
        for n, group in cells.groupby("n_non_embedding"):
            times = np.exp(log_f[:, group.index].mean(1)) / weight
            if np.isnan(times[0]) or len(group) < alone.loc[single, "pair"].nunique():
                continue
            of_text = {"own": own_tokens(group).min(), "passes": passes[n]}
            of_text["unread"] = np.isnan(times[1:]).mean() if len(times) > 1 else np.nan
            share, cost = _measured(times), _deficit(every[every["n_non_embedding"] == n], weight)
            values = {"times": share.value, "low": share.low, "high": share.high}
            values |= {"deficit": cost.value, "deficit_low": cost.low, "deficit_high": cost.high}
            yield {"way": way, "n": n} | values | of_text


def _deficit(cells: Cells, weight: float) -> Measure:
    """Per cent by which losses of a weight exceed those of single pairs, of cells of one size."""
    losses = np.log(drawn(cells))
    small, alone = ((cells["p"] == p).to_numpy() for p in (weight, 1.0))
    if [*cells["pair"][small]] != [*cells["pair"][alone]]:
        return Measure(value=np.nan)
    return _measured(100 * np.expm1((losses[:, small] - losses[:, alone]).mean(1)))


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
        Cohort, its name in `sweep`, runs, seeds, sizes, and as ranges: N, target tokens, tokens a
        (non-embedding) parameter; the most passes over a pair's text.
    """
    for cohort, group in rows[rows["cohort"] != ""].groupby("cohort"):
        runs = group.drop_duplicates("run_id")
        yield {
            "cohort": cohort_name(str(cohort)),
            "name": cohort,
            "runs": len(runs),
            "seeds": runs["seed"].nunique(),
            "sizes": runs["size"].nunique(),
            "N": _range(runs["n_non_embedding"]),
            "target tokens": _range(runs["target_tokens"]),
            "tokens a parameter": _range(runs["target_tokens"] / runs["n_non_embedding"]),
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


PAPER_STEPS, PAPER_BATCH = 1_000_000, 500_000
"""Steps that the paper's models above 500M parameters took, and tokens a step (section 3.1)."""


@framed(
    *("run_id", "pair", "p", "size", "n", "multiple"),
    *("reached", "predicted", "end", "missed", "fall"),
)
def backtest(curves: pd.DataFrame, *, multiple: float = PAPER_MULTIPLE, skip: float = SKIP) -> Rows:
    """Cut finished curves at 1 / `multiple` of their length, predict their ends, and compare.

    The cut is the last point of a curve at or before that, so `multiple` is the least that a
    prediction reaches over.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.

    Returns
    -------
    DataFrame
        ``run_id, pair, p, size, n, multiple`` (end over the last step kept), ``reached`` (loss at
        the cut), ``predicted, end, missed`` (predicted less end), ``fall`` (reached less end).
        Curves with fewer than three points before the cut, or that no power law fits, are left out.
    """
    keys = ["run_id", "pair", "p", "size", "n"]
    known = curves[curves["p"] > 0].rename(columns={"n_non_embedding": "n"})
    for key, group in known.groupby(keys):
        whole = group.sort_values("step")
        last = float(whole["step"].iloc[-1])
        early = whole[whole["step"] * multiple <= last]
        if len(early) < 3:
            continue
        over = last / float(early["step"].iloc[-1])
        read = extrapolate_curve(early["step"], early["cross_entropy"], multiple=over, skip=skip)
        if read.law.identified:
            reached, end = (float(each["cross_entropy"].iloc[-1]) for each in (early, whole))
            predicted = reached * read.ratio
            yield (*key, over, reached, predicted, end, predicted - end, reached - end)
