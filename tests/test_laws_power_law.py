"""Power law of one weight (Eq. 3 and 6), against truth, scipy and published fits."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from law_grids import SIZES
from scipy.optimize import curve_fit

from mnmt_repro.errors import InputError
from mnmt_repro.laws import fit_power_law

PAPER_SIZES = np.array(
    [18881024, 63714816, 127427328, 191139840, 339787776, 453049344, 707869184, 1019312128.0]
)


def law(n: np.ndarray, beta: float, alpha: float, l_inf: float) -> np.ndarray:
    return beta * n**-alpha + l_inf


@pytest.mark.parametrize("sizes", [SIZES, PAPER_SIZES], ids=["small", "paper"])
@pytest.mark.parametrize("truth", [(60.0, 0.3, 1.1), (5.0, 0.05, 0.4), (900.0, 0.7, 2.0)])
def test_recovers_the_exact_law(sizes: np.ndarray, truth: tuple[float, float, float]) -> None:
    fit = fit_power_law(sizes, law(sizes, *truth))
    assert fit.identified
    assert (fit.beta, fit.alpha, fit.l_inf) == pytest.approx(truth, rel=1e-6)
    assert fit.r2 == pytest.approx(1.0, abs=1e-10)
    assert fit.predict(10 * sizes) == pytest.approx(law(10 * sizes, *truth), rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_scipy_on_noisy_weighted_data(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loss = law(SIZES, 60.0, 0.3, 1.1) * (1 + 0.003 * rng.standard_normal(8))
    weights = rng.uniform(0.5, 2.0, 8)
    fit = fit_power_law(SIZES, loss, weights=weights)
    scale = np.exp(np.log(SIZES).mean())
    popt, pcov = curve_fit(
        lambda x, b, a, c: b * x**-a + c,
        SIZES / scale,
        loss,
        p0=[loss[0] - loss[-1], 0.5, loss[-1] / 2],
        sigma=weights**-0.5,
        xtol=1e-14,
        ftol=1e-14,
    )
    assert (fit.alpha, fit.l_inf) == pytest.approx(popt[1:], rel=1e-5)
    assert fit.beta == pytest.approx(popt[0] * scale ** popt[1], rel=1e-4)
    errors = np.sqrt(np.diag(pcov))
    assert (fit.stderr["alpha"], fit.stderr["l_inf"]) == pytest.approx(errors[1:], rel=1e-3)
    assert (
        fit.rss <= weights @ (loss - popt[0] * (SIZES / scale) ** -popt[1] - popt[2]) ** 2 + 1e-14
    )


def test_quality_rises_to_its_limit() -> None:
    score = 62.0 - 700 * SIZES**-0.4
    fit = fit_power_law(SIZES, score, direction="max")
    assert fit.params == pytest.approx({"alpha": 0.4, "l_inf": 62.0, "beta": 700.0}, rel=1e-6)
    assert fit.predict(1e6) == pytest.approx([62.0 - 700 * 1e6**-0.4])


def test_a_held_bound_is_reported() -> None:
    floor = fit_power_law(SIZES, law(SIZES, 60.0, 0.3, -0.5))
    assert floor.active_bounds == ("l_inf >= 0",)
    assert floor.l_inf == 0.0 and math.isnan(floor.stderr["l_inf"])
    roof = fit_power_law(SIZES, 120 - 300 * SIZES**-0.2, direction="max", ceiling=100)
    assert roof.active_bounds == ("l_inf <= 100",) and roof.l_inf == 100
    assert fit_power_law(SIZES, law(SIZES, 60.0, 0.3, 0.5)).active_bounds == ()


@pytest.mark.parametrize(
    ("n", "loss", "direction", "word"),
    [
        ([1e3] * 5, [3.0, 2.9, 3.1, 3.0, 3.0], "min", "distinct"),
        (SIZES, [2.0] * 8, "min", "flat"),
        (SIZES, law(SIZES, 60.0, 0.3, 1.0)[::-1], "min", "rises"),
        (SIZES, law(SIZES, 60.0, 0.3, 1.0), "max", "falls"),
        (SIZES, [2.01, 1.99, 2.0, 2.02, 1.98, 2.0, 2.01, 1.99], "min", "noise"),
        (SIZES, np.log(SIZES) ** 2, "max", "exponent"),
    ],
)
def test_degenerate_data_give_no_number(n, loss, direction, word) -> None:
    fit = fit_power_law(n, loss, direction=direction)
    assert not fit.identified and word in fit.reason
    assert all(math.isnan(v) for v in [*fit.values, *fit.stderr.values(), *fit.predict(1e5)])
    assert all(math.isnan(low) for low, _ in fit.interval().values())
    assert "not identified" in fit._repr_html_()
    with pytest.raises(InputError, match="not identified"):
        fit.draws("perturbation")


def test_noise_alone_seldom_passes_for_a_law() -> None:
    noise = (2 + 0.02 * np.random.default_rng(seed).standard_normal(8) for seed in range(300))
    passed = sum(fit_power_law(SIZES, loss).identified for loss in noise)
    assert passed <= 8  # 3 at a level of 1 %; more than 8 by chance: 0.004


@pytest.mark.parametrize(
    ("n", "loss", "options", "word"),
    [
        ([1, 2, 3], [3.0, math.nan, 1.0], {}, "loss: row 1"),
        ([0, 2, 3], [3.0, 2.0, 1.0], {}, "above zero"),
        ([1, 2, 3], [3.0, 2.0], {}, "length"),
        ([], [], {}, "non-empty"),
        (["a"], [1.0], {}, "not numbers"),
        ([1, 2, 3], [3.0, 2.0, 1.0], {"weights": [1, 1, 0]}, "weights"),
        ([1, 2, 3], [3.0, 2.0, 1.0], {"direction": "down"}, "direction"),
        ([1, 2, 3], [3.0, 2.0, 1.0], {"ceiling": 5.0}, "ceiling"),
        ([9, 1e-90, 3], [3.0, 2.0, 1.0], {}, "from 1e-90 in row 1 to 9 in row 0; .* one unit"),
        ([1, 2, 3], [3.0, 1e308, 1.0], {}, "loss: row 1 is 1e.308"),
        ([1, 2, 3], [-1.0, -2.0, -3.0], {}, "above 0, the least is -3: change the sign"),
    ],
)
def test_unusable_input_is_an_error_that_says_where(n, loss, options, word) -> None:
    with pytest.raises(InputError, match=word):
        fit_power_law(n, loss, **options)


def test_three_sizes_fit_exactly_without_errors() -> None:
    fit = fit_power_law([1, 4, 16], [5.0, 3.0, 2.0])
    assert fit.params == pytest.approx({"alpha": 0.5, "l_inf": 1.0, "beta": 4.0})
    assert math.isnan(fit.stderr["alpha"]) and fit.degrees_of_freedom == 0
    with pytest.raises(InputError, match="residuals"):
        fit.draws("residual")


def test_published_learning_curves(lawdata_dir: Path) -> None:
    """Published data C: exponents of the first part of each curve."""
    curves = pd.read_csv(lawdata_dir / "nmt_learning_curves.csv")
    alphas = {"6 Enc, 6 Dec": 0.4513, "28 Enc, 6 Dec": 0.2884, "6 Enc, 28 Dec": 0.3533,
              "Dec-only": 0.5568, "TEnc-LSTM": 0.5519}  # fmt: skip
    assert set(curves["Model"]) == set(alphas)
    for model, rows in curves.groupby("Model"):
        train = rows[rows["Training"] == 1]
        full = fit_power_law(train["Seen Examples"], train["Loss"])
        assert full.alpha == pytest.approx(alphas[model], abs=1e-3)
