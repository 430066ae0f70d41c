"""Estimands of the effective fraction f(p) (Eq. 10): claims A8 to A13 and A21 of Paper A.

Each function is pure: evidence, claim and setting in; for each pair its named measures out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.claims.estimands_law import joint_law
from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.effects import fraction_draws
from mnmt_repro.papers.effects.cells import Cells, common_cells
from mnmt_repro.papers.effects.intervals import Measure, common_draws
from mnmt_repro.papers.effects.noise import drawn, drawn_beside


def _log_f(cells: Cells, losses: Array, claim: Claim, setting: Setting, pair: str) -> Array:
    """Log f (1 + B, W) at the weights that the claim names."""
    fit = joint_law(cells, claim, setting, pair)
    return fraction_draws.log_fractions(fit, claim.options["weights"], losses)


def fraction_contrast(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A8, A9, A10: log ratio of the fractions of two test sets, partners or directions.

    Where both sides read the same runs their noise is one. Two test sets get the same picks of
    residuals, from the same seed of the draws. Two cohorts get the same draws of the runs that
    both have.
    """
    options = claim.options

    def grid(cohort: str, test_set: str) -> dict[str, Cells]:
        return evidence.grid(claim, setting, cohort, test_set, weights=(*options["weights"], 1))

    same_test = options["between"] != "test_set"
    if same_test:
        first, second = (grid(cohort, setting.test_set) for cohort in setting.cohorts)
        matched = _match(first, second, options["pairs"])
    else:
        first = grid(setting.cohorts[0], setting.test_set)
        second = grid(setting.cohorts[0], setting.other_test_set)
        matched = [(pair, pair) for pair in sorted(set(first) & set(second))]
    units: Units = {}
    for a, b in matched:
        losses = drawn(first[a])
        if same_test:
            losses, others = drawn_beside(losses, first[a], second[b], seed=1)
        else:
            losses, others = common_draws(losses, drawn(second[b]))
        one = _log_f(first[a], losses, claim, setting, a)
        two = _log_f(second[b], others, claim, setting, b)
        name = a if a == b else f"{b} against {a}"
        inside = min(
            fraction_draws.interpolated(cells, options["weights"])
            for cells in (first[a], second[b])
        )
        units[name] = {"interpolated": Measure(value=inside), **fraction_draws.contrast(two - one)}
    return units


def fraction_trend(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A21: slope of log f on the similarity of generated languages, on the cells that all have."""
    weights = claim.options["weights"]
    grids = [
        evidence.grid(claim, setting, cohort, weights=(*weights, 1)) for cohort in setting.cohorts
    ]
    similarity = np.array([_similarity(cohort, setting.tier) for cohort in setting.cohorts])
    units: Units = {}
    for pair in sorted(set.intersection(*(set(grid) for grid in grids))):
        tables = common_cells([grid[pair] for grid in grids])
        log_f = [
            _log_f(cells, drawn(cells, seed=k), claim, setting, pair)
            for k, cells in enumerate(tables)
        ]
        inside = min(fraction_draws.interpolated(grid[pair], weights) for grid in grids)
        units[pair] = {
            **fraction_draws.slope_on(log_f, similarity),
            "cells": Measure(value=len(tables[0])),
            "interpolated": Measure(value=inside),
        }
    return units


def _similarity(cohort: str, tier: str) -> float:
    """How much of their lexicon the languages of a cohort share."""
    config = get_cohort(cohort, tier).corpus.conlang
    if config is None or isinstance(config.similarity, tuple):
        raise InputError(f"{cohort}: has no similarity that is one number")
    return config.similarity


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
