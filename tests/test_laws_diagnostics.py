"""Lack of fit, curvature and outliers: found where they are, seldom where they are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mnmt_repro.laws import fit_joint_law, fit_power_law, lack_of_fit, outliers

SIZES = np.geomspace(4e3, 1.2e5, 8)
OF: dict = {"n": "n", "loss": "loss"}


def grid(curved: float, seed: int, seeds: int = 1, weights=(0.1, 0.3, 0.5, 0.7, 1.0)):
    """Losses of a joint law with a parabola of size added, and relative noise of 0.5 %."""
    rng = np.random.default_rng(seed)
    cells = [(p, n) for p in weights for n in SIZES for _ in range(seeds)]
    frame = pd.DataFrame(cells, columns=["p", "n"])
    x = np.log(frame["n"] / 2.2e4)
    frame["loss"] = 60 * frame["p"] ** -0.2 * frame["n"] ** -0.3 + 1.1 + curved * (x**2 - 1)
    frame["loss"] += 0.02 * rng.standard_normal(len(frame))
    return frame


def test_repeats_show_a_lack_of_fit_by_the_textbook_f_test() -> None:
    frame = grid(0.0, 0, seeds=3)
    fit = fit_joint_law(frame, **OF)
    found = lack_of_fit(fit)
    pure = frame.groupby(["p", "n"])["loss"].apply(lambda y: ((y - y.mean()) ** 2).sum()).sum()
    ratio = ((fit.rss - pure) / (40 - 7)) / (pure / 80)
    assert found.test == "repeats" and found.p_value == pytest.approx(stats.f.sf(ratio, 33, 80))
    assert not found.fault and "no sign of a lack" in found.words
    bent = frame.assign(loss=np.where(frame["n"] == SIZES[4], frame["loss"] + 0.1, frame["loss"]))
    assert lack_of_fit(fit_joint_law(bent, **OF)).p_value < 1e-4


def test_a_u_shaped_residual_is_not_called_noise() -> None:
    alarms = sum(lack_of_fit(fit_joint_law(grid(0.0, s), **OF)).fault for s in range(20))
    assert alarms <= 4  # 1 expected
    found = []
    for seed in range(5):
        frame = grid(0.0, seed)
        frame["loss"] += 0.06 * np.cos(2 * np.pi * np.arange(8) / 7)[np.arange(len(frame)) % 8]
        found.append(lack_of_fit(fit_joint_law(frame, **OF)))
    assert all(each.test == "runs" for each in found)
    assert sum(each.fault for each in found) >= 4
    assert "so they are curved" in found[0].words


def test_two_sizes_are_too_few_to_tell() -> None:
    frame = grid(0.0, 0)
    fit = fit_joint_law(frame[frame["n"].isin(SIZES[[0, 7]])], **OF)
    assert fit.identified
    found = lack_of_fit(fit)
    assert found.test == "none" and "too few sizes for a test" in found.words and not found.fault
    exact = lack_of_fit(fit_power_law(SIZES[:3], [5.0, 4.0, 3.5]))
    assert exact.test == "none" and "too few rows for a test" in exact.words


@pytest.mark.parametrize("errors", ["absolute", "relative"])
def test_a_gross_outlier_is_named_and_noise_is_not(errors) -> None:
    named = [outliers(fit_joint_law(grid(0.0, s), errors=errors, **OF)) for s in range(30)]
    assert not any(named)
    frame = grid(0.0, 1)
    frame.loc[17, "loss"] += 0.3
    found = outliers(fit_joint_law(frame, errors=errors, **OF))
    assert list(found) == [17] and found[17] > 8


@pytest.mark.parametrize("errors", ["absolute", "relative"])
def test_copies_of_a_row_are_no_measure_of_noise(errors) -> None:
    loss = 60 * SIZES**-0.3 + 1 + 0.01 * np.random.default_rng(0).standard_normal(len(SIZES))
    fit = fit_power_law(np.tile(SIZES, 3), np.tile(loss, 3), errors=errors)
    found = lack_of_fit(fit)
    assert found.test == "none" and "are equal" in found.words
