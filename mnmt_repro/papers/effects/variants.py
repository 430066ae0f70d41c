"""Variants compared over the same directions and seeds: Paper B's way of judging a difference.

The score of a variant is its mean over directions (and seeds). Chance has two sources, and every
interval holds both: directions, which are resampled (all variants with the same draw), and the
seed, which moves all directions of a run together and so is invisible to a test over directions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.cohorts.catalogue import declared
from mnmt_repro.papers.cohorts.software25_runs import CORPUS
from mnmt_repro.papers.effects.noise import (
    DRAWS,
    Measure,
    Measures,
    NoRowsYet,
    measure,
    resampled,
    t_mean,
)

_KEYS = ["cohort", "variant", "updates_share"]

ENOUGH = 5
"""Fewest degrees of freedom from which the noise of the seed is put into an interval."""

MAIN, TABLE3 = f"{CORPUS}-main", f"{CORPUS}-table3"
REPEATED = (MAIN, TABLE3)
"""Cohorts of which some runs have several seeds."""
WITH_MAIN_ALONE = tuple(
    f"{CORPUS}-{name}" for name in ("full", "table3", "noise", "schedule", "insertion")
)
"""Cohorts whose claims read the noise of the seed off the main condition besides, and no other."""
SIGNIFICANT = 0.05
MARGIN = 1.0
"""Per cent of a loss: the least gap that has shares."""
GAIN = ("gain, %", "low", "high", "p", "our mark")
"""Columns that tell of a gain: by how many per cent of the control's loss, 95 % interval, p-value
of the paired t-test over directions, and the paper's star where that is below 0.05."""
NO_GAIN: dict[str, Any] = dict.fromkeys(GAIN, math.nan) | {"our mark": ""}


@dataclass(frozen=True)
class VariantAt:
    """What is compared: a named variant of a cohort, after a share of the baseline's updates."""

    cohort: str
    name: str
    share: float

    def __str__(self) -> str:
        return f"{self.cohort}: {self.name} at {self.share:g} of the updates"


def _variant(keys: tuple[str, str, float]) -> VariantAt:
    cohort, name, share = keys
    return VariantAt(cohort, name, round(share, 6))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A variant's score: mean over seeds by direction (J,), their mean, and its draws (B,)."""

    by_direction: Array
    drawn: Array

    @property
    def value(self) -> float:
        return float(self.by_direction.mean())


@dataclass(frozen=True, kw_only=True)
class Study:
    """Scores of variants over chosen directions.

    Attributes
    ----------
    of : Variants
        Which variants, and how chance is counted.
    pairs : tuple of str
        The directions.
    metric : str
    """

    of: Variants
    pairs: tuple[str, ...]
    metric: str = "cross_entropy"

    @property
    def knows_noise(self) -> bool:
        """Whether intervals hold the noise of the seed; if not, they know of directions only."""
        return self.of.blocked or self.noise[1] >= ENOUGH

    @cached_property
    def scores(self) -> dict[VariantAt, pd.DataFrame]:
        """Of each variant: a row a seed, a column a direction of the study."""
        mine = self.of.scores(self.metric).reindex(columns=sorted(self.pairs)).dropna(how="all")
        groups: Any = mine.groupby(level=_KEYS)
        return {_variant(keys): table.droplevel(_KEYS) for keys, table in groups}

    @cached_property
    def _whole(self) -> set[VariantAt]:
        """Variants that have rows in as many directions as any."""
        counts = self.of.scores(self.metric).notna().groupby(level=_KEYS).any().sum(axis=1)
        return set(map(_variant, counts.index[counts == counts.max()]))

    def table(self, variant: VariantAt) -> pd.DataFrame:
        """Scores of a variant, a row a seed that has all directions, a column a direction.

        Raises
        ------
        NoRowsYet
            Saying what is missing.
        """
        if variant not in self.scores:
            raise NoRowsYet(f"its runs are not scored yet. Missing: {variant}, {self.of.test_set}")
        scores = self.scores[variant].reindex(columns=list(self.pairs))
        whole = scores.dropna()
        if whole.empty:
            missing = scores.columns[scores.isna().any()]
            raise NoRowsYet(f"{variant}: no row of {missing[0]} ({len(missing)} missing)")
        return whole

    def samples(self, *variants: VariantAt) -> list[Sample]:
        """Scores of several variants, over the seeds that all of them have.

        Raises
        ------
        NoRowsYet
            Saying what is missing: rows, seeds, or repetitions that tell the noise of the seed.
        """
        tables = [self.table(variant) for variant in variants]
        seeds = sorted(set.intersection(*(set(table.index) for table in tables)))
        wanted = self.of.needs.get("seeds", {})
        least = 2 if self.of.blocked else 1
        for variant in variants:
            if len(seeds) < (count := wanted.get(variant.cohort, least)):
                names = ", ".join(dict.fromkeys(each.name for each in variants))
                raise NoRowsYet(f"{variant.cohort}: {names} have {len(seeds)} of {count} seeds")
        return [
            self._sample(variant, table.loc[seeds].to_numpy())
            for variant, table in zip(variants, tables, strict=True)
        ]

    def _sample(self, variant: VariantAt, values: Array) -> Sample:
        by_direction = values.mean(0)
        drawn = by_direction[resampled(len(self.pairs))].mean(1)
        if self.of.blocked:
            means = np.log(values.mean(1))
            drawn *= np.exp(_seed_draws(len(values)) @ (means - means.mean()))
        elif self.knows_noise:
            sd, freedom = self.noise  # which moves a variant the same way in every comparison
            random = np.random.default_rng(zlib.crc32(f"{variant} {self.pairs}".encode()))
            drawn *= 1 + sd * random.standard_t(freedom, DRAWS) / math.sqrt(len(values))
        return Sample(by_direction=by_direction, drawn=drawn)

    @cached_property
    def noise(self) -> tuple[float, int]:
        """Relative standard deviation of a mean score over seeds, and its degrees of freedom.

        In each cohort the variants that have several seeds (each at its last budget)
        form a table of log means, variants by seeds; what its row and column means leave is noise.
        A part that one seed gives to all variants cancels when these are compared. Variants that
        lack some directions are left out: they have another vocabulary, hence another such part,
        and are compared with none.

        Raises
        ------
        NoRowsYet
            When the cross-entropies of all cohorts leave fewer degrees of freedom than needed.
        """
        squares, freedom = 0.0, 0
        for cohort in self.of.cohorts:
            repeated = self._repeated(cohort)
            if len(repeated):
                left, spare = left_by_means(repeated.to_numpy())
                squares, freedom = squares + left, freedom + spare
        if self.metric == "cross_entropy" and freedom < (least := self.of.needs.get("noise", 1)):
            raise NoRowsYet(
                f"{', '.join(self.of.cohorts)}: the noise of the seed rests on {freedom} of "
                f"{least} degrees of freedom (variants with the same seeds)"
            )
        return (math.sqrt(squares / freedom) if freedom else 0.0), freedom

    def _repeated(self, cohort: str) -> pd.DataFrame:
        """Log mean scores of variants with several seeds: a row each, a column a shared seed."""
        last = {  # shares rise, so that the last one of a name stays
            variant.name: variant
            for variant in self.scores
            if variant.cohort == cohort and variant in self._whole
        }
        logs = {}
        for name, variant in last.items():
            whole = self.scores[variant].reindex(columns=list(self.pairs)).dropna()
            if len(whole) > 1:
                logs[name] = np.log(whole.mean(axis=1))
        together = pd.DataFrame(logs).dropna()
        return together.T if len(together) > 1 else pd.DataFrame()


def left_by_means(table: Array) -> tuple[float, int]:
    """Sum of squares that row and column means leave in a table, and its degrees of freedom."""
    left = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    return float((left**2).sum()), (table.shape[0] - 1) * (table.shape[1] - 1)


@cache
def _seed_draws(seeds: int) -> Array:
    """Weights (B, S) of the seeds in each draw of a blocked study; the same for all variants.

    Multiplied with the deviations of a variant's score by seed, they give normal draws of the error
    of its mean over seeds. Dividing each draw by the root of a chi-square over its degrees of
    freedom makes them Student's t. Because all variants have the same weights, the draws of any
    difference of two variants are exactly those of a paired t-test over the seeds.
    """
    random = np.random.default_rng(1)
    freedom = seeds - 1
    normal = random.standard_normal((DRAWS, seeds))
    scale = np.sqrt(random.chisquare(freedom, DRAWS) / freedom)
    return normal / scale[:, None] / math.sqrt(seeds * freedom)


@dataclass(frozen=True, kw_only=True, eq=False)
class Variants:
    """The named runs of a cohort, at one tier and test set, over groups of directions.

    What needs a run that is not stored raises `NoRowsYet`; a method that fills a table gives NaN.

    Attributes
    ----------
    rows : DataFrame
        From `results.load`; read are those of the domain ``all``.
    cohorts : tuple of str
        The cohort of the runs, then others that tell about the noise of the seed.
    tier, test_set : str
    needs : ``{seeds: {cohort: count}, noise: degrees of freedom}``
        Seeds that a cohort's variants must have in common (1 unless named), and on how much the
        noise of the seed must rest.
    blocked : bool
        Whether variants are paired by seed: each seed gives one difference, and the interval is
        Student's t over the seeds, with one degree of freedom fewer than there are seeds. What a
        seed gives to all variants alike, such as its old model, then cancels, and no noise is
        pooled over other variants. See `_seed_draws`.
    """

    rows: pd.DataFrame
    cohorts: tuple[str, ...]
    tier: str = "mini"
    test_set: str = "indomain"
    needs: Mapping[str, Any] = field(default_factory=lambda: {"noise": 0})
    blocked: bool = False
    _studies: dict[tuple[tuple[str, ...], str], Study] = field(
        default_factory=dict, init=False, repr=False
    )
    _scores: dict[str, pd.DataFrame] = field(default_factory=dict, init=False, repr=False)

    @property
    def cohort(self) -> str:
        """Whose runs are compared."""
        return self.cohorts[0]

    def variant(self, name: str, share: float) -> VariantAt:
        """A run of the cohort by its name and its share of the baselines' updates."""
        return VariantAt(self.cohort, name, share)

    def of(self, *cohorts: str) -> pd.DataFrame:
        """Rows of some cohorts."""
        rows = self.rows[self.rows["cohort"].isin(cohorts)]  # few are left
        mine = (rows["tier"] == self.tier) & (rows["test_set"] == self.test_set)
        return rows[mine & (rows["domain"] == "all")]

    @property
    def own(self) -> pd.DataFrame:
        """Rows of the cohort itself."""
        return self.of(self.cohort)

    def scores(self, metric: str) -> pd.DataFrame:
        """A row a variant and seed, by `_KEYS` and ``seed``, and a column a trained direction."""
        if metric not in self._scores:
            rows = self.of(*self.cohorts)
            trained = rows[rows["p"] > 0].reindex(columns=[*_KEYS, "seed", "pair", metric])
            known = trained.dropna(subset=[*_KEYS, metric])
            self._scores[metric] = known.pivot_table(
                index=[*_KEYS, "seed"], columns="pair", values=metric
            )
        return self._scores[metric]

    def study(self, pairs: tuple[str, ...], metric: str = "cross_entropy") -> Study:
        """Scores over some directions."""
        if (pairs, metric) not in self._studies:
            self._studies[pairs, metric] = Study(of=self, pairs=pairs, metric=metric)
        return self._studies[pairs, metric]

    def samples(
        self, pairs: tuple[str, ...], *variants: VariantAt, metric: str = "cross_entropy"
    ) -> list[Sample]:
        """Scores over the seeds that all variants have; raises as `Study.samples`."""
        return self.study(pairs, metric).samples(*variants)

    def by_direction(
        self, variant: VariantAt, pairs: tuple[str, ...], metric: str = "cross_entropy"
    ) -> pd.Series[float]:
        """Mean score over seeds of each direction, all NaN where the run is not stored."""
        try:
            return self.study(pairs, metric).table(variant).mean()
        except NoRowsYet:
            return pd.Series(math.nan, index=list(pairs))

    def mean(
        self, variant: VariantAt, pairs: tuple[str, ...], metric: str = "cross_entropy"
    ) -> float:
        """Mean score over directions and seeds, NaN where the run is not stored."""
        return float(self.by_direction(variant, pairs, metric).mean(skipna=False))

    def seeds(self, pairs: tuple[str, ...], *variants: VariantAt) -> int:
        """How many seeds all variants have."""
        try:
            tables = [self.study(pairs).table(variant) for variant in variants]
        except NoRowsYet:
            return 0
        return len(set.intersection(*(set(table.index) for table in tables)))

    def gain(
        self, treated: VariantAt, control: VariantAt, pairs: tuple[str, ...]
    ) -> dict[str, Any]:
        """The columns `GAIN` of a variant over its control; NaN where a run is not stored.

        Interval and p-value of a single direction are NaN where no noise of the seed is known.
        """
        try:
            both = self.samples(pairs, treated, control)
        except NoRowsYet:
            return NO_GAIN
        measured, p = gain(*both), p_value(*both)
        if len(pairs) == 1 and not self.study(pairs).knows_noise:
            measured, p = Measure(value=measured.value), math.nan
        values = (measured.value, measured.low, measured.high, p, star(p < SIGNIFICANT))
        return dict(zip(GAIN, values, strict=True))


def variants_of(
    rows: pd.DataFrame, cohort: str, *, tier: str = "mini", test_set: str = "indomain"
) -> Variants:
    """The named runs of a cohort as pages show them: one seed does.

    The noise of the seed is that of the claims about the cohort, so that a table and the verdict
    beside it have the same intervals.

    Raises
    ------
    InputError
        When runs of the cohort are stored, and none was scored on the test set.
    """
    mine = (rows["cohort"] == cohort) & (rows["tier"] == tier)
    known = sorted(set(rows.loc[mine, "test_set"]))
    if known and test_set not in known:
        raise InputError(
            f"test_set = {test_set!r}: no such rows are stored of {cohort}; values "
            f"there are: {', '.join(known)}"
        )
    others = () if cohort == MAIN else (MAIN,) if cohort in WITH_MAIN_ALONE else REPEATED
    return Variants(rows=rows, cohorts=(cohort, *others), tier=tier, test_set=test_set)


def latest_variants(
    rows: pd.DataFrame, cohort: str, *, tier: str = "mini", test_set: str = "indomain"
) -> Variants:
    """The named runs of a cohort on their fresh seeds, paired by seed, once all are stored.

    Until then, those of its first round (`variants_of`). Variants that no claim reads are in the
    first round alone.
    """
    fresh = f"{cohort}-fresh"
    for each in declared(tier):
        mine = rows.loc[(rows["cohort"] == fresh) & (rows["test_set"] == test_set), "config_hash"]
        if each.name == fresh and {run.config_hash for run in each.runs()} <= set(mine):
            return Variants(rows=rows, cohorts=(fresh,), tier=tier, test_set=test_set, blocked=True)
    return variants_of(rows, cohort, tier=tier, test_set=test_set)


def star(marked: bool) -> str:
    """The paper's mark of a significant difference."""
    return "*" if marked else ""


def functional(function: Callable[..., Any], *samples: Sample) -> Measure:
    """Any function of mean scores, with the interval of its draws."""
    value = float(function(*(sample.value for sample in samples)))
    return measure(value, deviations(function, *samples))


def deviations(function: Callable[..., Any], *samples: Sample) -> Array:
    """How far a function of mean scores moves in each draw (B,)."""
    value = function(*(sample.value for sample in samples))
    return np.asarray(function(*(sample.drawn for sample in samples)) - value)


def lower_by(control: Any, treated: Any) -> Any:
    """By how many per cent of the control's loss the treated one is lower."""
    return 100 * (control - treated) / control


def gain(treated: Sample, control: Sample) -> Measure:
    """By how many per cent of the control's mean cross-entropy the treated variant is better."""
    return functional(lower_by, control, treated)


def largest(gains: list[tuple[float, Array]]) -> Measure:
    """The largest of several gains, each with its deviations (B,).

    Whichever it is owes something to chance, so the interval is one for all of them at once: the
    largest true gain is off the largest seen by no more than the most that any of them is off.
    """
    value = max(gain for gain, _ in gains)
    moved = np.array([drawn for _, drawn in gains])
    above, below = (np.quantile((sign * moved).max(0), 0.975) for sign in (1, -1))
    return Measure(value=value, low=value - float(above), high=value + float(below))


def _turned(measure: Measure) -> Measure:
    """The same with the other sign."""
    return Measure(value=-measure.value, low=-measure.high, high=-measure.low)


def lead(chosen: Sample, others: Iterable[Sample]) -> Measure:
    """Gain over the best of the others, in per cent: the least over any of them."""
    return _turned(largest([_signed(-1, chosen, other) for other in others]))


def best_gain(control: Sample, others: Iterable[Sample]) -> Measure:
    """Gain of the best of several over their control, in per cent."""
    return largest([_signed(1, other, control) for other in others])


def largest_change(pairs: Iterable[tuple[Sample, Sample]]) -> Measure:
    """The largest size of several gains of either sign, in per cent: treated and control."""
    return largest([_signed(sign, *pair) for pair in pairs for sign in (1, -1)])


def _signed(sign: int, treated: Sample, control: Sample) -> tuple[float, Array]:
    """A gain times `sign`, with its deviations (B,)."""
    gain = lower_by(control.value, treated.value)
    return sign * gain, sign * deviations(lower_by, control, treated)


def gain_out_less_into(out: Sequence[Sample], into: Sequence[Sample]) -> Measure:
    """Mean gain of upgraded models out of English less that into English, in per cent.

    Each list begins with the baseline; both are over the same languages in the same order. The
    interval is Student's t over languages: four drawn again would be too narrow.
    """

    def gains(samples: Sequence[Sample]) -> Array:
        baseline, *upgraded = (sample.by_direction for sample in samples)
        return np.mean([lower_by(baseline, each) for each in upgraded], axis=0)

    return t_mean(gains(out) - gains(into))


def gap_shares(treated: Sample, control: Sample, start: Sample) -> Measures:
    """Share of the gap between the early and the full baseline that is closed.

    Beside it the baseline's perplexity over the treated model's. The share is NaN where the gap is
    not above `MARGIN` per cent with its whole interval above zero.
    """
    gap = functional(lower_by, start, control)
    perplexity = functional(lambda t, c: np.exp(c - t), treated, control)
    closed = Measure(value=float("nan"))
    if gap.value >= MARGIN and gap.low > 0:
        closed = functional(lambda t, c, s: (s - t) / (s - c), treated, control, start)
    return {"closed": closed, "perplexity_ratio": perplexity}


def p_value(treated: Sample, control: Sample) -> float:
    """Paired t-test over directions, as in the paper.

    Of a single direction it is from the draws of the seed's noise, and at least one in as many as
    there are.
    """
    difference = control.by_direction - treated.by_direction
    if not difference.any():
        return 1.0
    if len(difference) > 1:
        return float(stats.ttest_1samp(difference, 0.0).pvalue)
    gain, drawn = lower_by(control.value, treated.value), deviations(lower_by, control, treated)
    return float(1 + np.sum(np.abs(drawn) >= abs(gain))) / (1 + len(drawn))
