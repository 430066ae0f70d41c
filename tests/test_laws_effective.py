"""Effective parameters (Eqs. 8 to 10), by the joint law and directly."""

from __future__ import annotations

import math

import law_grids
import numpy as np
import pandas as pd
import pytest
from law_grids import ALPHA, L_INF, SIZES

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    direct_slopes,
    effective_fraction,
    effective_fraction_direct,
    fit_joint_law,
    fit_power_law,
)

F = {0.05: 0.15, 0.3: 0.4, 0.5: 0.6, 1.0: 1.0}


def grid(noise: float = 0.0, seed: int = 0, drift: float = 0.0) -> pd.DataFrame:
    """Losses of known fractions; with `drift`, log f falls by it per unit of log n below p = 1."""
    frame = law_grids.grid(F.__getitem__, noise, seed, F)
    steeper = (frame.n_non_embedding / 2e4) ** (ALPHA * drift * (frame.p < 1))
    frame["cross_entropy"] = (frame.cross_entropy - L_INF) * steeper + L_INF
    return frame


def single_of(frame: pd.DataFrame):
    alone = frame[frame.p == 1]
    return fit_power_law(alone.n_non_embedding, alone.cross_entropy)


def test_both_estimators_recover_known_fractions() -> None:
    frame = grid()
    table = effective_fraction(fit_joint_law(frame))
    assert table.f.to_numpy() == pytest.approx(list(F.values()), rel=1e-6)
    assert table.relative[0] == pytest.approx(3.0, rel=1e-6)
    direct = effective_fraction_direct(single_of(frame), frame)
    assert direct.f.to_numpy() == pytest.approx([F[p] for p in direct.p], rel=1e-5)
    assert direct.n_effective.to_numpy() == pytest.approx(direct.f * direct.n)
    assert set(direct[direct.extrapolated].p) >= {0.05}
    assert not direct[(direct.p == 0.5) & (direct.n == 55e3)].extrapolated.any()


def test_interval_is_the_delta_method_on_log_f() -> None:
    fit = fit_joint_law(grid(noise=0.005))
    table = effective_fraction(fit)
    step, values, variance = 1e-6, np.array(fit.values), 0.0
    log_f = lambda v: math.log(v[5] / v[2]) / v[0]  # noqa: E731
    gradient = np.array(
        [
            (log_f(values * (1 + step * e)) - log_f(values * (1 - step * e)))
            / (2 * step * abs(v) if v else 1)
            for e, v in zip(np.eye(6), values, strict=True)
        ]
    )
    variance = gradient @ np.array(fit.covariance) @ gradient
    half = fit.t_quantile * math.sqrt(variance)
    assert math.log(table.f_high[0] / table.f[0]) == pytest.approx(half, rel=1e-4)
    assert table.f_low.iloc[-1] == table.f_high.iloc[-1] == 1.0


def test_slope_of_the_fraction_finds_a_drift_and_nothing_else() -> None:
    flat = grid(noise=0.002, seed=2)
    slopes = direct_slopes(single_of(flat), flat)
    assert list(slopes.p) == list(F)
    assert ((slopes.low <= 0) & (slopes.high >= 0)).all()
    # At p = 0.05 the least effective sizes are below the least model of the single pair.
    least = slopes.iloc[0]
    assert least.rows == (F[0.05] * SIZES >= SIZES[0] * 0.999).sum() == 4
    assert least.left_out == 4
    tilted = grid(noise=0.002, seed=2, drift=0.15)
    slopes = direct_slopes(single_of(tilted), tilted)
    below = slopes[slopes.p < 1]
    assert ((below.low <= -0.15) & (below.high >= -0.15)).all() and (below.high < 0).all()


def test_a_loss_out_of_reach_is_infinite_and_said() -> None:
    frame = grid(noise=0.001)
    single = single_of(frame)
    low = frame[frame.p == 0.3].assign(cross_entropy=0.5)
    direct = effective_fraction_direct(single, low)
    assert np.isinf(direct.f).all() and direct.extrapolated.all()
    slope = direct_slopes(single, low).iloc[0]
    assert math.isnan(slope.slope) and slope.left_out == 8


def test_needs_the_single_pair_and_an_identified_law() -> None:
    frame = grid()
    with pytest.raises(InputError, match="single pair"):
        effective_fraction(fit_joint_law(frame[frame.p < 1]))
    with pytest.raises(InputError, match="not identified"):
        effective_fraction_direct(fit_power_law([1, 2], [3, 2]), frame)
    unknown = effective_fraction(fit_joint_law(frame.assign(cross_entropy=2.0)))
    assert unknown.f.isna().all() and unknown.f_low.isna().all()
