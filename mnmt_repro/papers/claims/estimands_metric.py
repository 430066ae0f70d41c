"""Estimands of translation quality: claims A16 and A18 of Paper A."""

from __future__ import annotations

import numpy as np

from mnmt_repro.papers.claims.estimands_fraction import named_pairs
from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.effects.intervals import Measure, NoRowsYet
from mnmt_repro.papers.effects.quality import straight_line


def metric_linear(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """Correlation of a metric with cross-entropy over decoded cells, and its curvature."""
    options, metric = claim.options, claim.options["metric"]
    wanted = options["needs"]["cells"]
    decoded = evidence.cells(setting, setting.cohorts[0], scored=metric)
    units: Units = {}
    for pair in named_pairs(sorted(decoded["pair"].unique()), options["pairs"]):
        rows = decoded[decoded["pair"] == pair]
        if len(rows) < wanted:
            raise NoRowsYet(
                f"{setting.cohorts[0]}, {setting.test_set}, {pair}: {len(rows)} of {wanted} cells "
                f"are decoded and scored with {metric}"
            )
        line = straight_line(rows["cross_entropy"], rows[metric])
        units[pair] = {
            "correlation": Measure(value=line.r, low=line.low, high=line.high),
            "r2": Measure(value=line.r**2),
            "curvature_gain": Measure(value=line.curvature_gain),
            "metric_range": Measure(value=float(np.ptp(rows[metric]))),
        }
    return units
