"""From a claim and the rows of one scope to the verdict of its rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mnmt_repro.analysis.intervals import Measure, Measures, NoRowsYet, NotIdentified
from mnmt_repro.claims import estimands_ablation as single
from mnmt_repro.claims import estimands_forgetting as forgetting
from mnmt_repro.claims import estimands_fraction as fraction
from mnmt_repro.claims import estimands_law as law
from mnmt_repro.claims import estimands_metric as metric
from mnmt_repro.claims import estimands_prediction as prediction
from mnmt_repro.claims import estimands_upgrade as upgrade
from mnmt_repro.claims import schema
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.errors import InputError

Estimand = Callable[[Evidence, schema.Claim, schema.Scope], Units]

ESTIMANDS: dict[str, Estimand] = {
    function.__name__: function
    for function in (
        law.parameter_counts_agree,
        law.per_weight_fit,
        law.exponent_unchanged,
        law.irreducible_loss_unchanged,
        law.factor_rises,
        law.joint_law_suffices,
        law.fraction_slope,
        fraction.fraction_contrast,
        fraction.fraction_trend,
        fraction.neutral_fraction,
        fraction.relative_capacity,
        prediction.held_out_prediction,
        prediction.held_out_forms,
        prediction.metric_frontier,
        prediction.three_pairs_from_two,
        prediction.convergence_correction,
        metric.metric_linear,
        upgrade.upgrade_against_scratch,
        single.ablation,
        single.directions_learned,
        forgetting.embeddings_substituted,
        forgetting.blocks_moved,
        forgetting.halves_apart,
    )
}
"""Every function that a claims file may name."""

# A claim is about all its pairs, so the first of these that a pair has is the scope's verdict.
_WORST_FIRST = ("not reproduced", "inconclusive", "direction only", "reproduced")
_GOOD = _WORST_FIRST[2:]


def decide(rule: tuple[schema.RuleStep, ...], measures: Measures) -> tuple[str, str]:
    """Apply a rule: the verdict of the first step whose conditions all hold, and a reason.

    The reason names the conditions of a better verdict that were not met, each with what was found,
    and those that decided. A measure that is NaN where a step asks for it makes the claim
    inconclusive: no comparison with it may pass for a negative.

    Raises
    ------
    KeyError
        When the rule names a measure that is not there.
    """
    asked: list[str] = []
    for step in rule:
        found = [(test, getattr(measures[test.measure], test.of)) for test in step.when]
        unmet: list[str] = []
        for condition, value in found:
            if math.isnan(value):
                if not unmet:
                    what = f"{condition.measure} ({condition.of})"
                    return "inconclusive", f"{what} cannot be computed"
            elif not schema.OPERATORS[condition.op](value, condition.value):
                unmet.append(_told(condition, value))
        if not unmet:
            decided = " and ".join(_told(condition, value) for condition, value in found)
            by = decided and f"{step.verdict} by {decided}"
            reason = "; ".join(filter(None, [*asked, by]))
            return step.verdict, "" if step.verdict == "reproduced" else reason
        if step.verdict in _GOOD:
            asked.append(f"{step.verdict} asks for {' and '.join(unmet)}")
    raise AssertionError("the last step of a rule has no conditions")


def _told(condition: schema.Condition, found: float) -> str:
    """A condition and what was found, with as many digits as it takes to see which way it went."""
    met = schema.OPERATORS[condition.op](found, condition.value)
    texts = [f"{found:.{digits}g}" for digits in (3, 4, 5, 6, 17)]
    shown = next(
        t for t in texts if schema.OPERATORS[condition.op](float(t), condition.value) == met
    )
    return f"{condition} (found {shown})"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the rows of one scope give: the fields of `ScopeVerdict` that do not ask of git."""

    verdict: str
    unit: str = ""
    units: Mapping[str, Measures] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def judge(claim: schema.Claim, scope: schema.Scope, evidence: Evidence) -> Outcome:
    """Apply a claim's rule to what its estimand measures in one scope.

    Raises
    ------
    InputError
        As `evaluate`.
    """
    if claim.function not in ESTIMANDS:
        raise InputError(f"claim {claim.id}: estimand.function {claim.function} does not exist")
    claim = claim.in_scope(scope)
    try:
        units = ESTIMANDS[claim.function](evidence, claim, scope)
    except NoRowsYet as missing:
        if claim.out_of_reach:
            return Outcome(verdict=schema.OUT_OF_REACH, reason=claim.out_of_reach)
        return Outcome(verdict=schema.NO_ROWS, reason=str(missing))
    except NotIdentified as reason:
        return Outcome(verdict="inconclusive", reason=str(reason))
    try:
        if claim.cells:
            return _of_table(claim, units)
        decided = {unit: decide(claim.rule, measures) for unit, measures in units.items()}
    except KeyError as missing:
        raise InputError(
            f"claim {claim.id}: rule: {claim.function} measures no {missing}"
        ) from missing
    unit = min(
        decided,
        key=lambda unit: (_WORST_FIRST.index(decided[unit][0]), -_severity(claim, units[unit])),
    )
    return Outcome(
        verdict=decided[unit][0],
        reason=decided[unit][1],
        unit=unit,
        units=units,
        verdicts={unit: name for unit, (name, _) in decided.items()},
    )


def _severity(claim: schema.Claim, measures: Measures) -> float:
    """How bad the headline measure is, by what the rule asks of it for "reproduced".

    Of pairs with one verdict the worst speaks for them. Zero where the rule asks nothing of it.
    """
    asked = {
        condition.op[0]
        for step in claim.rule
        if step.verdict == "reproduced"
        for condition in step.when
        if condition.measure == claim.headline and condition.op != "=="
    }
    value = measures[claim.headline].value if claim.headline in measures else math.nan
    if math.isnan(value) or not asked:
        return 0.0
    return abs(value) if len(asked) > 1 else value if asked == {"<"} else -value


def _of_table(claim: schema.Claim, units: Units) -> Outcome:
    """Judge each published cell by the rule of cells, and the claim by its own on their counts."""
    decided = {
        unit: decide(claim.cells, measures) for unit, measures in units.items() if unit != "all"
    }
    names = [name for name, _ in decided.values()]
    share = {name: names.count(name) / len(names) for name in schema.VERDICTS}
    counts = {
        "cells_reproduced": share["reproduced"],
        "cells_agreeing": share["reproduced"] + share["direction only"],
        "cells_inconclusive": share["inconclusive"],
        "cells_against": share["not reproduced"],
    }
    whole = units["all"] | {name: Measure(value=value) for name, value in counts.items()}
    name, reason = decide(claim.rule, whole)
    return Outcome(
        verdict=name,
        reason=reason,
        unit="all",
        units=units | {"all": whole},
        verdicts={"all": name} | {unit: name for unit, (name, _) in decided.items()},
    )
