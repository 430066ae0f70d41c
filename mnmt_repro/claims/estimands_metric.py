"""Estimands of translation quality: claims A16 and A18 of Paper A."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from mnmt_repro.analysis.intervals import Measure, NoRowsYet
from mnmt_repro.claims.estimands_fraction import named_pairs
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.ledger import Claim, Scope


class Line(NamedTuple):
    """How well a straight line describes scores against losses; see `straight_line`."""

    r: float  # Pearson's
    low: float  # of a 95 % interval, Fisher's z
    high: float
    curvature_gain: float  # what a quadratic term adds to r²


def straight_line(loss: ArrayLike, score: ArrayLike) -> Line:
    """Correlation of scores with losses, three of them or more."""
    x, y = np.asarray(loss, dtype=float), np.asarray(score, dtype=float)
    pearson = stats.pearsonr(x, y)
    interval = pearson.confidence_interval(0.95)
    bent = np.polynomial.Polynomial.fit(x, y, 2)(x)
    r = float(pearson.statistic)
    gain = float(1 - np.var(y - bent) / np.var(y)) - r**2
    return Line(r=r, low=float(interval.low), high=float(interval.high), curvature_gain=gain)


def metric_linear(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """Correlation of a metric with cross-entropy over decoded cells, and its curvature."""
    options, metric = claim.options, claim.options["metric"]
    decoded = evidence.cells(scope, scope.cohorts[0], scored=metric)
    units: Units = {}
    for pair in named_pairs(sorted(decoded["pair"].unique()), options["pairs"]):
        rows = decoded[decoded["pair"] == pair]
        if len(rows) < options["needs"]["cells"]:
            continue
        line = straight_line(rows["cross_entropy"], rows[metric])
        units[pair] = {
            "correlation": Measure(value=line.r, low=line.low, high=line.high),
            "r2": Measure(value=line.r**2),
            "curvature_gain": Measure(value=line.curvature_gain),
            "metric_range": Measure(value=float(np.ptp(rows[metric]))),
        }
    if not units:
        raise NoRowsYet(
            f"{scope.cohorts[0]}, {scope.test_set}: fewer than {options['needs']['cells']} "
            f"cells decoded and scored with {metric}"
        )
    return units
