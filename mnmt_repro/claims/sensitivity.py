"""What verdicts would be if chance were counted otherwise. None of this decides a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mnmt_repro.claims.evaluate import Verdict, evaluate
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.history import History
from mnmt_repro.claims.ledger import Claim

COMPARISONS = ("upgrade_against_scratch", "ablation", "directions_learned")
"""Estimands that compare variants of software25 over directions and seeds."""


def with_luck_apart(claims: Iterable[Claim], evidence: Evidence, history: History) -> list[Verdict]:
    """Verdicts of the claims that compare variants, an old model's luck counted apart.

    By their rules the noise of the seed is one of single runs. But all upgrades of a seed start
    from one old model, whose luck they share: see `paired.Study`. Each claim is evaluated in its
    own setting only.
    """
    return [
        evaluate(
            replace(claim, scopes=claim.scopes[:1], options={**claim.options, "apart": True}),
            evidence,
            history,
        )
        for claim in claims
        if claim.function in COMPARISONS
    ]
