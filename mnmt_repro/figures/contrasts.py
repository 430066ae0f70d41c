"""Named runs of a cohort set against each other, as Paper B's tables set theirs.

Scores are means over directions and stored seeds. Gains, their intervals and p-values are those of
the claims (`mnmt_repro.claims.paired`). What needs a run that is not stored is NaN: a dash on a
page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mnmt_repro.claims import Evidence, Measure, Scope
from mnmt_repro.claims.estimands_upgrade import directions_of
from mnmt_repro.claims.evidence import NoRowsYet
from mnmt_repro.claims.paired import Sample, Study, Variant, gain, p_value
from mnmt_repro.experiments.catalogue import find_cohort
from mnmt_repro.figures.house import Provenance

MAIN = "software25-main"
SIGNIFICANT = 0.05
GAIN = ("gain, %", "low", "high", "p", "our mark")
"""Columns that tell of a gain: by how many per cent of the control's loss, 95 % interval, p-value
of the paired t-test over directions, and the paper's star where that is below 0.05."""
NO_GAIN: dict[str, Any] = dict.fromkeys(GAIN, math.nan) | {"our mark": ""}
FORMATS = {"gain, %": "+.2f", "low": "+.2f", "high": "+.2f", "p": ".2g"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """The named runs of one cohort.

    Attributes
    ----------
    rows : DataFrame
        From `results.load`. Read are those of the tier, the test set and the domain ``all``. As for
        the claims, runs of software25-main with several seeds tell the noise of the seed.
    cohort, tier, test_set : str
    """

    rows: pd.DataFrame
    cohort: str
    tier: str = "mini"
    test_set: str = "indomain"
    _studies: dict[tuple[tuple[str, ...], str], Study] = field(
        default_factory=dict, init=False, repr=False
    )

    def variant(self, name: str, share: float) -> Variant:
        """A run of the cohort by its name and its share of the baselines' updates."""
        return Variant(self.cohort, name, share)

    def study(self, pairs: tuple[str, ...], metric: str = "cross_entropy") -> Study:
        """Scores over some directions. One seed does: then intervals know of directions only."""
        if (pairs, metric) not in self._studies:
            scope = Scope(
                name=self.cohort,
                cohorts=tuple(dict.fromkeys((self.cohort, MAIN))),
                test_set=self.test_set,
                tier=self.tier,
            )
            self._studies[pairs, metric] = Study(
                evidence=Evidence(frame=self.rows),
                scope=scope,
                pairs=pairs,
                needs={"noise": 0},
                metric=metric,
            )
        return self._studies[pairs, metric]

    def by_direction(
        self, variant: Variant, pairs: tuple[str, ...], metric: str = "cross_entropy"
    ) -> pd.Series[float]:
        """Mean score over seeds of each direction, all NaN where the run is not stored."""
        try:
            return self.study(pairs, metric).table(variant).mean()
        except NoRowsYet:
            return pd.Series(math.nan, index=list(pairs))

    def mean(
        self, variant: Variant, pairs: tuple[str, ...], metric: str = "cross_entropy"
    ) -> float:
        """Mean score over directions and seeds."""
        return float(self.by_direction(variant, pairs, metric).mean(skipna=False))

    def samples(self, pairs: tuple[str, ...], *variants: Variant) -> list[Sample]:
        """Scores over the seeds that all variants have; an empty list where one is missing."""
        try:
            return self.study(pairs).samples(*variants)
        except NoRowsYet:
            return []

    def seeds(self, pairs: tuple[str, ...], *variants: Variant) -> int:
        """How many seeds all variants have."""
        try:
            tables = [self.study(pairs).table(variant) for variant in variants]
        except NoRowsYet:
            return 0
        return len(set.intersection(*(set(table.index) for table in tables)))

    def gain(self, treated: Variant, control: Variant, pairs: tuple[str, ...]) -> dict[str, Any]:
        """The columns `GAIN` of a variant over its control.

        Interval and p-value of a single direction are NaN where no noise of the seed is known.
        """
        found = self.samples(pairs, treated, control)
        if not found:
            return NO_GAIN
        measured, p = gain(*found), p_value(*found).value
        if len(pairs) == 1 and self.study(pairs).noise[1] == 0:
            measured, p = Measure(value=measured.value), math.nan
        values = (measured.value, measured.low, measured.high, p, star(p < SIGNIFICANT))
        return dict(zip(GAIN, values, strict=True))

    @property
    def own(self) -> pd.DataFrame:
        """Rows of the cohort itself."""
        mine = (self.rows["cohort"] == self.cohort) & (self.rows["tier"] == self.tier)
        return self.rows[
            mine & (self.rows["test_set"] == self.test_set) & (self.rows["domain"] == "all")
        ]

    @property
    def source(self) -> Provenance | str:
        """Provenance of the cohort's rows, or a sentence where there are none."""
        return source(self.own)

    def stored(self) -> str:
        """How many of the declared runs are stored, in a sentence."""
        declared = {run.config_hash for run in find_cohort(self.cohort, self.tier).runs()}
        found = len(declared & set(self.own["config_hash"]))
        if found == len(declared):
            return f"All {found} runs of the cohort {self.cohort} are stored."
        if found == 0:
            return (
                f"No run of the cohort {self.cohort} is stored yet: only the paper's numbers show."
            )
        return (
            f"{found} of {len(declared)} runs of the cohort {self.cohort} are stored; what needs "
            "the others is a dash."
        )

    def intervals(self) -> str:
        """What the intervals know of, in a sentence; empty without rows."""
        if self.own.empty:
            return ""
        sd, freedom = self.study(directions_of("all")).noise
        if freedom == 0:
            return (
                "No two runs are stored with several seeds, so the noise of the seed is not known: "
                "intervals know of directions only, and are too narrow."
            )
        return (
            f"Intervals hold directions and the noise of the seed ({sd:.2%} of a mean loss, on "
            f"{freedom} degree{'s' * (freedom != 1)} of freedom); p-values, like the paper's, "
            "know of directions only."
        )


def source(rows: pd.DataFrame) -> Provenance | str:
    """Provenance of stored rows beside printed numbers, or a sentence where there are none."""
    return Provenance.of(rows) if len(rows) else "Paper B, in data/papers; no run of ours."


def star(marked: bool) -> str:
    """The paper's mark of a significant difference."""
    return "*" if marked else ""
