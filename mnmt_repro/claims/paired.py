"""Variants compared over the same directions and seeds: Paper B's way of judging a difference.

The score of a variant is its mean over directions (and seeds). Chance has two sources, and every
interval holds both: directions, which are resampled (all variants with the same draw), and the
seed, which moves all directions of a run together and so is invisible to a test over directions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.claims.evidence import Evidence, Measure, NoRowsYet
from mnmt_repro.claims.ledger import Scope
from mnmt_repro.claims.noise import DRAWS, measure, power
from mnmt_repro.cohorts.languages25 import old_model
from mnmt_repro.laws.checks import Array

_KEYS = ["cohort", "variant", "updates_share"]

ENOUGH = 5
"""Fewest degrees of freedom from which the noise of the seed is put into an interval."""


@dataclass(frozen=True)
class Variant:
    """What is compared: a named variant of a cohort, after a share of the baseline's updates."""

    cohort: str
    name: str
    share: float

    def __str__(self) -> str:
        return f"{self.cohort}: {self.name} at {self.share:g} of the updates"


def _variant(keys: tuple[str, str, float]) -> Variant:
    cohort, name, share = keys
    return Variant(cohort, name, round(share, 6))


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
    evidence, scope
        Whose rows are read: of the scope's tier, test set and domain. All its cohorts tell about
        the noise of the seed.
    pairs : tuple of str
        The directions.
    needs : ``{seeds: {cohort: count}, noise: degrees of freedom}``
        Seeds that a cohort's variants must have in common (1 unless named), and on how much the
        noise of the seed must rest.
    metric : str
    apart : bool
        Whether the luck of an old model, which all its upgrades of a seed share, is a noise of its
        own (`luck`). If not, as the claims' rules have it, it is part of every run's noise.
    blocked : bool
        Whether variants are paired by seed: each seed gives one difference, and the interval is
        Student's t over the seeds, with one degree of freedom fewer than there are seeds. What a
        seed gives to all variants alike, such as its old model, then cancels, and no noise is
        pooled over other variants. See `_seed_draws`.
    """

    evidence: Evidence
    scope: Scope
    pairs: tuple[str, ...]
    needs: dict[str, Any]
    metric: str = "cross_entropy"
    apart: bool = False
    blocked: bool = False

    @property
    def knows_noise(self) -> bool:
        """Whether intervals hold the noise of the seed; if not, they know of directions only."""
        return self.blocked or self.noise[1] >= ENOUGH

    @cached_property
    def scores(self) -> dict[Variant, pd.DataFrame]:
        """Of each variant in the scope's rows: a row a seed, a column a direction of the study."""
        frame = self.evidence.frame
        if not {"variant", "updates_share", self.metric} <= set(frame.columns):
            return {}
        rows = self._rows
        rows = rows[rows["pair"].isin(self.pairs)]
        table = rows.pivot_table(index=[*_KEYS, "seed"], columns="pair", values=self.metric)
        groups: Any = table.groupby(level=_KEYS)
        return {_variant(keys): mine.droplevel(_KEYS) for keys, mine in groups}

    @cached_property
    def _rows(self) -> pd.DataFrame:
        """The scope's rows of named variants that have the metric, in all directions."""
        rows = self.evidence.rows(self.scope, test_set=self.scope.test_set)
        return rows.dropna(subset=[*_KEYS, self.metric])  # others are no named variants

    @cached_property
    def _whole(self) -> set[Variant]:
        """Variants that have rows in all directions of the scope."""
        groups: Any = self._rows.groupby(_KEYS)["pair"].nunique()
        return {_variant(keys) for keys in groups.index[groups == groups.max()]}

    def table(self, variant: Variant) -> pd.DataFrame:
        """Scores of a variant, a row a seed that has all directions, a column a direction.

        Raises
        ------
        NoRowsYet
            Saying what is missing.
        """
        if variant not in self.scores:
            raise NoRowsYet(f"{variant}: no rows of {self.scope.test_set}, tier {self.scope.tier}")
        found = self.scores[variant].reindex(columns=list(self.pairs))
        whole = found.dropna()
        if whole.empty:
            missing = found.columns[found.isna().any()]
            raise NoRowsYet(f"{variant}: no row of {missing[0]} ({len(missing)} missing)")
        return whole

    def samples(self, *variants: Variant) -> list[Sample]:
        """Scores of several variants, over the seeds that all of them have.

        Raises
        ------
        NoRowsYet
            Saying what is missing: rows, seeds, or repetitions that tell the noise of the seed.
        """
        tables = [self.table(variant) for variant in variants]
        seeds = sorted(set.intersection(*(set(table.index) for table in tables)))
        wanted = self.needs.get("seeds", {})
        least = 2 if self.blocked else 1
        for variant in variants:
            if len(seeds) < (count := wanted.get(variant.cohort, least)):
                names = ", ".join(dict.fromkeys(each.name for each in variants))
                raise NoRowsYet(f"{variant.cohort}: {names} have {len(seeds)} of {count} seeds")
        return [
            self._sample(variant, table.loc[seeds].to_numpy())
            for variant, table in zip(variants, tables, strict=True)
        ]

    def _sample(self, variant: Variant, values: Array) -> Sample:
        by_direction = values.mean(0)
        drawn = by_direction[self._picks].mean(1)
        if self.blocked:
            means = np.log(values.mean(1))
            drawn *= np.exp(_seed_draws(len(values)) @ (means - means.mean()))
        elif self.knows_noise:
            drawn *= self._moved(str(variant), self.noise, len(values))
            if self.apart and (old := old_model(variant.name)):
                drawn *= self._moved(old, self.luck, len(values))
        return Sample(by_direction=by_direction, drawn=drawn)

    def _moved(self, by: str, noise: tuple[float, int], seeds: int) -> Array:
        """Factors (B,) by which a noise moves the mean of some seeds; the same for one name."""
        sd, freedom = noise
        random = np.random.default_rng(zlib.crc32(f"{by} {self.pairs}".encode()))
        return 1 + sd * random.standard_t(freedom, DRAWS) / math.sqrt(seeds)

    @cached_property
    def _picks(self) -> NDArray[np.intp]:
        count = len(self.pairs)
        return np.random.default_rng(0).integers(count, size=(DRAWS, count))

    @cached_property
    def noise(self) -> tuple[float, int]:
        """Relative standard deviation of a mean score over seeds, and its degrees of freedom.

        In each cohort of the scope the variants that have several seeds (each at its last budget)
        form a table of log means, variants by seeds; what its row and column means leave is noise.
        A part that one seed gives to all variants cancels when these are compared. Variants that
        lack some of the scope's directions are left out: they have another vocabulary, hence
        another such part, and are compared with none. Where luck counts `apart`, upgrades of each
        old model form a table of their own, and so do models from scratch.

        Raises
        ------
        NoRowsYet
            When the cross-entropies of all cohorts leave fewer degrees of freedom than needed.
        """
        squares, freedom = 0.0, 0
        for cohort in self.scope.cohorts:
            repeated = self._repeated(cohort)
            kin = repeated.index.map(old_model) if self.apart else [""] * len(repeated)
            for _, table in repeated.groupby(np.asarray(kin, dtype=str)):
                means = table.to_numpy()
                left = means - means.mean(1, keepdims=True) - means.mean(0) + means.mean()
                squares += float((left**2).sum())
                freedom += (means.shape[0] - 1) * (means.shape[1] - 1)
        if self.metric == "cross_entropy" and freedom < (least := self.needs.get("noise", 1)):
            raise NoRowsYet(
                f"{', '.join(self.scope.cohorts)}: the noise of the seed rests on {freedom} of "
                f"{least} degrees of freedom (variants with the same seeds)"
            )
        return (math.sqrt(squares / freedom) if freedom else 0.0), freedom

    @cached_property
    def luck(self) -> tuple[float, int]:
        """Noise that an old model gives to all its upgrades, and its degrees of freedom.

        How the distance of the upgrades' log mean from that of the models from scratch moves with
        the seed, in the cohorts that have both. What the latter share is in it, too.

        Raises
        ------
        NoRowsYet
            When no cohort has both with several seeds.
        """
        squares, freedom = 0.0, 0
        for cohort in self.scope.cohorts:
            repeated = self._repeated(cohort)
            upgraded = np.array([bool(old_model(name)) for name in repeated.index], dtype=bool)
            if upgraded.any() and not upgraded.all():
                distance = repeated[upgraded].mean() - repeated[~upgraded].mean()
                squares += float(((distance - distance.mean()) ** 2).sum())
                freedom += len(distance) - 1
        if not freedom:
            names = ", ".join(self.scope.cohorts)
            raise NoRowsYet(f"{names}: no upgrades and models from scratch with several seeds")
        return math.sqrt(squares / freedom), freedom

    def _repeated(self, cohort: str) -> pd.DataFrame:
        """Log mean scores of variants with several seeds: a row each, a column a shared seed."""
        last: dict[str, Variant] = {}
        for variant in self.scores:
            if variant.cohort == cohort and variant in self._whole:
                later = max(variant.share, last.get(variant.name, variant).share)
                last[variant.name] = Variant(cohort, variant.name, later)
        found = {}
        for name, variant in last.items():
            whole = self.scores[variant].reindex(columns=list(self.pairs)).dropna()
            if len(whole) > 1:
                found[name] = np.log(whole.mean(axis=1))
        together = pd.DataFrame(found).dropna()
        return together.T if len(together) > 1 else pd.DataFrame()


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


def study_of(
    evidence: Evidence,
    scope: Scope,
    options: Mapping[str, Any],
    pairs: tuple[str, ...],
    metric: str = "cross_entropy",
) -> Study:
    """The study that a claim's options ask for."""
    return Study(
        evidence=evidence,
        scope=scope,
        pairs=pairs,
        needs=options["needs"],
        metric=metric,
        apart=options.get("apart", False),
        blocked=options.get("blocked", False),
    )


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
    value = max(found for found, _ in gains)
    moved = np.array([drawn for _, drawn in gains])
    above, below = (np.quantile((sign * moved).max(0), 0.975) for sign in (1, -1))
    return Measure(value=value, low=value - float(above), high=value + float(below))


def gain_power(treated: Sample, control: Sample, effect: float) -> Measure:
    """Share of draws in which a true gain of +- `effect` per cent would have been seen."""
    drawn = deviations(lower_by, control, treated)
    return Measure(value=min(power(sign * effect + drawn, drawn, sign) for sign in (1, -1)))


def p_value(treated: Sample, control: Sample) -> Measure:
    """Paired t-test over directions, as in the paper.

    Of a single direction it is from the draws of the seed's noise, and at least one in as many as
    there are.
    """
    difference = control.by_direction - treated.by_direction
    if not difference.any():
        return Measure(value=1.0)
    if len(difference) > 1:
        return Measure(value=float(stats.ttest_1samp(difference, 0.0).pvalue))
    found, drawn = lower_by(control.value, treated.value), deviations(lower_by, control, treated)
    return Measure(value=float(1 + np.sum(np.abs(drawn) >= abs(found))) / (1 + len(drawn)))
