"""What verdicts would be if chance were counted otherwise. None of this decides a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mnmt_repro.claims.evaluate import Verdict, evaluate
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.history import History
from mnmt_repro.claims.schema import Claim

COMPARISONS = ("upgrade_against_scratch", "ablation", "directions_learned")
"""Estimands that compare variants of software25 over directions and seeds."""
CHECKED = 20_000  # experiments that `coverage` simulates


def with_luck_apart(claims: Iterable[Claim], evidence: Evidence, history: History) -> list[Verdict]:
    """Verdicts of the claims that compare variants, an old model's luck counted apart.

    By their rules the noise of the seed is one of single runs. But all upgrades of a seed start
    from one old model, whose luck they share: see `variants.Study`. Each claim is evaluated in the
    first setting that does not pair by seed, since pairing cancels that luck.
    """
    found = []
    for claim in claims:
        if claim.function in COMPARISONS:
            scope = next(s for s in claim.scopes if not s.options.get("blocked"))
            options = {**claim.options, "apart": True}
            found.append(
                evaluate(replace(claim, scopes=(scope,), options=options), evidence, history)
            )
    return found


def coverage(luck: float, noise: float, *, models: int = 3, seeds: int = 3) -> float:
    """How often a 95 % interval of the rules holds an upgrade's true difference from a baseline.

    Simulated: a table of upgrades and baselines by seeds, whose log losses a noise of single runs
    moves, and all upgrades of a seed the luck of their old model. The interval is that of
    `variants.Study`, which takes all runs as independent; directions add no chance here.

    Parameters
    ----------
    luck, noise
        Standard deviations.
    models
        Upgrades, and baselines as many.
    seeds
        Of each.
    """
    random = np.random.default_rng(0)
    runs = noise * random.standard_normal((CHECKED, 2 * models, seeds))
    runs[:, :models] += luck * random.standard_normal((CHECKED, 1, seeds))
    left = runs - runs.mean(2, keepdims=True) - runs.mean(1, keepdims=True)
    left += runs.mean((1, 2), keepdims=True)
    freedom = (2 * models - 1) * (seeds - 1)
    seen = np.sqrt((left**2).sum((1, 2)) / freedom)
    drawn = random.standard_t(freedom, (2, 10 * CHECKED)) / math.sqrt(seeds)
    reach = np.quantile(np.abs(drawn[0] - drawn[1]), 0.95) * seen
    missed = np.abs(runs[:, 0].mean(1) - runs[:, models].mean(1))
    return float((missed < reach).mean())
