"""From a claim and the rows of one setting to an effect and its verdict.

The rule is one sentence: a claim is reproduced if the whole 95 % interval of its effect lies on
the claim's side of the limit, and not reproduced if it lies wholly on the other side. All else is
undecided. A claim without a cell in regime is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.history import Ancestry, History
from mnmt_repro.papers.claims.schema import (
    NOT_REPRODUCED,
    OUT_OF_REACH,
    REPRODUCED,
    UNDECIDED,
    Claim,
)
from mnmt_repro.papers.cohorts.names import span
from mnmt_repro.papers.effects import (
    ablations,
    forgetting,
    fractions,
    prediction,
    quality,
    scaling,
    settled,
    three_pairs,
    updates_saved,
)
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import Measure, Measures, NoRowsYet, NotIdentified, OutOfRegime
from mnmt_repro.papers.effects.public_losses import EXTERNAL

EFFECTS: dict[str, Callable[[Evidence, Setting], Units]] = {
    function.__name__: function
    for function in (
        scaling.per_weight_fit,
        scaling.irreducible_loss_unchanged,
        scaling.factor_rises,
        scaling.joint_law_suffices,
        fractions.fraction_contrast,
        fractions.fraction_trend,
        prediction.held_out_prediction,
        prediction.held_out_forms,
        prediction.metric_frontier,
        three_pairs.three_pairs_from_two,
        settled.capacity_by_interpolation,
        settled.fraction_slope_by_interpolation,
        settled.exponent_shift_in_regime,
        settled.nearer_with_text,
        quality.metric_linear,
        updates_saved.updates_saved,
        ablations.ablation,
        ablations.directions_learned,
        forgetting.embeddings_substituted,
        forgetting.blocks_moved,
        forgetting.halves_apart,
    )
}
"""Every function that a claims file may name."""


def verdict_of(effect: Measure, limit: float | tuple[float, float], side: str) -> str:
    """The verdict of an effect: on which side of its limit the whole interval lies.

    >>> verdict_of(Measure(value=4.2, low=3.5, high=5.0), 3, ">=")
    'reproduced'
    >>> verdict_of(Measure(value=0.3, low=0.15, high=0.5), (-0.1, 0.1), "within")
    'not reproduced'
    >>> verdict_of(Measure(value=4.2), 3, ">=")  # without an interval
    'undecided'
    """
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return UNDECIDED
    least, most = _ends(limit, side)
    if least <= effect.low and effect.high <= most:
        return REPRODUCED
    return NOT_REPRODUCED if effect.high < least or most < effect.low else UNDECIDED


def _ends(limit: float | tuple[float, float], side: str) -> tuple[float, float]:
    """Where a claim says that its effect lies, as the ends of a range."""
    if isinstance(limit, tuple):
        return limit
    return (limit, math.inf) if side == ">=" else (-math.inf, limit)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the rows of one setting give.

    Attributes
    ----------
    effect
        NaN where there is none; `why` says why.
    part
        The pair or model that the effect is of; ``all`` of all together.
    units
        All measures of each part.
    """

    verdict: str
    effect: Measure = Measure(value=math.nan)
    part: str = ""
    units: Mapping[str, Measures] = field(default_factory=dict)
    why: str = ""

    @property
    def resolution(self) -> float:
        """Half the interval, in the unit of the effect."""
        return (self.effect.high - self.effect.low) / 2


def judge(claim: Claim, setting: Setting, evidence: Evidence) -> Outcome:
    """Measure a claim's effect in one setting, and compare it with the limit.

    A claim about several pairs or models is judged by the one whose effect speaks least for it,
    unless the effect is of all together.

    Raises
    ------
    InputError
        When the claim names an effect or a measure that does not exist, or omits an option.
    """
    if claim.effect not in EFFECTS:
        raise InputError(f"claim {claim.id}: effect {claim.effect} does not exist")
    if claim.out_of_reach and setting == claim.headline:
        return Outcome(verdict=OUT_OF_REACH, why=claim.out_of_reach)
    if missing := evidence.missing(setting):
        return Outcome(verdict=UNDECIDED, why=missing)
    try:
        units = EFFECTS[claim.effect](evidence, claim.in_setting(setting))
    except OutOfRegime as reason:
        return Outcome(verdict=OUT_OF_REACH, why=str(reason))
    except (NoRowsYet, NotIdentified) as reason:
        return Outcome(verdict=UNDECIDED, why=str(reason))
    parts = {part: measures for part, measures in units.items() if part == "all"} or units
    try:
        effects = {part: measures[claim.measure] for part, measures in parts.items()}
    except KeyError as error:
        raise InputError(f"claim {claim.id}: {claim.effect} measures no {error}") from error
    part = max(effects, key=lambda part: _against(effects[part].value, claim))
    effect = effects[part]
    return Outcome(
        verdict=verdict_of(effect, claim.limit, claim.side),
        effect=effect,
        part=part,
        units=units,
        why="" if math.isfinite(effect.low) else "these runs give no interval",
    )


def _against(value: float, claim: Claim) -> float:
    """How far a value lies against the claim; one that is not known speaks least for it."""
    if math.isnan(value):
        return math.inf
    if isinstance(claim.limit, tuple):
        return abs(value - sum(claim.limit) / 2)
    return value if claim.side == "<=" else -value


MOST_MOVED, MOST_DOUBT = 0.10, 0.05
"""By how much an effect may move from half the text to all of it, and the largest standard error
of that move with which the answer is known. Shares of the effect; of a slope or a shift, which may
be zero, in its own unit."""

Judge = Callable[[Claim, Setting, Evidence], Outcome]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A claim's effect in one setting.

    Attributes
    ----------
    role
        What the setting is to the claim; see `Claim.settings`.
    seeds
        Of a cell, as `_seeds` counts them.
    runs
        How many are read.
    sizes
        Least and largest parameter count of the mixtures that are read: ``"1,466 to 37,216"``.
    """

    role: str
    setting: Setting
    outcome: Outcome
    seeds: int
    runs: int
    sizes: str
    ancestry: Ancestry


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim with its effects in all of its settings; the headline gives the verdict."""

    claim: Claim
    results: Mapping[str, Result]

    @property
    def headline(self) -> Result:
        """What decides."""
        return self.results["headline"]

    @property
    def robust(self) -> str:
        """Whether the verdict is robust: ``yes``, ``no`` or ``not known``.

        It is where text-matched runs give the same one, and the effect moves by less than 10 % from
        half of the text to all of it.
        """
        matched, half = (self.results.get(way) for way in ("text-matched", "half"))
        if matched is None or half is None or self.headline.outcome.verdict == OUT_OF_REACH:
            return "not known"
        now, before, other = (each.outcome for each in (self.headline, half, matched))
        moved, doubt = _move(before.effect, now.effect, relative=self._relative)
        if not all(map(math.isfinite, (moved, doubt, other.effect.low))) or doubt > MOST_DOUBT:
            return "not known"
        return "yes" if other.verdict == now.verdict and moved < MOST_MOVED else "no"

    @property
    def _relative(self) -> bool:
        limit = self.claim.limit
        return limit != 0 and not (isinstance(limit, tuple) and limit[0] < 0 < limit[1])


def _move(before: Measure, now: Measure, *, relative: bool) -> tuple[float, float]:
    """How far an effect has moved, and the standard error of that, by both intervals."""
    unit = (abs(before.value) or math.nan) if relative else 1.0
    errors = [(each.high - each.low) / 2 / 1.96 for each in (before, now)]
    return abs(now.value - before.value) / unit, math.hypot(*errors) / unit


def evaluate(claim: Claim, evidence: Evidence, history: History, judge: Judge = judge) -> Verdict:
    """Measure a claim in each of its settings.

    Parameters
    ----------
    judge
        Applies the rule, such as one that recalls outcomes.

    Raises
    ------
    InputError
        When a claims file names a function or a measure that does not exist, or omits an option.
    """

    def result(role: str, setting: Setting) -> Result:
        own = evidence.tiers.get(setting.tier, evidence)  # smaller, and so faster
        rows = own.rows(setting)
        if setting.tier == EXTERNAL:
            ancestry = Ancestry(post_hoc=True, note="post hoc: the losses were known first")
        else:
            ancestry = history.check(claim.id, claim.fingerprint(setting), own.commits(setting))
        outcome = judge(claim, setting, evidence)
        there = not rows.empty and set(setting.cohorts) <= set(rows["cohort"])
        options = {**claim.options, **setting.options}
        read = _read(rows, options, outcome.part) if there else rows
        mixtures = read.query("p < 1") if read["p"].min() < 1 else read  # where there are any
        return Result(
            role=role,
            setting=setting,
            outcome=outcome,
            seeds=_seeds(read) if there else 0,
            runs=int(rows["run_id"].nunique()),
            sizes=span(mixtures[setting.n].dropna().astype(int)),
            ancestry=ancestry,
        )

    results = {role: result(role, setting) for role, setting in claim.settings.items()}
    return Verdict(claim=claim, results=results)


_CELL = ["cohort", "variant", "updates_share", "mixture", "pair", "n_non_embedding", "test_set"]


def _read(rows: pd.DataFrame, options: dict[str, Any], part: str) -> pd.DataFrame:
    """Rows of the variants that the effect names; all others only measure the noise."""
    said, names = repr(options), rows["variant"].fillna("")
    named = names.map(lambda name: repr(name) in said or name.split(", ")[0] == part)
    return rows[named] if named.any() else rows


def _seeds(rows: pd.DataFrame) -> int:
    """Seeds of a cell, the median over cells, in the cohort that has the fewest."""
    seeds = rows.groupby(_CELL, dropna=False)["seed"].nunique()
    return int(seeds.groupby("cohort").median().min())
