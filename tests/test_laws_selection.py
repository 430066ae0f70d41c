"""Held-out errors and the information criterion."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from law_grids import SIZES, WEIGHTS

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    error_summary,
    fit_fraction,
    fit_joint_law,
    fit_per_weight_laws,
    leave_one_size_out,
    leave_one_weight_out,
)
from mnmt_repro.laws.selection import pooled_aicc


def fraction(p: float) -> float:
    return p + 0.4 * p**0.5 * (1 - p) ** 1.5


def grid(
    noise: float = 0.0, seed: int = 0, alpha_change: float = 0.0, l_change: float = 0.0
) -> pd.DataFrame:
    """Losses whose alpha and l_inf change by that much from p = 1 to p = 0.05, with log p."""
    rows = []
    for p in WEIGHTS:
        u = math.log(p) / math.log(0.05)
        middle = 60 * (fraction(p) * 2e4) ** -0.3
        for n in SIZES:
            loss = middle * (n / 2e4) ** -(0.3 + alpha_change * u) + 1.1 + l_change * u
            rows.append((p, n, loss))
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "cross_entropy"])
    rng = np.random.default_rng(seed)
    frame["cross_entropy"] += noise * rng.standard_normal(len(frame))
    return frame


@pytest.mark.parametrize("law", ["joint", "eq12"])
def test_exact_data_have_no_held_out_error(law) -> None:
    summary = error_summary(leave_one_size_out(grid(), law))
    assert summary["rmse"] < 1e-4 and summary["rows"] == 64 and summary["missing"] == 0


def test_a_held_out_row_is_predicted_without_it() -> None:
    frame = grid(noise=0.01)
    table = leave_one_size_out(frame, "joint")
    rest = fit_joint_law(frame[frame.n_non_embedding != 20e3])
    row = table[(table.p == 0.3) & (table.n == 20e3)].iloc[0]
    assert row.predicted == pytest.approx(rest.predict(0.3, 20e3)[0], rel=1e-9)
    assert row.error == pytest.approx(row.predicted - row.loss)
    assert set(table[table.extrapolated].n) == {4e3, 120e3}
    table = leave_one_weight_out(frame, "eq12")
    rest = fit_fraction(frame[frame.p != 0.3])
    row = table[(table.p == 0.3) & (table.n == 20e3)].iloc[0]
    assert row.predicted == pytest.approx(rest.predict(0.3, 20e3)[0], rel=1e-6)
    assert set(table[table.extrapolated].p) == {0.05, 1.0}


def test_summary_by_hand_and_rows_without_prediction_are_counted() -> None:
    table = pd.DataFrame(
        {
            "loss": [2.0, 4.0, 1.0],
            "predicted": [2.3, 3.6, math.nan],
            "error": [0.3, -0.4, math.nan],
            "extrapolated": [False, True, False],
        }
    )
    summary = error_summary(table)
    assert summary["rmse"] == pytest.approx(math.sqrt((0.09 + 0.16) / 2))
    assert summary["mean_relative"] == pytest.approx((0.15 + 0.1) / 2)
    assert summary["missing"] == 1


def test_only_fraction_laws_predict_unseen_weights() -> None:
    with pytest.raises(InputError, match="unseen"):
        leave_one_weight_out(grid(), "joint")
    with pytest.raises(InputError, match="form: 'cubic'"):
        leave_one_size_out(grid(), "cubic")


def test_criterion_prefers_the_law_that_made_the_data() -> None:
    def difference(frame: pd.DataFrame) -> float:
        return pooled_aicc([fit_joint_law(frame)]) - pooled_aicc(
            [*fit_per_weight_laws(frame).values()]
        )

    assert difference(grid(noise=0.02)) < -5
    assert difference(grid(noise=0.005, alpha_change=0.15, l_change=-0.4)) > 5


def test_criterion_does_not_count_parameters_held_at_a_bound() -> None:
    """Losses of a power law less a constant: L_inf is held at 0 in every fit."""
    frame = grid(noise=0.01).assign(cross_entropy=lambda f: f.cross_entropy - 1.6)
    joint, alone = fit_joint_law(frame), fit_per_weight_laws(frame)
    assert joint.held == ("l_inf",) and joint.free_parameters == 9
    assert all(fit.held == ("l_inf",) for fit in alone.values())
    for fits, k in (([*alone.values()], 8 * 2 + 1), ([joint], 9 + 1)):
        rss = sum(fit.rss for fit in fits)
        by_hand = 64 * math.log(rss / 64) + 2 * k + 2 * k * (k + 1) / (64 - k - 1)
        assert pooled_aicc(fits) == pytest.approx(by_hand)
    flat = fit_joint_law(frame.assign(cross_entropy=2.0))
    assert math.isnan(pooled_aicc([flat]))
