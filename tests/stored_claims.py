"""The rules as they are stored, judged without their history."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from mnmt_repro.analysis.intervals import Measure
from mnmt_repro.claims import load_claims
from mnmt_repro.claims.evaluate import Verdict
from mnmt_repro.claims.history import Ancestry, History
from mnmt_repro.claims.schema import Claim, Scope

ROOT = Path(__file__).resolve().parents[1]


class NoHistory(History):
    """Rules that are older than all rows."""

    def check(self, claim: str, fingerprint: str, commits: object) -> Ancestry:
        return Ancestry(post_hoc=False, note="")


@cache
def declared_claims() -> dict[str, Claim]:
    """Every claim by its id."""
    return {claim.id: claim for claim in load_claims(ROOT / "data" / "claims")}


def first_round(claim: Claim) -> tuple[Scope, ...]:
    """The scopes of the first round, which do not pair runs by seed."""
    return tuple(scope for scope in claim.scopes if not scope.options.get("blocked"))


def headline(verdict: Verdict) -> Measure:
    """The headline measure of the pair that decided a claim; NaN without one."""
    outcome = verdict.deciding.outcome
    found = outcome.units.get(outcome.unit, {})
    return found.get(verdict.claim.headline, Measure(value=math.nan))
