"""From a claim and the rows of the store to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mnmt_repro.analysis.intervals import Measures
from mnmt_repro.claims.attainability import Attainability
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.external import EXTERNAL
from mnmt_repro.claims.history import Ancestry, History
from mnmt_repro.claims.judging import Outcome, judge
from mnmt_repro.claims.schema import NO_ROWS, Claim, Scope
from mnmt_repro.claims.standing import (
    DECIDED,
    EVIDENCE_KINDS,
    REGIME,
    Standing,
    extrapolated,
    kind_of,
    settled,
    standing,
)

Simulations = Mapping[tuple[str, str], Attainability]
"""Simulated outcomes by claim id and name of the scope."""
Judge = Callable[[Claim, Scope, Evidence], Outcome]


@dataclass(frozen=True, kw_only=True)
class ScopeVerdict:
    """A claim's verdict in one scope.

    Attributes
    ----------
    scope : Scope
    kind : str
        Of evidence, one of `EVIDENCE_KINDS`.
    outcome : Outcome
        What the rule says, and what was measured.
    standing : Standing
        The verdict: the rule's where it stands, else *undecided here*, with the reason.
    simulated : Attainability or None
        None where the scope has not been simulated.
    runs : int
        How many runs were read.
    ancestry : Ancestry
        Whether the rule came after its rows.
    """

    scope: Scope
    kind: str
    outcome: Outcome
    standing: Standing
    simulated: Attainability | None
    runs: int
    ancestry: Ancestry

    @property
    def name(self) -> str:
        """Of the scope."""
        return self.scope.name

    @property
    def verdict(self) -> str:
        """The verdict after the test of `claims.standing`."""
        return self.standing.verdict

    @property
    def raw_verdict(self) -> str:
        """What the rule alone says."""
        return self.outcome.verdict

    @property
    def units(self) -> Mapping[str, Measures]:
        """What was measured for each pair, model or published cell."""
        return self.outcome.units


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim's verdict: that of the first kind of evidence that can decide, and all scopes."""

    claim: Claim
    scopes: tuple[ScopeVerdict, ...]

    def by_kind(self, kind: str) -> ScopeVerdict | None:
        """The scope that speaks for a kind of evidence, as `_first` chooses."""
        own = [
            each
            for each in self.scopes
            if each.kind == kind and each.scope in self.claim.own_scopes
        ]
        return _first(own) or (own[0] if own else None)

    @property
    def deciding(self) -> ScopeVerdict:
        """The scope whose verdict is the claim's."""
        found = [scope for kind in EVIDENCE_KINDS if (scope := self.by_kind(kind))]
        return _first(found) or self.scopes[0]

    @property
    def id(self) -> str:
        """The claim's id, such as ``A3``."""
        return self.claim.id

    @property
    def verdict(self) -> str:
        """The claim's headline."""
        return self.deciding.verdict

    @property
    def raw_verdict(self) -> str:
        """What the rule alone says in the deciding scope."""
        return self.deciding.raw_verdict

    @property
    def post_hoc(self) -> bool | None:
        """Whether the rule came after rows of the deciding scope; None where git cannot tell."""
        return self.deciding.ancestry.post_hoc

    @property
    def rule(self) -> str:
        """The pass rule in words, as it is in the deciding scope."""
        return "; ".join(map(str, self.claim.in_scope(self.deciding.scope).rule))


def _first(scopes: Sequence[ScopeVerdict]) -> ScopeVerdict | None:
    """The first scope that decides, else the first whose runs went far enough, else with rows."""

    def rank(scope: ScopeVerdict) -> int:
        return 0 if scope.verdict in DECIDED else 2 if scope.standing.why == REGIME else 1

    return min((each for each in scopes if each.verdict != NO_ROWS), key=rank, default=None)


def evaluate(
    claim: Claim,
    evidence: Evidence,
    history: History,
    simulations: Simulations | None = None,
    judge: Judge = judge,
) -> Verdict:
    """Evaluate a claim in each of its scopes.

    Parameters
    ----------
    judge
        Applies the rule, such as one that recalls outcomes.

    Raises
    ------
    InputError
        When a claims file names a function or a measure that does not exist, or omits an option.
    """

    def of_scope(scope: Scope) -> ScopeVerdict:
        simulated = (simulations or {}).get((claim.id, scope.name))
        if scope.tier == EXTERNAL:
            ancestry = Ancestry(post_hoc=True, note="post hoc: the losses were known first")
        else:
            commits = evidence.commits(scope) if scope.cohorts else ()
            ancestry = history.check(claim.id, claim.fingerprint(scope), commits)
        outcome = judge(claim, scope, evidence)
        half, whole = None, outcome
        if scope.half:
            half = judge(claim, replace(scope, cohorts=scope.half), evidence)
            same = evidence.with_seeds_of(scope.half, scope.cohorts)
            whole = outcome if same is evidence else judge(claim, scope, same)
        return ScopeVerdict(
            scope=scope,
            kind=kind_of(scope),
            outcome=outcome,
            standing=standing(
                outcome.verdict,
                claim,
                simulated,
                converged=settled(claim, whole, half),
                beyond=extrapolated(claim.in_scope(scope), outcome),
            ),
            simulated=simulated,
            runs=evidence.rows(scope)["run_id"].nunique() if scope.cohorts else 0,
            ancestry=ancestry,
        )

    return Verdict(claim=claim, scopes=tuple(map(of_scope, claim.scopes)))
