"""Estimands of the effective fraction f(p) (Eq. 10): claims A8 to A13 and A21 of Paper A.

Each function is pure: evidence, claim and scope in; for each pair its named measures out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.analysis.intervals import Measure, Measures, NoRowsYet, measure, power
from mnmt_repro.analysis.noise import curve
from mnmt_repro.claims.estimands_law import draws_of, errors_of, joint_law
from mnmt_repro.claims.evidence import Cells, Evidence, Units
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.errors import InputError
from mnmt_repro.experiments.catalogue import get_cohort
from mnmt_repro.laws import JointLawFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.effective import log_fraction


@dataclass(frozen=True)
class Fractions:
    """Log f(p) of one joint law at some weights, with its draws under noise.

    The noise is that of the law: of one size for all rows, or in proportion to the loss where
    relative errors were least. Where the law's noise is of one size and that of the runs in
    proportion to their loss, a 95 % interval holds the truth some nine times in ten
    (`tests/test_claims.py` simulates it).

    Attributes
    ----------
    fit : the joint law
    weights : where f is asked for
    noise : (B, m)
        Standard normal, for each row of the law.
    """

    fit: JointLawFit
    weights: tuple[float, ...]
    noise: Array

    @classmethod
    def of_cells(
        cls, cells: Cells, n: str, pair: str, weights: tuple[float, ...], claim: Claim
    ) -> Fractions:
        """From the joint law of a pair's cells, with noise of its own."""
        fit = joint_law(cells, n, pair, errors=errors_of(claim))
        noise = np.random.default_rng(0).standard_normal((draws_of(claim), fit.observations))
        return cls(fit, weights, noise)

    def of(self, values: Array) -> Array:
        """Log f(p) (B, W) at parameters (B, P) of the law."""
        every = log_fraction(values, int(self.fit.index(1.0)[0]))
        return every[:, self.fit.index(self.weights)]

    @cached_property
    def log_f(self) -> Array:
        """At the fit, (W,)."""
        return self.of(np.array(self.fit.values)[None])[0]

    @cached_property
    def draws(self) -> Array:
        """Refitted under noise, (B, W)."""
        return self._refitted(self.fit.fitted())

    def draws_with(self, log_f: Array) -> Array:
        """Refitted to draws from the same law with other fractions `log_f` (W,)."""
        values = np.array(self.fit.values)
        one = 2 + int(self.fit.index(1.0)[0])
        values[2 + self.fit.index(self.weights)] = values[one] * np.exp(-values[0] * log_f)
        return self._refitted(
            curve(values[None], np.array(self.fit.group), np.array(self.fit.n))[0]
        )

    def _refitted(self, mean: Array) -> Array:
        return self.of(self.fit.refit(mean + self.fit.noise_sd() * self.noise))


def fraction_contrast(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A8, A9, A10: log ratio of the fractions of two test sets, partners or directions.

    Where both sides read the same runs their noise is one: the same for one test set, as far as
    the residuals go together for two.
    """
    assert claim.alternative is not None
    options = claim.options
    weights = tuple(options["weights"])

    def grid(cohort: str, test_set: str) -> dict[str, Cells]:
        return evidence.grid(scope, cohort, options["needs"], test_set, weights=(*weights, 1))

    same_test = options["between"] != "test_set"
    if same_test:
        first, second = (grid(cohort, scope.test_set) for cohort in scope.cohorts)
        matched = _match(first, second, options["pairs"])
    else:
        first = grid(scope.cohorts[0], scope.test_set)
        second = grid(scope.cohorts[0], scope.other_test_set)
        matched = [(pair, pair) for pair in sorted(set(first) & set(second))]
    if not matched:
        raise NoRowsYet("no pair is in both of what is compared")
    units: Units = {}
    for a, b in matched:
        one = Fractions.of_cells(first[a], scope.n, a, weights, claim)
        fit = joint_law(second[b], scope.n, b, errors=errors_of(claim))
        shared = _same_runs(first[a], one.fit, second[b], fit, scope.n)
        two = Fractions(fit, weights, _noise_beside(one, fit, shared, same_test))
        signs = (1, -1) if claim.alternative.sides == 2 else (1,)
        name = a if a == b else f"{b} against {a}"
        inside = min(interpolated(cells, weights) for cells in (first[a], second[b]))
        units[name] = {"interpolated": Measure(value=inside)} | _contrast(
            two.log_f - one.log_f,
            two.draws - one.draws,
            [
                (sign, two.draws_with(one.log_f + sign * claim.alternative.effect) - one.draws)
                for sign in signs
            ],
        )
    return units


def fraction_trend(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A21: slope of log f on the similarity of generated languages, on the cells that all have."""
    assert claim.alternative is not None
    options = claim.options
    weights = tuple(options["weights"])
    grids = [
        evidence.grid(scope, cohort, options["needs"], weights=(*weights, 1))
        for cohort in scope.cohorts
    ]
    similarity = np.array([_similarity(cohort, scope.tier) for cohort in scope.cohorts])
    away = similarity - similarity.mean()
    slope_of = away / (away**2).sum()
    units: Units = {}
    for pair in sorted(set.intersection(*(set(grid) for grid in grids))):
        laws = []
        for k, cells in enumerate(common_cells([grid[pair] for grid in grids])):
            fit = joint_law(cells, scope.n, pair, errors=errors_of(claim))
            noise = np.random.default_rng(k).standard_normal((draws_of(claim), fit.observations))
            laws.append(Fractions(fit, weights, noise))

        def slopes(draws: list[Array]) -> Array:
            return np.tensordot(slope_of, np.array([each.mean(1) for each in draws]), 1)

        seen = np.array([law.log_f for law in laws])  # (cohorts, W)
        value = float(slope_of @ seen.mean(1))
        deviations = slopes([law.draws for law in laws]) - value
        powers = []
        for sign in (1, -1):
            tilted = seen.mean(0) + sign * claim.alternative.effect * away[:, None]
            under = slopes([law.draws_with(f) for law, f in zip(laws, tilted, strict=True)])
            powers.append(power(under, deviations, sign))
        units[pair] = {
            "slope": measure(value, deviations),
            "spread": Measure(value=float(np.ptp(seen.mean(1)))),
            "cells": Measure(value=laws[0].fit.observations),
            "interpolated": Measure(value=min(interpolated(g[pair], weights) for g in grids)),
            "power": Measure(value=min(powers)),
        }
    if not units:
        raise NoRowsYet("no pair is in all of what is compared")
    return units


def _similarity(cohort: str, tier: str) -> float:
    """How much of their lexicon the languages of a cohort share."""
    config = get_cohort(cohort, tier).corpus.conlang
    if config is None or isinstance(config.similarity, tuple):
        raise InputError(f"{cohort}: has no similarity that is one number")
    return config.similarity


def common_cells(tables: Sequence[Cells]) -> list[Cells]:
    """Of each table the cells whose weight and size all tables have."""
    keys = ["p", "n_non_embedding"]
    shared = set.intersection(*(set(map(tuple, table[keys].to_numpy())) for table in tables))
    return [
        table[[tuple(row) in shared for row in table[keys].to_numpy()]].reset_index(drop=True)
        for table in tables
    ]


def _same_runs(
    cells: Cells, fit: JointLawFit, others: Cells, other: JointLawFit, n: str
) -> NDArray[np.intp]:
    """Rows (s, 2) of two laws whose cells come from the same runs."""

    def runs(cells: Cells, fit: JointLawFit) -> list[str]:
        of = {(p, size): ids for p, size, ids in cells[["p", n, "runs"]].itertuples(index=False)}
        return [of[fit.p[group], size] for group, size in zip(fit.group, fit.n, strict=True)]

    place = {ids: row for row, ids in enumerate(runs(cells, fit))}
    found = [(place[ids], row) for row, ids in enumerate(runs(others, other)) if ids in place]
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _noise_beside(
    one: Fractions, fit: JointLawFit, shared: NDArray[np.intp], same_test: bool
) -> Array:
    """Noise (B, m) of a law beside another: common in runs that both read."""
    noise = np.random.default_rng(10).standard_normal((len(one.noise), fit.observations))
    if len(shared):
        mine, theirs = shared.T
        together = 1.0
        if not same_test:
            left = [(law.observed() - law.fitted()) / law.noise_sd() for law in (one.fit, fit)]
            together = float(np.corrcoef(left[0][mine], left[1][theirs])[0, 1])
        apart = np.sqrt(1 - together**2)
        noise[:, theirs] = together * one.noise[:, mine] + apart * noise[:, theirs]
    return noise


def neutral_fraction(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A13: log of f(p) over p."""
    assert claim.alternative is not None
    weights = tuple(claim.options["weights"])
    effect = claim.alternative.effect
    log_p = np.log(weights)
    units: Units = {}
    needs = claim.options["needs"]
    for pair, cells in evidence.grid(scope, scope.cohorts[0], needs, weights=(*weights, 1)).items():
        f = Fractions.of_cells(cells, scope.n, pair, weights, claim)
        alternatives = [(sign, f.draws_with(log_p + sign * effect) - log_p) for sign in (1, -1)]
        units[pair] = {"interpolated": Measure(value=interpolated(cells, weights))} | _contrast(
            f.log_f - log_p, f.draws - log_p, alternatives
        )
    return units


def relative_capacity(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A11, A12: f(p) over p at one small weight."""
    p, wanted = claim.options["weight"], claim.options["pairs"]
    units: Units = {}
    grid = evidence.grid(scope, scope.cohorts[0], claim.options["needs"], weights=(p, 1))
    for pair in named_pairs(sorted(grid), wanted):
        f = Fractions.of_cells(grid[pair], scope.n, pair, (p,), claim)
        log = measure(f.log_f[0] - np.log(p), f.draws[:, 0] - f.log_f[0])
        units[pair] = {
            "capacity": Measure(
                value=float(np.exp(log.value)),
                low=float(np.exp(log.low)),
                high=float(np.exp(log.high)),
            ),
            "interpolated": Measure(value=interpolated(grid[pair], (p,))),
        }
    return units


def interpolated(cells: Cells, weights: Sequence[float]) -> int:
    """How many sizes at each of the weights, at least, have a loss that a single pair also has.

    A fraction is read off the losses of single-pair models. Beyond the range of those losses it is
    an extrapolation.
    """
    single = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(single.min(), single.max())
    return min(int((inside & (cells["p"] == p)).sum()) for p in weights)


def named_pairs(present: Sequence[str], wanted: Sequence[str] | str) -> list[str]:
    """Pick the wanted pairs that are present; all where none is, or ``"all"`` is wanted."""
    named = [pair for pair in present if pair in wanted] if not isinstance(wanted, str) else []
    return named or list(present)


def _match(first: dict[str, Cells], second: dict[str, Cells], how: str) -> list[tuple[str, str]]:
    """Pairs to compare: the same, or each with its reverse; in sorted order where none is."""

    def partner(pair: str) -> str:
        return pair if how == "common" else "-".join(reversed(pair.split("-")))

    found = [(pair, partner(pair)) for pair in sorted(first) if partner(pair) in second]
    return found or list(zip(sorted(first), sorted(second), strict=False))


def _contrast(log_ratio: Array, draws: Array, alternatives: list[tuple[int, Array]]) -> Measures:
    """Mean and largest of log ratios (W,), with noise (B, W) and alternatives [(sign, (B, W))]."""
    value = float(log_ratio.mean())
    deviations = draws.mean(1) - value
    powers = [power(under.mean(1), deviations, sign) for sign, under in alternatives]
    return {
        "mean_log_ratio": measure(value, deviations),
        "max_log_ratio": Measure(value=float(np.abs(log_ratio).max())),
        "power": Measure(value=min(powers)),
    }
