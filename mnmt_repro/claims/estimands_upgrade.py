"""Estimands of the upgrade as a whole: claims B1, B2, B3, B13 and B20 of Paper B.

Pure functions: evidence, claim and scope in; for each model its named measures out. What they read
is told in ``data/claims/paper_b.yml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mnmt_repro.claims.evidence import Evidence, Measure, Measures, NoRowsYet, Units
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.claims.paired import (
    Sample,
    Variant,
    functional,
    gain,
    gain_power,
    lower_by,
    p_value,
    study_of,
)
from mnmt_repro.cohorts.languages25 import groups_of

MARGIN = 1.0
"""Per cent of a loss: the effect that `power` is about, and the least gap that has shares."""


def upgrade_against_scratch(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B1, B2, B3, B13, B20: upgraded models against those trained from scratch."""
    return {
        upgraded: _upgrade(evidence, scope, claim.options, upgraded, baseline)
        for upgraded, baseline in claim.options["upgrades"].items()
    }


def _upgrade(
    evidence: Evidence, scope: Scope, options: Mapping[str, Any], upgraded: str, baseline: str
) -> Measures:
    cohort = scope.cohorts[0]
    model = Variant(cohort, upgraded, options["share"])
    full = Variant(cohort, baseline, 1.0)
    early = Variant(cohort, baseline, options["early"])
    groups = groups_of("Mt25")
    found: Measures = {}
    for group, pairs in groups.items():
        study = study_of(evidence, scope, options, pairs)
        treated, control, start = study.samples(model, full, early)
        if group == "all":
            found |= {
                "gain": gain(treated, control),
                "p_value": p_value(treated, control),
                "power": gain_power(treated, control, MARGIN),
                **shares(treated, control, start),
            }
        else:
            name = group.replace(" ", "_")
            found[f"gain_{name}"] = gain(treated, control)
            found[f"closed_{name}"] = shares(treated, control, start)["closed"]
    for metric in ("chrfpp", "spbleu"):
        found |= _quality(evidence, scope, options, metric, model, full, groups["all"])
    return found


def shares(treated: Sample, control: Sample, start: Sample) -> Measures:
    """Share of the gap between the early and the full baseline that is closed, and what remains.

    Beside them the gap, in per cent of the early loss, and the baseline's perplexity over the
    treated model's. Both shares are NaN where the gap is not above `MARGIN` per cent with its whole
    interval above zero.
    """
    gap = functional(lower_by, start, control)
    perplexity = functional(lambda t, c: np.exp(c - t), treated, control)
    closed = remaining = Measure(value=float("nan"))
    if gap.value >= MARGIN and gap.low > 0:
        closed = functional(lambda t, c, s: (s - t) / (s - c), treated, control, start)
        remaining = functional(lambda t, c, s: (t - c) / (s - c), treated, control, start)
    return {"gap": gap, "closed": closed, "remaining": remaining, "perplexity_ratio": perplexity}


def _quality(
    evidence: Evidence,
    scope: Scope,
    options: Mapping[str, Any],
    metric: str,
    model: Variant,
    full: Variant,
    pairs: tuple[str, ...],
) -> Measures:
    """Mean score of the baseline, and the upgraded model's share of it; NaN where not decoded."""
    study = study_of(evidence, scope, options, pairs, metric)
    ratio = baseline = Measure(value=float("nan"))
    try:
        treated, control = study.samples(model, full)
    except NoRowsYet:
        pass
    else:
        ratio = functional(lambda t, c: t / c, treated, control)
        baseline = Measure(value=control.value)
    return {f"{metric}_ratio": ratio, f"{metric}_baseline": baseline}
