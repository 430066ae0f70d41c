"""From a claim and the rows of the store to a verdict, and how robust it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mnmt_repro.papers.claims.evidence import Evidence
from mnmt_repro.papers.claims.external import EXTERNAL
from mnmt_repro.papers.claims.history import Ancestry, History
from mnmt_repro.papers.claims.judging import Outcome, judge
from mnmt_repro.papers.claims.schema import OUT_OF_REACH, Claim, Setting
from mnmt_repro.papers.effects.intervals import Measure

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
    seeds, runs
        How many are read.
    """

    role: str
    setting: Setting
    outcome: Outcome
    seeds: int
    runs: int
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
        rows = evidence.rows(setting)
        if setting.tier == EXTERNAL:
            ancestry = Ancestry(post_hoc=True, note="post hoc: the losses were known first")
        else:
            ancestry = history.check(
                claim.id, claim.fingerprint(setting), evidence.commits(setting)
            )
        return Result(
            role=role,
            setting=setting,
            outcome=judge(claim, setting, evidence),
            seeds=int(rows["seed"].nunique()),
            runs=int(rows["run_id"].nunique()),
            ancestry=ancestry,
        )

    results = {role: result(role, setting) for role, setting in claim.settings.items()}
    return Verdict(claim=claim, results=results)
