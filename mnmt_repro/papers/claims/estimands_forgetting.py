"""Estimands of what training changes in old weights: claims B12, B14 and B21 of Paper B.

They read analyses of stored runs (`mnmt_repro.results.analyses`). Each function is pure: evidence,
claim and setting in; measures out. What they read is told in ``data/claims/paper_b.yml``.
"""

from __future__ import annotations

import pandas as pd

from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.effects import forgetting
from mnmt_repro.papers.effects.intervals import Measure, NoRowsYet
from mnmt_repro.papers.effects.variants import VariantAt


def embeddings_substituted(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B12: how much less the old model loses by embeddings trained with scaled rates."""
    options = claim.options
    old = VariantAt(options["old_cohort"], options["old_model"], 1.0)
    units: Units = {}
    for model in options["models"]:
        variants = [
            VariantAt(setting.cohorts[0], f"{model}, {rates}", options["share"])
            for rates in (options["scaled"], options["unscaled"])
        ]
        found = forgetting.analysed_together(
            evidence.analyses, setting.tier, "substituted", *variants
        )
        drops = [rows.groupby("pair")["value"].mean() for rows in found]
        both = pd.concat(drops, axis=1, keys=["scaled", "unscaled"]).dropna()
        if len(both) < (wanted := options["needs"]["directions"]):
            raise NoRowsYet(f"{variants[0]}: {len(both)} of {wanted} directions are substituted")
        units[model] = forgetting.relief(both, resources(evidence, setting, old))
    return units


def blocks_moved(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B14: distance from the old matrix with scaled rates over that without, by block."""
    options = claim.options
    variants = [
        VariantAt(setting.cohorts[0], options[name], options["share"])
        for name in ("scaled", "unscaled")
    ]
    found = forgetting.analysed_together(evidence.analyses, setting.tier, "moved", *variants)
    change = forgetting.log_change(*map(forgetting.weight_distances, found, variants))
    return {
        "all": {
            "old_change": forgetting.t_mean(change["old"].to_numpy()),
            "new_change": forgetting.t_mean(change["new"].to_numpy()),
            "old_share": Measure(value=float((change["old"] < 0).mean())),
            "new_share": Measure(value=float((change["new"] > 0).mean())),
            "layers": Measure(value=len(change)),
        }
    }


def halves_apart(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B21: distance between the two halves in the last decoder layers over that elsewhere."""
    options = claim.options
    variant = VariantAt(setting.cohorts[0], options["model"], options["share"])
    rows = forgetting.analysed(evidence.analyses, setting.tier, variant, "moved")
    between = forgetting.weight_distances(rows, variant)["between"]
    return {"all": forgetting.last_layers_apart(between, options["last"])}


def resources(evidence: Evidence, setting: Setting, variant: VariantAt) -> pd.Series:
    """Sampling weight of each direction of a variant: how large its text is."""
    frame = evidence.frame
    if "variant" in frame:
        rows = evidence.rows(setting, [variant.cohort])
        rows = rows[rows["variant"] == variant.name]
        if not rows.empty:
            return rows.groupby("pair")["p"].mean()
    raise NoRowsYet(f"{variant}: no rows, which tell each direction's share of the training text")
