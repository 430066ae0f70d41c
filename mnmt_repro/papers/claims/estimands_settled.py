"""Estimands of the settled tier: what claims say where cells have read enough text of their own.

A cell is *in regime* if its pair has read at least so many tokens per parameter. Here f(p, N) is
the share of N at which a single pair, trained for as many tokens, has the same loss. It is read
with log loss linear in log N between neighbouring single-pair sizes, and not outside them.

Each function is pure: evidence, claim and setting in; for each pair its named measures out, or
under ``"all"`` those of all pairs together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_repro.laws import fit_joint_law
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.claims.estimands_law import joint_law
from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.effects.cells import Cells, common_cells, in_regime, own_tokens
from mnmt_repro.papers.effects.drift import shift
from mnmt_repro.papers.effects.fraction_draws import pooled_slope
from mnmt_repro.papers.effects.intervals import (
    Measure,
    NoRowsYet,
    NotIdentified,
    OutOfRegime,
    common_draws,
    measured,
)
from mnmt_repro.papers.effects.noise import drawn, require

_FEWEST_SIZES = 3
"""Sizes on which a change with size must rest."""


def capacity_by_interpolation(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A11, A12, A13: f over p at a small weight, at the largest size in regime for all pairs.

    The geometric mean over pairs is judged. Every cell of that weight is told beside it.
    """
    cells, log_f = _interpolated(evidence, claim, setting)
    n, log_capacity = cells[setting.n], log_f - np.log(claim.options["weight"])
    kept = in_regime(cells, claim.options, setting.name)
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


def fraction_slope_by_interpolation(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A7: slope of log f on log N over sizes in regime, with an intercept for each pair."""
    cells, log_f = _interpolated(evidence, claim, setting)
    in_regime(cells, claim.options, setting.name)
    enough = own_tokens(cells) >= claim.options["least_own_tokens"]
    used = (enough & np.isfinite(log_f[0])).to_numpy()
    sizes, pairs = cells.loc[used, setting.n], cells.loc[used, "pair"].to_numpy()
    _require_sizes(sizes, f"{setting.name}: sizes in regime that can be read")
    slope = _measured(pooled_slope(np.log(sizes.to_numpy()), log_f[:, used], pairs))
    return {"all": {"slope": slope, "cells": Measure(value=int(used.sum()))}}


def exponent_shift_in_regime(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A3: shift of alpha from p = 1 to p = 0.05, of a law fitted to the cells in regime."""
    units: Units = {}
    weight = claim.options["weight"]
    for pair, cells in _cells(evidence, setting).groupby("pair"):
        if not {weight, 1.0} <= set(cells["p"]):
            raise NoRowsYet(f"{setting.name}, {pair}: needs p = {weight:g} and p = 1")
        kept = in_regime(cells, claim.options, f"{setting.name}, {pair}")
        sizes = kept.loc[kept["p"] == weight, setting.n]
        _require_sizes(sizes, f"{setting.name}, {pair}: sizes in regime at p = {weight:g}")
        fit = joint_law(kept, claim, setting, str(pair))
        units[str(pair)] = {"shift": shift(fit, "alpha", drawn(kept))}
    return units


def nearer_with_text(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A19: how much nearer the law the largest model of a small weight comes with twice the text.

    The setting has a cohort at the whole budget, and the same one at half of it. The noise of both
    is common: the draws pick the same seeds.
    """
    whole, half = (
        {str(pair): cells for pair, cells in evidence.cells(setting, cohort).groupby("pair")}
        for cohort in setting.cohorts
    )
    found = []
    for seed, pair in enumerate(sorted(set(whole) & set(half))):
        both = common_cells([whole[pair], half[pair]])
        found.append(_distances(both, claim, setting, pair, seed))
    if not found:
        raise NoRowsYet(f"{setting.name}: no pair has both budgets")
    after, before = (np.mean(common_draws(*each), axis=0) for each in zip(*found, strict=True))
    return {
        "all": {
            "nearer": measured(before - after),
            "distance_half": measured(before),
            "distance_whole": measured(after),
        }
    }


def _distances(
    budgets: Sequence[Cells], claim: Claim, setting: Setting, pair: str, seed: int
) -> list[Array]:
    """Log of the loss of the largest model of the small weight over the others' law, (1 + B,).

    Of each budget, the whole one first.
    """
    whole, weight = budgets[0], claim.options["weight"]
    small = whole.loc[whole["p"] == weight, setting.n]
    if small.empty:
        raise NoRowsYet(f"{setting.name}, {pair}: no cells at p = {weight:g}")
    last = ((whole["p"] == weight) & (whole[setting.n] == small.max())).to_numpy()
    in_regime(whole[last], claim.options, f"{setting.name}, {pair}")
    found = []
    for cells in budgets:
        fit = fit_joint_law(cells[~last], n=setting.n, errors="relative")
        require(fit, f"joint law of {pair}")
        losses, at = drawn(cells, seed), cells[last]
        law = fit.law.curve(fit.refit(losses[:, ~last]), fit.law.rows_at(at["p"], at[setting.n]))
        found.append(np.log(losses[:, last] / law)[:, 0])
    return common_draws(*found)


def _cells(evidence: Evidence, setting: Setting) -> Cells:
    """Mixtures of the first cohort, and single pairs of the last."""
    mixed, alone = (evidence.cells(setting, setting.cohorts[k]) for k in (0, -1))
    parts = [mixed[mixed["p"] < 1], alone[alone["p"] == 1]]
    return pd.concat(parts, ignore_index=True)


def _interpolated(evidence: Evidence, claim: Claim, setting: Setting) -> tuple[Cells, Array]:
    """Cells of the small weight, and log f (1 + B, m) of each; NaN where it cannot be read."""
    every, weight = _cells(evidence, setting), claim.options["weight"]
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
