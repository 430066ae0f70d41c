"""Which analyses are made of which run. No torch is needed here.

`results.analyses` says what each of them is, `analysing` makes them.
"""

from __future__ import annotations

from functools import cache

from mnmt_repro.papers.cohorts.catalogue import declared
from mnmt_repro.runs.spec import RunSpec

GATED = "webtech-en-dezh"
"""Grid whose largest even model is widened too, as an example of a gated feed-forward layer."""


def analyses_of(spec: RunSpec) -> tuple[str, ...]:
    """Names of what is made of a run; nothing is made of many.

    - ``overlap`` and ``substituted``: of every upgraded run.
    - ``moved``: of those twice as wide whose first half is the old model's.
    - ``fisher``: of those that slow down only some of the old entries.
    - ``widened``: of the runs that wide ones upgrade, and of one gated model (`GATED`).
    """
    names = []
    if spec.upgrade is not None:
        config, deeper = spec.upgrade.config, spec.upgrade.config.deeper
        names += ["overlap", "substituted"]
        halves = config.wider == 2 and config.width.init != "interpolation"
        if halves and config.keep != "nothing" and not (deeper.encoder or deeper.decoder):
            names.append("moved")
        if spec.upgrade.fisher_share is not None:
            names.append("fisher")
    if spec.run_id in widened_runs(spec.tier):
        names.append("widened")
    return tuple(names)


@cache
def widened_runs(tier: str) -> frozenset[str]:
    """Ids of the runs that are widened without training them."""
    widened = set()
    for cohort in declared(tier):
        for spec in cohort.runs():
            if spec.upgrade is not None and spec.upgrade.config.wider > 1:
                widened.add(spec.upgrade.parent.run_id)
        if cohort.name == GATED:
            even = (spec for spec in cohort.runs() if set(spec.mixture.weights.values()) == {0.5})
            widened.add(max(even, key=lambda spec: spec.cost).run_id)
    return frozenset(widened)
