"""Paper B with a finished baseline: upgrades and models from scratch that all decay.

Old models are trained as in the mini tier: 14,000 updates without a decay, so that an upgrade goes
on with their schedule. Every upgrade and every baseline decays over its last 30 %. Runs of one seed
and arm share their beginning, so a further budget costs its decay alone. Shares are of the 14,000
updates of the mini tier's baselines. The deeper model is not run.

Both arms, from scratch and upgraded, have one learning rate each, also in the wider shape, as in
the paper. `software25-settled-rates` tries four in each arm at seed 101, which no claim reads: the
baseline after all of its updates, the upgrade after 30 %. The rate with the lowest loss on the
in-domain test is taken, the mean over all directions, also where it is the first or the last.
Three rates came first, 0.006 to 0.024. The lowest of them was the baseline's best so far, and the
highest the upgrade's, so each arm has one more beyond; no scored run had begun.

`software25-starts` compares starts of new pieces, and shares the old models. It is of the mini
tier: its upgrades keep that tier's rate and have no decay, so that a shorter one is the beginning
of a longer one.

All but the rates' first runs are plain float32, so that they repeat bit for bit. The rates were
tried on the faster path that `train` then took by default: compiled, with products in bfloat16. A
processor without bfloat16 imitates it, six times as slowly. So the last rate, 0.003, and all scored
runs left that path, before any of them had begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS
from mnmt_repro.papers.cohorts.settled import TIER
from mnmt_repro.papers.cohorts.software25 import SUFFIX
from mnmt_repro.papers.cohorts.software25_runs import CORPUS, MINI, from_scratch, upgraded
from mnmt_repro.papers.cohorts.variants import Variant, VariantCohort
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.upgrading.config import Kind, NewRows

SCRATCH_RATE = 0.006
UPGRADE_RATE = 0.024
"""Rates of the scored runs, chosen by `software25-settled-rates` before any of them was trained."""
SCRATCH_RATES = (0.003, 0.006, 0.012, 0.024)
UPGRADE_RATES = (0.006, 0.012, 0.024, 0.048)
UNSCORED_SEED = 101
RATE_SHARE = 0.3  # of updates, at which the upgrade's rate is chosen
DECAY_SHARE = 0.3
UPGRADE_SHARES = (0.1, 0.3, 1.0)
EARLY, ONCE, TWICE = 0.1, 1.0, 2.0
"""Shares at which a claim reads the baseline. The first begins the gap of B13 and B20; there, the
decay begins before the warm-up has ended, at 7 and 8 % of the updates."""
BASELINE_SHARES = (EARLY, 0.5, ONCE, TWICE)


FAST: dict[str, Any] = {"compile": True, "precision": "bfloat16"}
"""The path of all trials of a rate but the lowest one from scratch."""


def _settled(run: RunSpec, path: Mapping[str, Any] = {}, **changes: Any) -> RunSpec:
    """A run of the mini tier in this one, on a path for it and its old model, with changes."""
    if run.upgrade:
        run = replace(run, upgrade=replace(run.upgrade, parent=_settled(run.upgrade.parent, path)))
    return replace(run, tier=TIER, training=replace(run.training, **path, **changes))


def _run(
    name: str, kind: Kind, share: float, seed: int, rate: float, path: Mapping[str, Any] = {}
) -> RunSpec:
    """A run of the mini tier, from scratch (M25) or upgraded (Mt25), with a rate and a decay."""
    run = (upgraded if name == "Mt25" else from_scratch)(kind, share=share, seed=seed)
    return _settled(run, path, learning_rate=rate, decay_share=DECAY_SHARE)


def _rates() -> Iterator[Variant]:
    old = from_scratch("same", languages=GROUPINGS["Mt25"].original, seed=UNSCORED_SEED)
    yield Variant(name="M20", updates_share=1.0, spec=_settled(old, FAST))
    for name, share, rates in (
        ("M25", ONCE, SCRATCH_RATES),
        ("Mt25", RATE_SHARE, UPGRADE_RATES),
    ):
        for rate in rates:
            path = {} if (name, rate) == ("M25", SCRATCH_RATES[0]) else FAST
            run = _run(name, "same", share, UNSCORED_SEED, rate, path)
            yield Variant(name=f"{name}, rate {rate:g}", updates_share=share, spec=run)


def _compared(kind: Kind, baselines: int, upgrades: int) -> Iterator[Variant]:
    """Both arms of a shape, seeds 1 to so many of each; old models are no rows of their own."""
    for name, seeds, shares, rate in (
        ("M25", baselines, BASELINE_SHARES, SCRATCH_RATE),
        ("Mt25", upgrades, UPGRADE_SHARES, UPGRADE_RATE),
    ):
        for seed in range(1, seeds + 1):
            for share in shares:
                run = _run(name, kind, share, seed, rate)
                yield Variant(name=f"{name}{SUFFIX[kind]}", updates_share=share, spec=run)


NEW_PIECES = (250, 1_000, 4_000)
STARTS: dict[str, NewRows] = {
    "from unk": "unk", "mean of parts": "mean", "mean of all": "centroid", "random": "random",
}  # fmt: skip
"""Ways in which new pieces of an extended vocabulary begin (ours)."""
START_SHARES = (0.1, 0.3, 1.0)
"""Of the upgrade's own updates, which are 30 % of the baselines'; and after the first one."""


def _starts() -> Iterator[Variant]:
    """The whole recipe with an extended vocabulary; a third seed at the ends of the numbers."""
    shares = (1 / MINI.steps(1.0), *(RATE_SHARE * each for each in START_SHARES))
    for seed in (1, 2, 3):
        for pieces in NEW_PIECES if seed < 3 else (NEW_PIECES[0], NEW_PIECES[-1]):
            for (start, rows), share in product(STARTS.items(), shares):
                run = upgraded("same", share=share, seed=seed, embeddings=rows, new_pieces=pieces)
                name = f"{pieces:,} new pieces {start}"
                yield Variant(
                    name=name, updates_share=share, spec=replace(_settled(run), tier=MINI.name)
                )


_NAME = f"{CORPUS}-settled"
SETTLED_UPGRADES: tuple[VariantCohort, ...] = tuple(
    VariantCohort(name=name, about=about, variants=tuple(variants), tier=TIER)
    for name, about, variants in (
        (f"{_NAME}-rates", "learning rates of Paper B's settled runs; enters no verdict", _rates()),
        (_NAME, "same size: six upgrades, five baselines with a decay", _compared("same", 5, 6)),
        (f"{_NAME}-wide", "wider: three upgrades, three baselines", _compared("wide", 3, 3)),
    )
)
"""Cohorts of Paper B at this tier, in the order in which they must be run."""
STARTS_COHORT = VariantCohort(
    name=f"{CORPUS}-starts",
    about="how many new pieces, and how they begin (ours)",
    variants=tuple(_starts()),
)
"""Of the mini tier, with whose ablations pages show it."""
