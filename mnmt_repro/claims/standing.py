"""Whether a rule's outcome stands: it must have been able to come out otherwise.

A rule turns measures into a raw verdict. The raw verdict stands only where the runs could decide:

- **Regime.** A claim about converged models needs runs that have converged. Simulation cannot
  replace this.
- **Noise.** *Not reproduced* stands where P(not reproduced | the paper is right) is at most 0.05,
  and *reproduced* where P(reproduced | the alternative) is at most 0.1. *Direction only* stands
  where P(reproduced | the paper is right) is at least 0.8, because the better verdict was
  attainable then. The shares come from `claims.attainability`.
- **Neither.** A rule may say *inconclusive* of runs that could have met it. Then they are precise
  enough, and the effect lies between the two.
- **Extrapolation.** A fraction that no single-pair model reaches is read off the law beyond its
  data, and decides nothing.

All else is *undecided here*. The same test applies to good and to bad outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_repro.claims.attainability import ADMITTED, Attainability
from mnmt_repro.claims.external import EXTERNAL
from mnmt_repro.claims.judging import Outcome
from mnmt_repro.claims.schema import NO_ROWS, OUT_OF_REACH, UNDECIDED, Claim, Scope
from mnmt_repro.cohorts.catalogue import find_cohort

REAL_TEXT, GENERATED, PUBLISHED_NUMBERS = "real text", "generated languages", "published numbers"
EVIDENCE_KINDS = (REAL_TEXT, GENERATED, PUBLISHED_NUMBERS)
"""Kinds of evidence. A claim's headline is the verdict of the first kind that can decide."""

DECIDED = ("reproduced", "direction only", "not reproduced")

REGIME, NOISE, NEITHER = "regime", "noise", "neither"
NOT_SIMULATED, EXTRAPOLATION = "not simulated", "extrapolation"
WHY = {
    REGIME: "these runs stopped too early, and the claim is about fully trained models",
    NOISE: "these runs are too noisy for this rule to tell a right claim from a wrong one",
    NEITHER: "these runs could have met the rule, and they neither meet it nor fail it",
    NOT_SIMULATED: "it is not known how often chance alone would give this outcome",
    EXTRAPOLATION: "no single-pair model has a loss as high as these, so the law is extrapolated",
}
"""Why an outcome does not stand, as a sentence."""

IN_SHORT = {
    REGIME: "runs that stopped too early",
    NOISE: "too much noise",
    NEITHER: "an effect between met and failed",
    NOT_SIMULATED: "no simulation of chance",
    EXTRAPOLATION: "a law beyond its data",
}
"""The same in a few words."""

SAYS = {
    "reproduced": ("for", "the rule is met, and it would rarely be met if the claim were wrong"),
    "direction only": (
        "for",
        "the weaker part of the rule is met, and these runs could have met the stronger part",
    ),
    "not reproduced": (
        "against",
        "the rule fails, and it would rarely fail if the claim were right",
    ),
    OUT_OF_REACH: ("nothing", "what it needs cannot be had here"),
    NO_ROWS: ("nothing", "not all of the runs that it needs are stored yet"),
}
"""What a verdict says of the paper's claim: for, against or nothing, and the reason."""

EXACT = ("parameter_counts_agree",)
"""Estimands without chance, whose outcome always stands."""


def kind_of(scope: Scope) -> str:
    """The kind of evidence that a scope reads.

    Appendix A's own counts (no cohort) and the losses of others' runs are published numbers.
    """
    if not scope.cohorts or scope.tier == EXTERNAL:
        return PUBLISHED_NUMBERS
    run = next(iter(find_cohort(scope.cohorts[0], scope.tier).runs()))
    return REAL_TEXT if run.conlang is None else GENERATED


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A verdict after the test of this module, and why the raw one does not stand, if so."""

    verdict: str
    why: str = ""

    @property
    def says(self) -> str:
        """Whether it speaks *for* the paper's claim, *against* it, or says *nothing* of it."""
        return "nothing" if self.why else SAYS[self.verdict][0]

    @property
    def because(self) -> str:
        """The reason for `says`, as a sentence without a stop."""
        return WHY[self.why] if self.why else SAYS[self.verdict][1]


def settled(claim: Claim, whole: Outcome, half: Outcome | None) -> bool:
    """Whether a claim's headline measure has stopped moving, for every pair, with the budget.

    Parameters
    ----------
    whole, half
        Outcomes of the same runs (with the same seeds) at all of the budget and at half of it; None
        where there are none.
    """
    if claim.converged is None:
        return True
    if half is None or set(half.units) != set(whole.units):
        return False
    name = claim.headline
    return all(
        name in measures
        and name in half.units[unit]
        and abs(measures[name].value - half.units[unit][name].value) < claim.converged
        for unit, measures in whole.units.items()
    )


def extrapolated(claim: Claim, outcome: Outcome) -> bool:
    """Whether a rule gave up because too few sizes lie within the range of the single pair."""
    limits = {
        test.value
        for step in claim.rule
        if step.verdict == "inconclusive"
        for test in step.when
        if test.measure == "interpolated"
    }
    return any(
        measures["interpolated"].value < limit
        for measures in outcome.units.values()
        for limit in limits
    )


def standing(
    raw: str,
    claim: Claim,
    simulated: Attainability | None,
    *,
    converged: bool = True,
    beyond: bool = False,
) -> Standing:
    """Apply the test to the raw verdict of one scope.

    `converged` is as `settled` says, `beyond` as `extrapolated` does.
    """
    if raw in (NO_ROWS, OUT_OF_REACH) or claim.function in EXACT:
        return Standing(verdict=raw)
    if beyond:
        return Standing(verdict=UNDECIDED, why=EXTRAPOLATION)
    if not converged:
        return Standing(verdict=UNDECIDED, why=REGIME)
    if raw == "inconclusive":
        precise = simulated and simulated.attainability >= ADMITTED["attainability"]
        return Standing(verdict=UNDECIDED, why=NEITHER if precise else NOISE)
    if simulated is None:
        return Standing(verdict=UNDECIDED, why=NOT_SIMULATED)
    stands = {
        "reproduced": simulated.false_pass <= ADMITTED["false_pass"],
        "not reproduced": simulated.false_fail <= ADMITTED["false_fail"],
        "direction only": simulated.attainability >= ADMITTED["attainability"],
    }[raw]
    return Standing(verdict=raw) if stands else Standing(verdict=UNDECIDED, why=NOISE)
