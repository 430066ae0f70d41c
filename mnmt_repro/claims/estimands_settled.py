"""Estimands of the settled tier: what claims say where cells have read enough text of their own.

A cell is *in regime* if its pair has read at least so many tokens per parameter. Here f(p, N) is
the share of N at which a single pair, trained for as many tokens, has the same loss. It is read
with log loss linear in log N between neighbouring single-pair sizes, and not outside them.

Each function is pure: evidence, claim and scope in; for each pair its named measures out, or under
``"all"`` those of all pairs together.
"""

from __future__ import annotations

import numpy as np

from mnmt_repro.analysis.cells import Cells
from mnmt_repro.analysis.drift import shift
from mnmt_repro.analysis.fraction_draws import pooled_slope
from mnmt_repro.analysis.intervals import (
    Measure,
    NoRowsYet,
    NotIdentified,
    OutOfRegime,
    common_draws,
    measured,
)
from mnmt_repro.analysis.noise import drawn, require
from mnmt_repro.claims.estimands_law import joint_law
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.laws import fit_joint_law
from mnmt_repro.laws.checks import Array

_FEWEST_SIZES = 3
"""Sizes on which a change with size must rest."""


def capacity_by_interpolation(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A11, A12, A13: f over p at a small weight, at the largest size in regime for all pairs.

    The geometric mean over pairs is judged. Every cell of that weight is told beside it.
    """
    p = claim.options["weight"]
    cells, log_f = _interpolated(evidence, claim, scope)
    n, log_capacity = cells[scope.n], log_f - np.log(p)
    everywhere = cells["in_regime"].groupby(n).sum() == cells["pair"].nunique()
    if not everywhere.any():
        raise OutOfRegime(_too_little(cells, claim, scope))
    chosen = n == everywhere.index[everywhere].max()
    if np.isnan(log_f[0, chosen]).any():
        raise NotIdentified(f"{scope.name}: a loss lies outside those of single pairs")
    units: Units = {"all": {"capacity": _measured(np.exp(log_capacity[:, chosen].mean(1)))}}
    for k, cell in enumerate(cells.to_dict("records")):
        units[f"{cell['pair']}, N = {cell[scope.n]:,}"] = {
            "capacity": _measured(np.exp(log_capacity[:, k])),
            "fraction": _measured(np.exp(log_f[:, k])),
            "own_tokens_per_parameter": Measure(value=cell["own_tokens"]),
        }
    return units


def fraction_slope_by_interpolation(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A7: slope of log f on log N over sizes in regime, with an intercept for each pair."""
    cells, log_f = _interpolated(evidence, claim, scope)
    if not cells["in_regime"].any():
        raise OutOfRegime(_too_little(cells, claim, scope))
    used = cells["in_regime"].to_numpy() & np.isfinite(log_f[0])
    sizes = cells.loc[used, scope.n]
    if sizes.nunique() < _FEWEST_SIZES:
        raise OutOfRegime(f"{scope.name}: {sizes.nunique()} of {_FEWEST_SIZES} sizes can be read")
    log_n, pairs = np.log(sizes.to_numpy(dtype=float)), cells.loc[used, "pair"].to_numpy()
    slope = _measured(pooled_slope(log_n, log_f[:, used], pairs))
    return {"all": {"slope": slope, "cells": Measure(value=int(used.sum()))}}


def exponent_shift_in_regime(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A3: shift of alpha from p = 1 to p = 0.05, of a law fitted to the cells in regime."""
    units: Units = {}
    for pair, every in evidence.grid(claim, scope, weights=(0.05, 1)).items():
        cells = _with_regime(every, claim)
        kept = cells[cells["in_regime"]].reset_index(drop=True)
        if not len(kept):
            raise OutOfRegime(_too_little(cells, claim, scope))
        sizes = int((kept["p"] == 0.05).sum())
        if sizes < _FEWEST_SIZES:
            raise OutOfRegime(f"{pair}: {sizes} of {_FEWEST_SIZES} sizes at p = 0.05 in regime")
        fit = joint_law(kept, claim, scope, pair)
        units[pair] = {"shift": shift(fit, "alpha", drawn(kept))}
    return units


def nearer_with_text(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A19: how much nearer the law the largest model of a small weight comes with twice the text.

    The scope has a cohort at the whole budget, and the same one at half of it. The noise of both is
    common: the draws pick the same seeds.
    """
    whole, half = (evidence.grid(claim, scope, cohort) for cohort in scope.cohorts)
    pairs = sorted(set(whole) & set(half))
    if not pairs:
        raise NoRowsYet(f"{scope.name}: no pair has both budgets")
    after, before = (
        np.mean(
            common_draws(
                *(_distance(grid[pair], scope, pair, seed) for seed, pair in enumerate(pairs))
            ),
            axis=0,
        )
        for grid in (whole, half)
    )
    after, before = common_draws(after, before)
    return {
        "all": {
            "nearer": measured(before - after),
            "distance_half": measured(before),
            "distance_whole": measured(after),
        }
    }


def _distance(cells: Cells, scope: Scope, pair: str, seed: int) -> Array:
    """Log loss of the largest size at the smallest weight over the others' law there, (1 + B,)."""
    n, p = cells[scope.n], cells["p"]
    last = ((p == p.min()) & (n == n[p == p.min()].max())).to_numpy()
    fit = fit_joint_law(cells[~last], n=scope.n, errors="relative")
    require(fit, f"joint law of {pair}")
    losses = drawn(cells, seed)
    law = fit.curve(fit.refit(losses[:, ~last]), fit.rows_at(p[last], n[last]))
    return np.asarray(np.log(losses[:, last] / law)[:, 0])


def _with_regime(cells: Cells, claim: Claim) -> Cells:
    """With ``own_tokens``, tokens of the pair per parameter, and whether they are enough."""
    own = cells["pair_target_tokens"] / cells["n_non_embedding"]
    return cells.assign(own_tokens=own, in_regime=own >= claim.options["least_own_tokens"])


def _too_little(cells: Cells, claim: Claim, scope: Scope) -> str:
    most, least = cells["own_tokens"].max(), claim.options["least_own_tokens"]
    return (
        f"{scope.name}: no cell in regime; a pair has read at most {most:.3g} tokens per "
        f"parameter, not {least:g}"
    )


def _interpolated(evidence: Evidence, claim: Claim, scope: Scope) -> tuple[Cells, Array]:
    """Cells of the small weight, and log f (1 + B, m) of each; NaN where it cannot be read."""
    mixed, alone = (evidence.cells(scope, scope.cohorts[k]) for k in (0, -1))
    losses = drawn(mixed)
    single = losses if scope.cohorts[0] == scope.cohorts[-1] else drawn(alone, seed=1)
    small = mixed["p"] == claim.options["weight"]
    if not small.any():
        raise NoRowsYet(f"{scope.cohorts[0]}: no cells at p = {claim.options['weight']:g}")
    log_loss, log_single = (np.log(each) for each in common_draws(losses, single))
    cells = _with_regime(mixed[small].reset_index(drop=True), claim)
    log_f = np.full((len(log_loss), len(cells)), np.nan)
    for pair, rows in cells.groupby("pair").indices.items():
        curve = alone[(alone["pair"] == pair) & (alone["p"] == 1)].sort_values(scope.n)
        if curve.empty:
            raise NoRowsYet(f"{scope.cohorts[-1]}: no single-pair model of {pair}")
        sizes = np.log(curve[scope.n].to_numpy(dtype=float))
        # Noise may make a larger single-pair model worse. The curve is then level.
        falling = np.minimum.accumulate(log_single[:, curve.index], axis=1)
        wanted = log_loss[:, np.flatnonzero(small)[rows]]
        for k, (mine, of_single) in enumerate(zip(wanted, falling, strict=True)):
            log_f[k, rows] = np.interp(-mine, -of_single, sizes, left=np.nan, right=np.nan)
    return cells, log_f - np.log(cells[scope.n].to_numpy(dtype=float))


def _measured(values: Array) -> Measure:
    """As `measured`, without an interval where more than a tenth of the draws cannot be read."""
    try:
        return measured(values)
    except NotIdentified:
        return Measure(value=float(values[0]))
