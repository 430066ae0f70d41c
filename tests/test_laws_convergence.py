"""A learning curve read beyond its end (Appendix G)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.laws import extrapolate_curve
from mnmt_repro.laws.convergence import last_fall

STEPS = np.arange(50, 1001, 50)
RATIO = (2 + 30 * 2500**-0.5) / (2 + 30 * 1000**-0.5)
"""Of the curve 2 + 30 t^-0.5 at 2,500 steps over 1,000."""


def test_reads_the_curve_at_the_multiple() -> None:
    read = extrapolate_curve(STEPS, 2 + 30 * STEPS**-0.5)
    assert read.ratio == pytest.approx(RATIO, rel=1e-5)
    assert read.law.alpha == pytest.approx(0.5, rel=1e-5)


def test_the_last_fall_is_the_median_over_runs() -> None:
    tokens = 1000 * 2.0 ** np.arange(6)
    curves = [
        pd.DataFrame({"run_id": run, "pair": "a-b", "target_tokens": tokens[:points],
                      "cross_entropy": 3 * tokens[:points] ** -power})
        for run, power, points in (("x", 0.1, 6), ("y", 0.2, 6), ("z", 0.3, 6), ("short", 9.0, 2))
    ]  # fmt: skip
    assert last_fall(pd.concat(curves)) == pytest.approx(1 - 2**-0.2)
    assert np.isnan(last_fall(curves[3]))


def test_early_steps_do_not_count() -> None:
    loss = 2 + 30 * STEPS**-0.5
    loss[STEPS < 100] += 5
    assert extrapolate_curve(STEPS, loss).ratio == pytest.approx(RATIO, rel=1e-5)
    assert 1 - extrapolate_curve(STEPS, loss, skip=0).ratio != pytest.approx(1 - RATIO, rel=0.1)
