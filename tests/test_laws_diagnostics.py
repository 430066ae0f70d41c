"""Curvature and outliers: found where they are, seldom where they are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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


def test_a_u_shaped_residual_is_not_called_noise() -> None:
    for seeds in (1, 2):
        fits = [fit_joint_law(grid(0.0, s, seeds), **OF) for s in range(40)]
        assert sum(lack_of_fit(fit).fault for fit in fits) <= 5  # 2 expected
    found = []
    for seed in range(5):
        frame = grid(0.0, seed)
        frame["loss"] += 0.06 * np.cos(2 * np.pi * np.arange(8) / 7)[np.arange(len(frame)) % 8]
        found.append(lack_of_fit(fit_joint_law(frame, **OF)))
    assert all(each.p_value < 1e-4 for each in found)
    assert "its residuals are curved" in found[0].words
    exact = lack_of_fit(fit_power_law(SIZES[:3], [5.0, 4.0, 3.5]))
    assert not exact.fault and "too few rows for a test" in exact.words
    low = fit_power_law(SIZES, 40 - 700 * SIZES**-0.33 + np.resize([0.1, -0.1], 8), direction="max")
    assert low.fitted()[0] < 0 and "the law passes zero" in lack_of_fit(low).words
    repeated = fit_power_law(np.repeat(SIZES[:3], 2), [5.0, 5.01, 4.0, 3.99, 3.5, 3.51])
    assert "too few sizes for a test" in lack_of_fit(repeated).words


@pytest.mark.parametrize("errors", ["absolute", "relative"])
def test_a_gross_outlier_is_named_and_noise_is_not(errors) -> None:
    named = [outliers(fit_joint_law(grid(0.0, s), errors=errors, **OF)) for s in range(30)]
    assert not any(named)
    frame = grid(0.0, 1)
    frame.loc[17, "loss"] += 0.3
    found = outliers(fit_joint_law(frame, errors=errors, **OF))
    assert list(found) == [17] and found[17] > 8
