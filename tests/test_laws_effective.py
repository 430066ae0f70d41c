"""Effective parameters (Eqs. 8 to 10), by the joint law."""

from __future__ import annotations

import math

import law_grids
import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import effective_fraction, fit_fraction, fit_joint_law

F = {0.05: 0.15, 0.3: 0.4, 0.5: 0.6, 1.0: 1.0}


def grid(noise: float = 0.0) -> pd.DataFrame:
    """Losses of known fractions."""
    return law_grids.grid(F.__getitem__, noise, 0, F)


def test_known_fractions_are_recovered() -> None:
    table = effective_fraction(fit_joint_law(grid()))
    assert table.f.to_numpy() == pytest.approx(list(F.values()), rel=1e-6)
    assert table.relative[0] == pytest.approx(3.0, rel=1e-6)


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


def test_needs_the_single_pair_and_an_identified_law() -> None:
    frame = grid()
    with pytest.raises(InputError, match="single pair"):
        effective_fraction(fit_joint_law(frame[frame.p < 1]))
    unknown = effective_fraction(fit_joint_law(frame.assign(cross_entropy=2.0)))
    assert unknown.f.isna().all() and unknown.f_low.isna().all()


def test_a_fraction_without_rows_to_spare_has_no_interval() -> None:
    frame = law_grids.grid(lambda p: 0.8 * (p - 1) + 1, 0.0, 0, (0.5, 1.0))
    few = frame[frame["n_non_embedding"].rank(method="dense") <= 2]
    fit = fit_fraction(few, form="eq13")
    assert fit.spare == 0
    table = effective_fraction(fit)
    assert table.f[0] == pytest.approx(0.6, rel=1e-3) and table.f_low.isna().all()
