"""Estimands of the upgrade as a whole: claims B1, B2, B3, B13 and B20 of Paper B.

B3 is about the deeper model, which has no run with a decay; so it is judged by its gap.

Pure functions: evidence, claim and setting in; for each model its named measures out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.cohorts.languages25 import groups_of
from mnmt_repro.papers.cohorts.settled_upgrades import EARLY, ONCE, TWICE
from mnmt_repro.papers.effects import updates_saved as saved
from mnmt_repro.papers.effects.intervals import Measure, Measures, NoRowsYet
from mnmt_repro.papers.effects.variants import (
    Variants,
    functional,
    gain,
    gap_shares,
    p_value,
)


def updates_saved(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B1, B2, B13, B20: how many times fewer updates an upgrade needs than from scratch."""
    rows = evidence.rows(setting)
    if rows.empty:
        raise NoRowsYet(f"no rows of {setting.name}")
    scores = rows.pivot_table(
        index=["variant", "seed", "updates_share"], columns="pair", values="cross_entropy"
    )
    means = scores.reindex(columns=list(groups_of("Mt25")["all"])).dropna().mean(axis=1)
    losses = means.unstack("updates_share")
    found: Units = {}
    for new, old in claim.options["upgrades"].items():
        upgrade, baseline = (
            losses[losses.index.get_level_values("variant") == name].dropna(axis=1, how="all")
            for name in (new, old)
        )
        twice = [TWICE] if TWICE in baseline else []  # earlier grids have none
        baseline = baseline.reindex(columns=[EARLY, ONCE, *twice])
        for name, seeds in ((new, upgrade), (old, baseline)):
            if seeds.dropna().empty:
                raise NoRowsYet(f"{setting.name}: no seed of {name} has all of its budgets")
        arms = saved.arm(upgrade, 0), saved.arm(baseline, 1)
        found[new] = saved.updates_saved(*arms, claim.options.get("closed", 1.0))
    return found


def upgrade_against_scratch(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B3: upgraded models against those trained from scratch, after one share of the updates."""
    variants = evidence.variants(setting, claim.options)
    return {
        upgraded: _upgrade(variants, claim.options, upgraded, baseline)
        for upgraded, baseline in claim.options["upgrades"].items()
    }


def _upgrade(
    variants: Variants, options: Mapping[str, Any], upgraded: str, baseline: str
) -> Measures:
    model = variants.variant(upgraded, options["share"])
    full, early = (variants.variant(baseline, share) for share in (1.0, options["early"]))
    groups = groups_of("Mt25")
    found: Measures = {}
    for group, pairs in groups.items():
        treated, control, start = variants.samples(pairs, model, full, early)
        if group == "all":
            found |= {
                "gain": gain(treated, control),
                "p_value": p_value(treated, control),
                **gap_shares(treated, control, start),
            }
        else:
            name = group.replace(" ", "_")
            found[f"gain_{name}"] = gain(treated, control)
            found[f"closed_{name}"] = gap_shares(treated, control, start)["closed"]
    for metric in ("chrfpp", "spbleu"):  # NaN where not decoded
        ratio = score = Measure(value=float("nan"))
        try:
            treated, control = variants.samples(groups["all"], model, full, metric=metric)
        except NoRowsYet:
            pass
        else:
            ratio = functional(lambda t, c: t / c, treated, control)
            score = Measure(value=control.value)
        found |= {f"{metric}_ratio": ratio, f"{metric}_baseline": score}
    return found
