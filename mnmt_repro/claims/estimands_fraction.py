"""Estimands of the effective fraction f(p) (Eq. 10): claims A8 to A13 and A21 of Paper A.

Each function is pure: evidence, claim and scope in; for each pair its named measures out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnmt_repro.analysis import fraction_draws
from mnmt_repro.analysis.cells import Cells, common_cells
from mnmt_repro.analysis.intervals import Measure, measure
from mnmt_repro.claims.estimands_law import draws_of, joint_law
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.cohorts.catalogue import get_cohort
from mnmt_repro.errors import InputError


def _fractions(
    cells: Cells, scope: Scope, pair: str, weights: tuple[float, ...], claim: Claim, seed: int = 0
) -> fraction_draws.Fractions:
    fit = joint_law(cells, claim, scope, pair)
    return fraction_draws.Fractions.drawn(fit, weights, draws_of(claim), seed)


def fraction_contrast(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A8, A9, A10: log ratio of the fractions of two test sets, partners or directions.

    Where both sides read the same runs their noise is one: the same for one test set, as far as
    the residuals go together for two.
    """
    assert claim.alternative is not None
    options = claim.options
    weights = tuple(options["weights"])

    def grid(cohort: str, test_set: str) -> dict[str, Cells]:
        return evidence.grid(claim, scope, cohort, test_set, weights=(*weights, 1))

    same_test = options["between"] != "test_set"
    if same_test:
        first, second = (grid(cohort, scope.test_set) for cohort in scope.cohorts)
        matched = _match(first, second, options["pairs"])
    else:
        first = grid(scope.cohorts[0], scope.test_set)
        second = grid(scope.cohorts[0], scope.other_test_set)
        matched = [(pair, pair) for pair in sorted(set(first) & set(second))]
    units: Units = {}
    for a, b in matched:
        one = _fractions(first[a], scope, a, weights, claim)
        fit = joint_law(second[b], claim, scope, b)
        two = one.beside(
            fit, fraction_draws.same_runs(first[a], one.fit, second[b], fit, scope.n), same_test
        )
        signs = (1, -1) if claim.alternative.sides == 2 else (1,)
        name = a if a == b else f"{b} against {a}"
        inside = min(fraction_draws.interpolated(cells, weights) for cells in (first[a], second[b]))
        units[name] = {"interpolated": Measure(value=inside)} | fraction_draws.contrast(
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
    grids = [evidence.grid(claim, scope, cohort, weights=(*weights, 1)) for cohort in scope.cohorts]
    similarity = np.array([_similarity(cohort, scope.tier) for cohort in scope.cohorts])
    units: Units = {}
    for pair in sorted(set.intersection(*(set(grid) for grid in grids))):
        laws = [
            _fractions(cells, scope, pair, weights, claim, seed=k)
            for k, cells in enumerate(common_cells([grid[pair] for grid in grids]))
        ]
        inside = min(fraction_draws.interpolated(grid[pair], weights) for grid in grids)
        slope, spread, power = fraction_draws.slope_on(laws, similarity, claim.alternative.effect)
        units[pair] = {
            "slope": slope,
            "spread": spread,
            "cells": Measure(value=laws[0].fit.observations),
            "interpolated": Measure(value=inside),
            "power": power,
        }
    return units


def _similarity(cohort: str, tier: str) -> float:
    """How much of their lexicon the languages of a cohort share."""
    config = get_cohort(cohort, tier).corpus.conlang
    if config is None or isinstance(config.similarity, tuple):
        raise InputError(f"{cohort}: has no similarity that is one number")
    return config.similarity


def neutral_fraction(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A13: log of f(p) over p."""
    assert claim.alternative is not None
    weights = tuple(claim.options["weights"])
    effect = claim.alternative.effect
    log_p = np.log(weights)
    units: Units = {}
    for pair, cells in evidence.grid(claim, scope, weights=(*weights, 1)).items():
        f = _fractions(cells, scope, pair, weights, claim)
        alternatives = [(sign, f.draws_with(log_p + sign * effect) - log_p) for sign in (1, -1)]
        inside = Measure(value=fraction_draws.interpolated(cells, weights))
        found = fraction_draws.contrast(f.log_f - log_p, f.draws - log_p, alternatives)
        units[pair] = {"interpolated": inside} | found
    return units


def relative_capacity(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A11, A12: f(p) over p at one small weight."""
    p, wanted = claim.options["weight"], claim.options["pairs"]
    units: Units = {}
    grid = evidence.grid(claim, scope, weights=(p, 1))
    for pair in named_pairs(sorted(grid), wanted):
        f = _fractions(grid[pair], scope, pair, (p,), claim)
        log = measure(f.log_f[0] - np.log(p), f.draws[:, 0] - f.log_f[0])
        units[pair] = {
            "capacity": Measure(
                value=float(np.exp(log.value)),
                low=float(np.exp(log.low)),
                high=float(np.exp(log.high)),
            ),
            "interpolated": Measure(value=fraction_draws.interpolated(grid[pair], (p,))),
        }
    return units


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
