"""How many times fewer updates an upgrade needs than the model from scratch: the factor saved.

The factor is the baseline's budget over the share of updates at which the upgrade's curve reaches
the baseline's loss. A second account adds the updates of the old model to that share. The curve is
linear in log updates between neighbouring budgets, and is not read outside them. An upgrade that
reaches the loss before its first budget has the largest factor there is ("more than"), and one that
never does the smallest ("less than").

Losses are means over directions, which are fixed. Seeds of the two arms are resampled apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.cohorts.languages25 import directions_of
from mnmt_repro.papers.cohorts.settled_upgrades import EARLY, ONCE, TWICE
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    DRAWS,
    Measure,
    Measures,
    NoRowsYet,
    common_draws,
    measured,
)

OLD_UPDATES = 1.0
"""Updates of the old model, as a share of the baseline's."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Losses by rising share of updates (1 + B, K): means over seeds, then their draws."""

    shares: Array
    losses: Array


def arm(losses: pd.DataFrame, number: int) -> Arm:
    """Draw seeds with replacement, with residuals widened by √(n / (n − 1)); one seed has no draws.

    `losses` has a row a seed and a column a share; seeds that lack a share are left out. Arms of
    different `number` have different draws.
    """
    values = losses.dropna().to_numpy(float)
    n, drawn = len(values), values.mean(0, keepdims=True)
    if n > 1:
        picks = np.random.default_rng([1, number]).integers(n, size=(DRAWS, n))
        wider = (values - drawn) * np.sqrt(n / (n - 1))
        drawn = np.concatenate([drawn, drawn + wider[picks].mean(1)])
    return Arm(shares=losses.columns.to_numpy(float), losses=drawn)


def share_reached(curve: Arm, target: Array) -> Array:
    """Share at which each curve is first at or below its target (B,), within the curve's ends.

    >>> curve = Arm(shares=np.array([0.1, 1.0]), losses=np.array([[4.0, 3.0]]))
    >>> [round(float(share_reached(curve, np.array([x]))[0]), 3) for x in (4.1, 3.5, 2.9)]
    [0.1, 0.316, 1.0]
    """
    shares, losses = curve.shares, curve.losses
    reached = np.full(len(target), shares[-1])
    for k in range(len(shares) - 2, -1, -1):
        above, below = losses[:, k], losses[:, k + 1]
        crosses = (above > target) & (below <= target)
        part = (above - target)[crosses] / (above - below)[crosses]
        reached[crosses] = shares[k] * (shares[k + 1] / shares[k]) ** part
    reached[losses[:, 0] <= target] = shares[0]
    return reached


def pace(rows: pd.DataFrame) -> pd.Series[float]:
    """Seconds a target token of each model's fastest run: other work only adds time."""
    return (rows["wall_seconds"] / rows["target_tokens"]).groupby(rows["variant"]).min()


def factors_saved(
    upgrade: Arm, baseline: Arm, closed: float = 1.0, old: float = OLD_UPDATES
) -> Measures:
    """The factor at all of the baseline's updates and at twice as many; NaN where not trained.

    The loss to reach closes this share of the gap between the baseline's early loss and its last.
    The old model took `old` of what the baseline took: of its updates, or of its hours.

    Returns
    -------
    ``factor, factor_with_old, censored`` (share of draws at an end of the curve), the same with
    ``_at_two``, and ``baseline_fall``: per cent of loss from once to twice the updates.
    """
    curves, scratch = common_draws(upgrade.losses, baseline.losses)
    curve = Arm(shares=upgrade.shares, losses=curves)
    at = dict(zip(baseline.shares.tolist(), scratch.T, strict=True))
    unknown = Measure(value=np.nan)
    measures: Measures = {"baseline_fall": unknown}
    for budget, suffix in ((ONCE, ""), (TWICE, "_at_two")):
        names = [f"{name}{suffix}" for name in ("factor", "factor_with_old", "censored")]
        if budget not in at:
            return measures | dict.fromkeys(names, unknown)
        target = at[budget] if closed == 1 else at[EARLY] - closed * (at[EARLY] - at[budget])
        share = share_reached(curve, target)
        ends = np.isin(share, curve.shares[[0, -1]])[-DRAWS:]
        factors = (measured(budget / (share + more)) for more in (0.0, old))
        measures |= dict(zip(names, (*factors, Measure(value=float(ends.mean()))), strict=True))
    return measures | {"baseline_fall": measured(100 * (1 - at[TWICE] / at[ONCE]))}


def updates_saved(evidence: Evidence, setting: Setting) -> Units:
    """B1, B2, B3, B13, B20: how many times fewer updates an upgrade needs than from scratch."""
    rows = evidence.rows(setting)
    if rows.empty:
        raise NoRowsYet(f"no rows of {setting.name}")
    scores = rows.pivot_table(
        index=["variant", "seed", "updates_share"], columns="pair", values="cross_entropy"
    )
    means = scores.reindex(columns=list(directions_of("all"))).dropna().mean(axis=1)
    losses = means.unstack("updates_share")
    units: Units = {}
    for new, old in setting.options["upgrades"].items():
        upgrade, baseline = (
            losses[losses.index.get_level_values("variant") == name].dropna(axis=1, how="all")
            for name in (new, old)
        )
        twice = [TWICE] if TWICE in baseline else []  # earlier grids have none
        baseline = baseline.reindex(columns=[EARLY, ONCE, *twice])
        for name, seeds in ((new, upgrade), (old, baseline)):
            if seeds.dropna().empty:
                raise NoRowsYet(f"{setting.name}: no seed of {name} has all of its budgets")
        arms = arm(upgrade, 0), arm(baseline, 1)
        units[new] = factors_saved(*arms, setting.options.get("closed", 1.0))
    return units
