"""Named runs of a cohort set against each other, as Paper B's tables set theirs.

Scores are means over directions and stored seeds. Gains, their intervals and p-values are those of
the claims (`mnmt_repro.claims.paired`). What needs a run that is not stored is NaN: a dash on a
page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from mnmt_repro.claims import Evidence, Measure, Scope
from mnmt_repro.claims.bootstrap import bootstrap_losses
from mnmt_repro.claims.evidence import NoRowsYet
from mnmt_repro.claims.paired import (
    ENOUGH,
    Sample,
    Study,
    Variant,
    functional,
    gain,
    p_value,
)
from mnmt_repro.cohorts.catalogue import find_cohort
from mnmt_repro.cohorts.languages25 import directions_of
from mnmt_repro.errors import InputError
from mnmt_repro.figures.audit.tables import GROUPS
from mnmt_repro.figures.house import Table, show_table
from mnmt_repro.figures.provenance import Provenance
from mnmt_repro.results.sentences import SentenceLosses

MAIN, TABLE3 = "software25-main", "software25-table3"
REPEATED = (MAIN, TABLE3)
"""Cohorts of which some runs have several seeds."""
WITH_MAIN_ALONE = tuple(
    f"software25-{name}" for name in ("full", "table3", "noise", "schedule", "insertion")
)
"""Cohorts whose claims read the noise of the seed off the main condition besides, and no other."""
PARTS = (*GROUPS, "related", "other original")
"""Groups of the paper's tables, and original languages parted by whether they are up-sampled."""
SIGNIFICANT = 0.05
GAIN = ("gain, %", "low", "high", "p", "our mark")
"""Columns that tell of a gain: by how many per cent of the control's loss, 95 % interval, p-value
of the paired t-test over directions, and the paper's star where that is below 0.05."""
NO_GAIN: dict[str, Any] = dict.fromkeys(GAIN, math.nan) | {"our mark": ""}
INTERVAL = "95 % interval"
FORMATS = {"loss": ".3f", "gain, %": "+.2f", "gain": "+.2f", "p": ".2g"}
"""How `show_gains` shows a table of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """The named runs of one cohort.

    Attributes
    ----------
    rows : DataFrame
        From `results.load`. Read are those of the tier, the test set and the domain ``all``.
    cohort, tier, test_set : str

    Raises
    ------
    InputError
        When runs of the cohort are stored, and none was scored on the test set.
    """

    rows: pd.DataFrame
    cohort: str
    tier: str = "mini"
    test_set: str = "indomain"
    _studies: dict[tuple[tuple[str, ...], str], Study] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Refuse a test set on which no stored run of the cohort was scored."""
        mine = (self.rows["cohort"] == self.cohort) & (self.rows["tier"] == self.tier)
        known = sorted(set(self.rows.loc[mine, "test_set"]))
        if known and self.test_set not in known:
            raise InputError(
                f"test_set = {self.test_set!r}: no such rows are stored of {self.cohort}; values "
                f"there are: {', '.join(known)}"
            )

    def variant(self, name: str, share: float) -> Variant:
        """A run of the cohort by its name and its share of the baselines' updates."""
        return Variant(self.cohort, name, share)

    @property
    def cohorts(self) -> tuple[str, ...]:
        """Whose runs are read: the cohort's, and those that tell the noise of the seed.

        They are those of the claims about the cohort, so that a table and the verdict beside it
        have the same intervals.
        """
        if self.cohort == MAIN:
            return (MAIN,)
        repeated = (MAIN,) if self.cohort in WITH_MAIN_ALONE else REPEATED
        return (self.cohort, *repeated)

    def study(self, pairs: tuple[str, ...], metric: str = "cross_entropy") -> Study:
        """Scores over some directions. One seed does: see `Study.knows_noise`."""
        if (pairs, metric) not in self._studies:
            scope = Scope(
                name=self.cohort,
                cohorts=self.cohorts,
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

    def samples(
        self, pairs: tuple[str, ...], *variants: Variant, metric: str = "cross_entropy"
    ) -> list[Sample]:
        """Scores over the seeds that all variants have; an empty list where one is missing."""
        try:
            return self.study(pairs, metric).samples(*variants)
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
        if len(pairs) == 1 and not self.study(pairs).knows_noise:
            measured, p = Measure(value=measured.value), math.nan
        values = (measured.value, measured.low, measured.high, p, star(p < SIGNIFICANT))
        return dict(zip(GAIN, values, strict=True))

    def points(
        self, treated: Variant, control: Variant, pairs: tuple[str, ...], metric: str
    ) -> dict[str, float]:
        """``gain, low, high, p``: by how many points a variant's score is above its control's."""
        found = self.samples(pairs, treated, control, metric=metric)
        if not found:
            return dict.fromkeys(("gain", "low", "high", "p"), math.nan)
        above = functional(lambda mine, other: mine - other, *found)
        p = p_value(*found).value
        return {"gain": above.value, "low": above.low, "high": above.high, "p": p}

    def of(self, cohort: str) -> pd.DataFrame:
        """Rows of a cohort."""
        mine = (self.rows["cohort"] == cohort) & (self.rows["tier"] == self.tier)
        return self.rows[
            mine & (self.rows["test_set"] == self.test_set) & (self.rows["domain"] == "all")
        ]

    @property
    def own(self) -> pd.DataFrame:
        """Rows of the cohort itself."""
        return self.of(self.cohort)

    @property
    def source(self) -> Provenance | str:
        """Provenance of the cohort's rows, or a sentence where there are none."""
        return source(self.own)

    def stored(self) -> str:
        """How many of the declared runs are stored, in a sentence."""
        declared = {run.config_hash for run in find_cohort(self.cohort, self.tier).runs()}
        found = len(declared & set(self.own["config_hash"]))
        if found == len(declared):
            return f"All {found} declared runs are stored."
        if found == 0:
            return f"None of {len(declared)} declared runs is stored yet."
        are = "is" if found == 1 else "are"
        told = f"{found} of {len(declared)} declared runs {are} stored"
        return f"{told}; what needs the others is a dash."

    def intervals(self, metric: str = "cross_entropy") -> str:
        """What the intervals of a metric know of, in a sentence; empty without rows."""
        if self.own.empty:
            return ""
        study = self.study(directions_of("all"), metric)
        sd, freedom = study.noise
        if not study.knows_noise:
            return (
                f"Runs with several seeds leave {freedom} of the {ENOUGH} degrees of freedom that "
                "the noise of the seed should rest on: intervals know of directions only, and are "
                "too narrow."
            )
        return (
            f"Intervals hold directions and the noise of the seed ({sd:.2%} of a mean score, on "
            f"{freedom} degrees of freedom); p-values, like the paper's, know of directions only."
        )


def over_sentences(
    bench: Bench,
    compared: Iterable[tuple[Variant, Variant]],
    losses: Mapping[str, SentenceLosses],
    groups: Iterable[str],
) -> pd.DataFrame:
    """Differences of variants with other test sentences: paired bootstrap, a row a seed.

    Parameters
    ----------
    compared
        Each variant with its control, of the bench's own cohort.
    losses
        Of single sentences, by run id (`results.load_sentence_losses`); pairs of runs that lack
        them, or have them of another test set than the bench, are left out.

    Returns
    -------
    DataFrame
        ``model, updates, group, seed``, ``difference`` of the losses in nats per token (treated
        less control) with its interval ``low, high`` and ``p``, and the ``sentences``.
    """
    keys = ["variant", "updates_share", "seed"]
    known = [run for run, each in losses.items() if each.test_set == bench.test_set]
    ids = bench.own[bench.own["run_id"].isin(known)].groupby(keys)["run_id"].first()
    rows = []
    groups = tuple(groups)
    for treated, control in compared:
        for seed in sorted(bench.own["seed"].unique()):
            both = [(each.name, each.share, seed) for each in (treated, control)]
            if not set(both) <= set(ids.index):
                continue
            mine, base = (losses[ids[key]] for key in both)
            for group in groups:
                found = bootstrap_losses(mine, base, directions_of(group))
                rows.append(
                    {
                        "model": treated.name,
                        "updates": treated.share,
                        "group": group,
                        "seed": seed,
                        "difference": found.difference,
                        "low": found.low,
                        "high": found.high,
                        "p": found.p_value,
                        "sentences": found.sentences,
                    }
                )
    return pd.DataFrame(rows)


def p_of_draws(value: float) -> str:
    """A p-value of `over_sentences`, which is at least one in as many as are drawn.

    >>> p_of_draws(0.000999), p_of_draws(0.0521)
    ('≤ 0.001', '0.052')
    """
    return "≤ 0.001" if value <= 0.001 else f"{value:.2g}"


def show_over_sentences(table: pd.DataFrame, **about: Any) -> Table:
    """Display a table of `over_sentences`; arguments as for `house.show_table`."""
    three_places = dict.fromkeys(["difference", "low", "high"], "+.3f")
    return show_table(table, formats={"updates": ".0%", "p": p_of_draws, **three_places}, **about)


def source(rows: pd.DataFrame) -> Provenance | str:
    """Provenance of stored rows beside printed numbers, or a sentence where there are none."""
    return Provenance.of(rows) if len(rows) else "Paper B, in data/papers; no run of ours."


def star(marked: bool) -> str:
    """The paper's mark of a significant difference."""
    return "*" if marked else ""


def stored_of(rows: pd.DataFrame, cohorts: Mapping[str, str], tier: str = "mini") -> str:
    """How many of the runs that some cohorts declare are stored, in all and of each, in words.

    Parameters
    ----------
    rows
        From `results.load`.
    cohorts
        What a page calls each to its name.
    """
    known = set(rows.loc[rows["tier"] == tier, "config_hash"])
    declared = {
        title: {run.config_hash for run in find_cohort(name, tier).runs()}
        for title, name in cohorts.items()
    }
    every = set().union(*declared.values())
    stored = {title: len(known & runs) for title, runs in declared.items()}
    told = f"{len(known & every)} of {len(every)} declared runs are stored"
    if any(stored.values()):
        parts = [
            f"{title} {some} of {len(declared[title])}" for title, some in stored.items() if some
        ]
        told += f": {', '.join(parts)} (a run that several share counts in each)"
    none = [f"{title} ({len(declared[title])} runs)" for title, some in stored.items() if not some]
    if none and any(stored.values()):
        told += (
            f". Declared and not run, so that what they would show is missing: {', '.join(none)}"
        )
    return f"{told}."


def show_gains(
    table: pd.DataFrame,
    *,
    data: pd.DataFrame | None = None,
    formats: Mapping[str, Any] | None = None,
    caption: str = "",
    **about: Any,
) -> Table:
    """Display a table of gains in few columns; the CSV has all.

    See `narrow`; where all gains rest on as many seeds, the caption says on how many.

    Parameters
    ----------
    table
        Shown; ``low, high`` and the other columns of `GAIN` may be among its columns.
    data, formats, caption, about
        As for `house.show_table`; formats of columns that are not shown do no harm.
    """
    shown, wanted = narrow(table), {**FORMATS, **(formats or {})}
    seeds = set(table["seeds"]) - {0} if "seeds" in table else set()
    count = seeds.pop() if len(seeds) == 1 else 0
    told = f" {'One seed' if count == 1 else f'{count:g} seeds'} a row." if count else ""
    return show_table(
        shown,
        data=table if data is None else data,
        formats={
            column: form
            for column, form in wanted.items()
            if column in shown and (callable(form) or is_numeric_dtype(shown[column]))
        },
        caption=caption.strip() + told,
        **about,
    )


def narrow(table: pd.DataFrame) -> pd.DataFrame:
    """A table of gains without what a reader can do without.

    ``low`` and ``high`` become one column, a printed ``mark`` goes with its ``difference`` and ours
    with the gain, and columns without any value go, as do seeds where all rows have as many.
    """
    frame = table.drop(columns=["mark", "our mark", "high"], errors="ignore")
    for name in {"gain, %", "gain"} & set(table) if "our mark" in table else ():
        frame[name] = _marked(table[name], table["our mark"], ".2f")
    if "mark" in table:
        frame["difference"] = _marked(table["difference"], table["mark"], ".1f")
    if "low" in table:
        frame["low"] = [
            interval(low, high) or None
            for low, high in zip(table["low"], table["high"], strict=True)
        ]
    if "seeds" in table and len(set(table["seeds"]) - {0}) < 2:
        frame = frame.drop(columns="seeds")
    return frame.rename(columns={"low": INTERVAL}).dropna(axis=1, how="all")


def _marked(values: Iterable[float], marks: Iterable[str], form: str) -> list[str | None]:
    return [
        None if math.isnan(value) else f"{value:+{form}}{mark}"
        for value, mark in zip(values, marks, strict=True)
    ]


def interval(low: float, high: float) -> str:
    """An interval as pages print it, in one piece; nothing where there is none.

    >>> interval(-0.5, 1.25).replace(chr(160), " "), interval(math.nan, 1.0)
    ('-0.50 to +1.25', '')
    """
    return "" if math.isnan(low) else f"{low:+.2f}\u00a0to\u00a0{high:+.2f}"
