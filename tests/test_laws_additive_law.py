"""The additive law against known truth; `test_published_fits` has published ones."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit

from mnmt_repro.laws import fit_additive_law

N, D = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e9, 6), np.geomspace(1e8, 1e11, 6)))
LOSS = 1.7 + 400 * N**-0.34 + 410 * D**-0.28


def test_standard_errors_and_bands_are_those_of_known_noise() -> None:
    rng = np.random.default_rng(3)
    fits = [fit_additive_law(N, D, LOSS * (1 + 0.002 * rng.standard_normal(36))) for _ in range(60)]
    for name, truth in {"alpha": 0.34, "beta": 0.28, "E": 1.7}.items():
        found = np.array([fit.params[name] for fit in fits])
        stated = np.median([fit.stderr[name] for fit in fits])
        assert stated == pytest.approx(found.std(), rel=0.3), name
        assert abs(found.mean() - truth) < 4 * found.std() / math.sqrt(60), name
    truth = 1.7 + 400 * 1e10**-0.34 + 410 * 1e12**-0.28
    bands = [fit.band(1e10, 1e12, draws=200).iloc[0] for fit in fits]
    inside = sum(band.low <= truth <= band.high for band in bands)
    assert 51 <= inside <= 60  # 57 expected
    errors = np.std([band.loss for band in bands])
    assert np.median([band.high - band.low for band in bands]) == pytest.approx(4 * errors, rel=0.3)


@pytest.mark.parametrize(
    "options", [{}, {"log_loss": True}, {"huber_delta": 1e-3, "log_loss": True}]
)
def test_recovers_the_exact_law(options: dict) -> None:
    fit = fit_additive_law(N, D, LOSS, **options)
    truth = {"E": 1.7, "A": 400, "B": 410, "alpha": 0.34, "beta": 0.28}
    assert fit.identified and fit.params == pytest.approx(truth, rel=1e-5)
    assert fit.predict(1e10, 1e12) == pytest.approx([1.7 + 400 / 1e10**0.34 + 410 / 1e12**0.28])


@pytest.mark.parametrize(
    ("n", "d", "loss", "word"),
    [
        (N[:4], D[:4], LOSS[:4], "rows"),
        (N, np.full(36, 1e9), 1.7 + 400 * N**-0.34, "values of d"),
        (N, D, np.full(36, 2.0), "flat"),
        (N, D, 1.7 + 400 * N**-0.34, "vanished|bound"),
        (N[::7], 20 * N[::7], (LOSS + 0)[::7], "vary together"),
    ],
)
def test_degenerate_data_give_no_number(n, d, loss, word) -> None:
    fit = fit_additive_law(n, d, loss)
    assert not fit.identified and re.search(word, fit.reason), fit.reason
    assert all(map(math.isnan, fit.values))


def test_a_constant_at_zero_is_held_there() -> None:
    """A constant cannot be below zero: it is zero, held there, and no parameter for AICc."""
    n, d = (
        grid.ravel() for grid in np.meshgrid(np.geomspace(1e4, 1e6, 6), np.geomspace(1e6, 1e8, 5))
    )
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(n))
    fit = fit_additive_law(n, d, 40 * n**-0.3 + 60 * d**-0.25 - 0.3 + noise)
    assert fit.identified and fit.params["E"] == 0.0
    assert fit.active_bounds == ("E >= 0",) and fit.free_parameters == 4
    assert math.isnan(fit.stderr["E"]) and 0 < fit.stderr["alpha"] < 0.1

    def law(_: object, a: float, b: float, alpha: float, beta: float) -> Any:
        return a * n**-alpha + b * d**-beta

    start = [fit.params[name] for name in ("A", "B", "alpha", "beta")]
    _, covariance = curve_fit(law, n, fit.loss, p0=start, x_scale=start, method="trf")
    expected = np.sqrt(np.diag(covariance))
    found = [fit.stderr[name] for name in ("A", "B", "alpha", "beta")]
    assert found == pytest.approx(expected.tolist(), rel=0.01)
    # Refits may leave the bound again.
    risen = fit.refit(fit.loss[None] + 1.0)
    assert risen[0, 0] > 0.3
