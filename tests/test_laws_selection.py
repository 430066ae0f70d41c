"""Held-out errors, the information criterion, and tests of invariance with power."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import curve_fit, least_squares

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    check_unchanged,
    coefficients,
    compare_per_weight_joint,
    error_summary,
    fit_fraction,
    fit_joint_law,
    fit_per_weight_laws,
    invariance,
    leave_one_size_out,
    leave_one_weight_out,
    trend,
)
from mnmt_repro.laws.minimise import minimise
from mnmt_repro.laws.selection import pooled_aicc

SIZES = np.array([4e3, 7e3, 12e3, 20e3, 33e3, 55e3, 85e3, 120e3])
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)


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


@pytest.mark.parametrize("law", ["per_weight", "joint", "eq12"])
def test_exact_data_have_no_held_out_error(law) -> None:
    summary = error_summary(leave_one_size_out(grid(), law))
    assert summary["rmse"] < 1e-4 and summary["rows"] == 64 and summary["missing"] == 0


def test_held_out_errors_of_a_quality() -> None:
    frame = grid()
    frame["chrf"] = 60 - 8 * (frame["cross_entropy"] - 1.1)
    asked = {"loss": "chrf", "direction": "max", "ceiling": 100.0}
    for law in ("per_weight", "joint", "eq12"):
        assert error_summary(leave_one_size_out(frame, law, **asked))["rmse"] < 1e-3
    assert error_summary(leave_one_weight_out(frame, "eq12", **asked))["inside"] < 1e-2
    assert compare_per_weight_joint(frame, **asked).rmse_size_out["joint"] < 1e-3
    flat = leave_one_size_out(frame.assign(chrf=50.0), "joint", **asked)
    assert error_summary(flat)["missing"] == 64


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
    assert summary["inside"] == pytest.approx(0.3)
    assert summary["mean_relative"] == pytest.approx((0.15 + 0.1) / 2)
    assert summary["missing"] == 1


def test_only_fraction_laws_predict_unseen_weights() -> None:
    with pytest.raises(InputError, match="unseen"):
        leave_one_weight_out(grid(), "joint")
    with pytest.raises(InputError, match="law"):
        leave_one_size_out(grid(), "cubic")


def test_relative_errors_are_compared_with_the_variance_of_the_weighted_rows() -> None:
    compared = compare_per_weight_joint(grid(noise=0.02), errors="relative")
    law = fit_joint_law(grid(noise=0.02), errors="relative")
    assert compared.r2["joint"] == pytest.approx(law.r2, abs=1e-12)
    assert law.r2 != pytest.approx(fit_joint_law(grid(noise=0.02)).r2, abs=1e-5)


def test_criterion_prefers_the_law_that_made_the_data() -> None:
    same = compare_per_weight_joint(grid(noise=0.02))
    assert list(same.parameters) == [24, 10]
    assert same.delta_aicc["joint"] == 0 and same.delta_aicc["per_weight"] > 5
    assert same.rmse_size_out["joint"] < same.rmse_size_out["per_weight"]
    assert same.rows_size_out["joint"] == same.rows_size_out["per_weight"] > 0
    differing = compare_per_weight_joint(grid(noise=0.005, alpha_change=0.15, l_change=-0.4))
    assert differing.delta_aicc["per_weight"] == 0 and differing.delta_aicc["joint"] > 5
    rss, k = same.rss["joint"], 11
    by_hand = 64 * math.log(rss / 64) + 2 * k + 2 * k * (k + 1) / (64 - k - 1)
    assert same.aicc["joint"] == pytest.approx(by_hand)


def test_criterion_does_not_count_parameters_held_at_a_bound() -> None:
    """Losses of a power law less a constant: L_inf is held at 0 in every fit."""
    frame = grid(noise=0.01).assign(cross_entropy=lambda f: f.cross_entropy - 1.6)
    joint, alone = fit_joint_law(frame), fit_per_weight_laws(frame)
    assert joint.held == ("l_inf",) and joint.free_parameters == 9
    assert all(fit.held == ("l_inf",) for fit in alone.values())
    table = compare_per_weight_joint(frame)
    assert list(table.parameters) == [24, 10]
    for law, k in (("per_weight", 8 * 2 + 1), ("joint", 9 + 1)):
        by_hand = 64 * math.log(table.rss[law] / 64) + 2 * k + 2 * k * (k + 1) / (64 - k - 1)
        assert table.aicc[law] == pytest.approx(by_hand)
    assert pooled_aicc([joint]) == table.aicc["joint"]
    assert pooled_aicc(alone.values()) == table.aicc["per_weight"]
    flat = fit_joint_law(frame.assign(cross_entropy=2.0))
    assert math.isnan(pooled_aicc([flat]))


def test_coefficients_of_figure_4() -> None:
    fits = fit_per_weight_laws(grid(noise=0.005))
    table = coefficients(fits, draws=500)
    assert len(table) == 24 and table["identified"].all()
    row = table[(table.p == 0.3) & (table.parameter == "alpha")].iloc[0]
    assert row["value"] == fits[0.3].alpha
    assert row["std"] == fits[0.3].draws("perturbation", draws=500).spread()["alpha"]
    assert coefficients(fits, method="t")["std"].iloc[0] == fits[0.05].stderr["alpha"]


def test_trend_agrees_with_scipy() -> None:
    frame = grid(noise=0.01, alpha_change=0.03)
    test = check_unchanged(frame, simulations=10)
    group = pd.Categorical(frame.p).codes
    u = np.log(frame.p.to_numpy()) / math.log(0.05)
    x = frame.n_non_embedding.to_numpy() / 2e4

    def law(_, change, change_l, alpha, l_inf, *beta):
        return np.array(beta)[group] * x ** -(alpha + change * u) + l_inf + change_l * u

    start = [0, 0, 0.3, 1.0, *np.full(8, 3.0)]
    popt, pcov = curve_fit(law, x, frame.cross_entropy, p0=start, xtol=1e-14, ftol=1e-14)
    assert test.change == pytest.approx(popt[0], rel=1e-4)
    assert (test.high - test.low) / 2 == pytest.approx(2.0066 * math.sqrt(pcov[0, 0]), rel=1e-3)
    assert test.at_one == pytest.approx(popt[2], rel=1e-4)
    other = check_unchanged(frame, "l_inf", simulations=10)
    assert other.change == pytest.approx(popt[1], rel=1e-3)


def test_three_verdicts() -> None:
    changed = check_unchanged(grid(noise=0.005, alpha_change=0.05), simulations=200)
    assert changed.verdict == "changed" and changed.low > 0
    unchanged = check_unchanged(grid(noise=0.005, seed=2), simulations=200)
    assert unchanged.verdict == "unchanged" and unchanged.power >= 0.8
    assert unchanged.alternative == pytest.approx(0.06, rel=0.1)
    noisy = check_unchanged(grid(noise=0.1, seed=1), simulations=200)
    assert noisy.verdict == "inconclusive" and noisy.power < 0.8


@pytest.mark.parametrize("other_free", [False, True])
@pytest.mark.parametrize("parameter", ["alpha", "l_inf"])
def test_trend_within_the_joint_laws_bounds_agrees_with_scipy(parameter, other_free) -> None:
    """Data that want L_inf below 0, where the joint law's bound holds; SciPy from five starts."""
    frame = grid(noise=0.01, alpha_change=-0.05).assign(cross_entropy=lambda f: f.cross_entropy - 2)
    assert fit_joint_law(frame).active_bounds == ("l_inf >= 0",)
    test = check_unchanged(frame, parameter, other_free=other_free, simulations=1)
    group = pd.Categorical(frame.p).codes
    u = np.log(frame.p.to_numpy()) / math.log(0.05)
    x = frame.n_non_embedding.to_numpy() / 2e4
    y = frame.cross_entropy.to_numpy()

    def residual(t):  # alpha and l_inf, each at p = 1 and at p = 0.05, then the multipliers
        one = t.copy()
        if not other_free:
            other = 2 if parameter == "alpha" else 0
            one[other + 1] = one[other]
        alpha, l_inf = (one[i] * (1 - u) + one[i + 1] * u for i in (0, 2))
        return one[4:][group] * x**-alpha + l_inf - y

    bounds = [0.001] * 2 + [0.0] * 10, [10.0] * 2 + [np.inf] * 10
    fits = [
        least_squares(residual, [a, a, 0.1, 0.1, *np.full(8, 2.0)], bounds=bounds, xtol=1e-14)
        for a in (0.1, 0.2, 0.3, 0.5, 1.0)
    ]
    best = min(fits, key=lambda fit: fit.cost)
    first = 0 if parameter == "alpha" else 2
    at_one, least = best.x[first : first + 2]
    assert test.at_one == pytest.approx(at_one, abs=2e-3)
    assert test.change == pytest.approx(least - at_one, abs=4e-3)


def test_no_optimum_gives_no_verdict(monkeypatch) -> None:
    def stopped(*args, **options):
        found = minimise(*args, **options)
        return replace(found, converged=np.zeros_like(found.converged))

    monkeypatch.setattr(trend, "minimise", stopped)
    test = check_unchanged(grid(noise=0.005, alpha_change=0.05), simulations=20)
    assert test.verdict == "inconclusive" and "no optimum" in test.reason
    assert all(map(math.isnan, (test.low, test.high, test.p_value, test.power)))


def test_simulations_without_an_optimum_are_no_rejections(monkeypatch) -> None:
    """The observed fit converges, every simulated one does not: power and false alarms are 0."""

    def stopped(curve, losses, *args, **options):
        found = minimise(curve, losses, *args, **options)
        return replace(found, converged=found.converged & (len(losses) == 1))

    monkeypatch.setattr(trend, "minimise", stopped)
    test = check_unchanged(grid(noise=0.005, seed=2), simulations=20)
    assert test.verdict == "inconclusive" and "power" in test.reason
    assert test.power == 0 and test.false_alarms == 0


def test_power_is_the_smaller_of_both_directions(monkeypatch) -> None:
    """Were a rise seen in nine of ten data sets and a fall in half of them."""
    seen = []

    def rejections(law, parameter, truth, *rest):
        seen.append(float(truth[1] - truth[0]))
        return {-1.0: 0.5, 0.0: 0.05, 1.0: 0.9}[np.sign(seen[-1])]

    monkeypatch.setattr(invariance, "_rejections", rejections)
    frame = grid(noise=0.005, seed=2)
    test = check_unchanged(frame, relative_alternative=0.1)
    alternative = 0.1 * fit_joint_law(frame).alpha
    assert sorted(seen) == pytest.approx([-alternative, 0.0, alternative])
    assert test.power == 0.5 and test.false_alarms == 0.05 and test.verdict == "inconclusive"


def test_a_coefficient_at_its_bound_leaves_nothing_to_test() -> None:
    frame = grid(noise=0.001).assign(cross_entropy=lambda f: f.cross_entropy - 1.9)
    test = check_unchanged(frame, "l_inf", simulations=20)
    assert test.verdict == "inconclusive" and "at its bound at every weight" in test.reason
    assert test.at_one == 0 and test.change == 0 and math.isnan(test.p_value)


def test_power_and_false_alarms_are_what_they_say() -> None:
    """Simulated from outside: rejections over fresh data near the stated power and size."""
    reference = check_unchanged(grid(noise=0.08, seed=5), simulations=1000)
    assert 0.2 < reference.power < 0.99
    change = 0.2 * 0.3
    power = np.mean(
        [
            check_unchanged(grid(0.08, seed, change), simulations=1).verdict == "changed"
            for seed in range(60)
        ]
    )
    size = np.mean(
        [
            check_unchanged(grid(0.08, seed), simulations=1).verdict == "changed"
            for seed in range(60)
        ]
    )
    assert power == pytest.approx(reference.power, abs=0.2)
    assert size <= 0.15 and 0.02 <= reference.false_alarms <= 0.09


def test_a_trend_in_l_inf_is_not_taken_for_one_in_alpha() -> None:
    """With the other coefficient left free; held, it passes for a change of alpha."""
    frame = grid(noise=0.004, l_change=0.3)
    assert check_unchanged(frame, simulations=50).p_value > 0.05
    assert check_unchanged(frame, simulations=50, other_free=False).verdict == "changed"
    assert check_unchanged(frame, "l_inf", simulations=50).verdict == "changed"


def test_quality_has_the_same_verdict() -> None:
    frame = grid(noise=0.005, alpha_change=0.05)
    frame["chrf"] = 60 - 8 * frame["cross_entropy"]
    loss = check_unchanged(frame, simulations=20)
    chrf = check_unchanged(frame, loss="chrf", direction="max", simulations=20)
    assert chrf.change == pytest.approx(loss.change, rel=1e-4)
    assert chrf.p_value == pytest.approx(loss.p_value, rel=1e-2)
    l_loss = check_unchanged(frame, "l_inf", simulations=5)
    l_chrf = check_unchanged(frame, "l_inf", loss="chrf", direction="max", simulations=5)
    assert l_chrf.change == pytest.approx(-8 * l_loss.change, rel=1e-3)


def test_unusable_input_is_an_error() -> None:
    with pytest.raises(InputError, match="parameter"):
        check_unchanged(grid(), "beta")
    with pytest.raises(InputError, match="two of them"):
        check_unchanged(grid(0.01)[lambda f: f.p == 1])
    with pytest.raises(InputError, match="not identified"):
        check_unchanged(grid().assign(cross_entropy=2.0))
    with pytest.raises(InputError, match="relative_alternative"):
        check_unchanged(grid(0.01), relative_alternative=1.5)
