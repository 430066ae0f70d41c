"""Appendix G's forecasts of the ends of learning curves, on runs whose end is known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from synthetic import SIZES, WEIGHTS, loss_of

from mnmt_repro.papers.charts.runs import trust_chart
from mnmt_repro.papers.effects import settled

PAIRS = ("eng-deu", "eng-zho")
STEPS = np.array([60, 90, 130, 190, 280, 410, 590, 860, 1260, 1840, 2680, 3920])
LARGE = SIZES[-2:]
HARDER = 1.1
"""Validation losses over test losses."""


def late(step: np.ndarray | float, p: float, n: float) -> np.ndarray | float:
    """What is missing at a step: much for large models at p = 0.05, little elsewhere."""
    much = 12.0 if p == 0.05 and n in LARGE else 1.0
    return much * np.asarray(step, dtype=float) ** -0.5


@cache
def learning() -> pd.DataFrame:
    """Learning curves over a law that holds exactly; not to be written to."""
    parts = [
        pd.DataFrame(
            {
                "run_id": f"{pair}-{p}-{n}",
                "pair": pair,
                "p": p,
                "size": f"N{n}",
                "n_non_embedding": n,
                "step": STEPS,
                "cross_entropy": HARDER * (loss_of(p, n) + late(STEPS, p, n)),
            }
        )
        for pair in PAIRS
        for p in WEIGHTS
        for n in SIZES
    ]
    return pd.concat(parts, ignore_index=True)


def test_the_ends_of_exact_curves_are_predicted() -> None:
    forecasts = settled.backtest(learning())
    assert len(forecasts) == 2 * 8 * 8
    # Kept up to step 1,260, the last at or before 3,920 / 2.5.
    assert set(forecasts["multiple"]) == {3920 / 1260}
    np.testing.assert_allclose(forecasts["missed"], 0, atol=1e-4)
    small = forecasts[(forecasts["p"] == 0.05) & forecasts["n"].isin(LARGE)]
    np.testing.assert_allclose(small["fall"] / HARDER, 12 * (1260**-0.5 - 3920**-0.5), rtol=1e-9)
    trust_chart(forecasts).to_dict()  # checks the schema


def test_short_and_flat_curves_are_left_out_of_the_backtest() -> None:
    curves = learning()
    short = curves[curves["step"] >= 860]  # two points before the cut
    assert settled.backtest(short).empty
    flat = curves[curves["p"] == 0.05].assign(cross_entropy=3.0)
    assert settled.backtest(flat).empty
