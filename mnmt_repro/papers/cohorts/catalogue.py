"""All cohorts that are declared, by name and tier, and to which of them a run belongs.

No torch is needed.
"""

from __future__ import annotations

from functools import cache

from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts import conlang_upgrade, settled, settled_upgrades, software25, steady
from mnmt_repro.papers.cohorts.grids import GRIDS, Cohort
from mnmt_repro.papers.cohorts.variants import VariantCohort
from mnmt_repro.runs.spec import RunSpec

MINI_COHORTS: tuple[Cohort | VariantCohort, ...] = (
    *GRIDS,
    *software25.SOFTWARE25_COHORTS,
    settled_upgrades.STARTS_COHORT,
    *conlang_upgrade.UPGRADE_COHORTS,
)
"""All that is declared at the mini tier."""


@cache
def declared(tier: str = "mini") -> tuple[Cohort | VariantCohort, ...]:
    """All cohorts of a tier; `smoke` has none."""
    match tier:
        case "mini":
            return MINI_COHORTS
        case "steady":
            return steady.STEADY_GRIDS
        case "settled":
            return (*settled.SETTLED_GRIDS, *settled_upgrades.SETTLED_UPGRADES)
    return ()


RUN_TIERS = ("mini", "steady", "settled")
"""Tiers with declared cohorts, all of them run at least in part."""


def runs_of(*tiers: str) -> list[RunSpec]:
    """All runs of some tiers, each once."""
    runs = (spec for tier in tiers for cohort in declared(tier) for spec in cohort.runs())
    return list({spec.run_id: spec for spec in runs}.values())


def find_cohort(name: str, tier: str = "mini") -> Cohort | VariantCohort:
    """The cohort of that name and tier.

    Raises
    ------
    InputError
        When there is none; the message lists those there are.
    """
    for cohort in declared(tier):
        if cohort.name == name:
            return cohort
    where = "" if tier == "mini" else f" at tier {tier}"
    known = ", ".join(cohort.name for cohort in declared(tier))
    raise InputError(f"no cohort named {name!r}{where}; there are {known}")


def get_cohort(name: str, tier: str = "mini") -> Cohort:
    """The grid of that name and tier.

    Raises
    ------
    InputError
        As `find_cohort`, and when it is a list of named runs.
    """
    cohort = find_cohort(name, tier)
    if not isinstance(cohort, Cohort):
        raise InputError(f"cohort {name!r} is a list of named runs, not a grid of mixtures")
    return cohort


def conlang_of(name: str) -> ConlangConfig | None:
    """The generated languages of a declared grid of any tier; None for real text and own grids."""
    known = (each for tier in RUN_TIERS for each in declared(tier))
    grid = next((each for each in known if each.name == name), None)
    return grid.corpus.conlang if isinstance(grid, Cohort) else None


@cache
def membership(tier: str = "mini") -> dict[str, tuple[str, ...]]:
    """Configuration hash to the names of the cohorts of a tier that hold the run."""
    cohorts: dict[str, tuple[str, ...]] = {}
    for cohort in declared(tier):
        names = (cohort.repeats, cohort.name) if cohort.repeats else (cohort.name,)
        for run in cohort.runs():
            cohorts[run.config_hash] = (*cohorts.get(run.config_hash, ()), *names)
    return cohorts


@cache
def places(tier: str = "mini") -> dict[tuple[str, str], tuple[str, float]]:
    """Configuration hash and cohort to name and share of updates; cells of grids left out."""
    return {
        (variant.spec.config_hash, cohort.name): (variant.name, variant.updates_share)
        for cohort in declared(tier)
        if isinstance(cohort, VariantCohort)
        for variant in cohort.variants
    }
