"""Estimands of the upgrade as a whole: claims B1, B2, B3, B13 and B20 of Paper B.

Pure functions: evidence, claim and setting in; for each model its named measures out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnmt_repro.analysis.intervals import Measure, Measures, NoRowsYet
from mnmt_repro.analysis.variants import (
    Variants,
    functional,
    gain,
    gap_shares,
    p_value,
)
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.schema import Claim, Setting
from mnmt_repro.cohorts.languages25 import groups_of


def upgrade_against_scratch(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B1, B2, B3, B13, B20: upgraded models against those trained from scratch."""
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
