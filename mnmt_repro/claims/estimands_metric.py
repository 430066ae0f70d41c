"""Estimands of translation quality: claims A16 and A18 of Paper A."""

from __future__ import annotations

import numpy as np
from scipy import stats

from mnmt_repro.claims.estimands_fraction import named_pairs
from mnmt_repro.claims.evidence import Evidence, Measure, NoRowsYet, Units
from mnmt_repro.claims.ledger import Claim, Scope


def metric_linear(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """Correlation of a metric with cross-entropy over decoded cells, and its curvature."""
    options, metric = claim.options, claim.options["metric"]
    decoded = evidence.cells(scope, scope.cohorts[0], scored=metric)
    units: Units = {}
    for pair in named_pairs(sorted(decoded["pair"].unique()), options["pairs"]):
        rows = decoded[decoded["pair"] == pair]
        if len(rows) < options["needs"]["cells"]:
            continue
        x, y = rows["cross_entropy"].to_numpy(), rows[metric].to_numpy()
        pearson = stats.pearsonr(x, y)
        interval = pearson.confidence_interval(0.95)
        quadratic = np.polynomial.Polynomial.fit(x, y, 2)(x)
        r2 = float(pearson.statistic**2)
        units[pair] = {
            "correlation": Measure(
                value=float(pearson.statistic), low=float(interval.low), high=float(interval.high)
            ),
            "r2": Measure(value=r2),
            "curvature_gain": Measure(value=float(1 - np.var(y - quadratic) / np.var(y)) - r2),
            "metric_range": Measure(value=float(np.ptp(y))),
        }
    if not units:
        raise NoRowsYet(
            f"{scope.cohorts[0]}, {scope.test_set}: fewer than {options['needs']['cells']} "
            f"cells decoded and scored with {metric}"
        )
    return units
