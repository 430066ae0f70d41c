"""The driver of all fits: formulas against their derivatives, and the best of many starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.laws import (
    AdditiveLawFit,
    BivariateLawFit,
    FractionFit,
    JointLawFit,
    PowerLawFit,
    fit_joint_law,
)
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.minimise import Minimum, least
from mnmt_repro.laws.solve import CurveLaw
from mnmt_repro.laws.trend import Coefficient, TrendLaw

N = np.array([4e3, 2e4, 1e5, 5e5, 4e3, 2e4])
OTHER = np.array([1e4, 3e3, 9e5, 2e5, 7e4, 8e3])
P = np.array([1.0, 0.5, 0.1, 0.9, 0.3, 1.0])
LOSS = np.array([5.0, 4.0, 2.0, 2.5, 6.0, 3.5])
FRACTION = {"p": P, "n": N, "weights": LOSS**-2, "direction": "min", "ceiling": None}

CURVES: dict[str, tuple[LawFit, list[float]]] = {
    "Eq. 2": (
        BivariateLawFit.blank(("beta", "alpha_e", "alpha_d", "l_inf"), LOSS,
                              n_encoder=N, n_decoder=OTHER),
        [30.0, 0.1, 0.2, 1.2],
    ),
    "Eq. 12": (
        FractionFit.blank(("alpha", "l_inf", "beta", "c1", "c2", "c3"), LOSS, form="eq12",
                          **FRACTION),
        [0.3, 1.2, 40.0, 0.4, 0.6, 1.3],
    ),
    "Eq. 13, a quality": (
        FractionFit.blank(("alpha", "l_inf", "beta", "c1"), LOSS, form="eq13",
                          **{**FRACTION, "direction": "max"}),
        [0.3, 9.0, 40.0, 0.8],
    ),
    "additive": (
        AdditiveLawFit.blank(("E", "A", "B", "alpha", "beta"), LOSS, n=N, d=OTHER,
                             huber_delta=None, log_loss=False, objective=np.nan),
        [1.2, 40.0, 60.0, 0.3, 0.25],
    ),
    "additive, log loss": (
        AdditiveLawFit.blank(("E", "A", "B", "alpha", "beta"), LOSS, n=N, d=OTHER,
                             huber_delta=1e-3, log_loss=True, objective=np.nan),
        [1.2, 40.0, 60.0, 0.3, 0.25],
    ),
}  # fmt: skip


def differences(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Central differences of a function of a vector: a column for each of its entries."""
    steps = np.diag(1e-5 * np.maximum(np.abs(at), 1e-2))
    return np.stack([(function(at + h) - function(at - h)) / (2 * h.sum()) for h in steps], axis=-1)


@pytest.mark.parametrize("name", CURVES)
def test_a_formula_agrees_with_its_derivatives_and_its_units(name: str) -> None:
    blank, truth = CURVES[name]
    law, values = blank.law(), np.array(truth)
    assert isinstance(law, CurveLaw)
    theta = law.scaled(values)
    assert law.unscaled(theta[None])[0] == pytest.approx(values, rel=1e-12)
    by_units = differences(lambda t: law.unscaled(t[None])[0], theta)
    assert law.change(values) == pytest.approx(by_units, rel=1e-6, abs=1e-6)

    def slope(t: np.ndarray) -> np.ndarray:
        return differences(lambda u: law.evaluate(u[None])[0][0], t)

    assert law.jacobian(theta) == pytest.approx(slope(theta), rel=1e-6, abs=1e-8)
    score = np.linspace(-1, 1, 6)
    curvature = law.curvature(theta[None], score[None])
    if np.ndim(curvature):  # the fraction's is left out
        by_slope = differences(lambda t: score @ law.jacobian(t), theta)
        assert curvature[0] == pytest.approx(by_slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("direction", ["min", "max"])
def test_the_joint_law_agrees_with_its_derivatives(direction: str) -> None:
    values = np.array([0.3, 9.0, 40.0, 60.0])
    law = JointLawFit.blank(
        ("alpha", "l_inf", "beta[0.5]", "beta[1]"), LOSS, n=N, weights=np.ones(6),
        group=np.array([0, 1, 0, 1, 1, 0]), direction=direction, ceiling=None, p=(0.5, 1.0),
    ).law()  # fmt: skip
    sign = 1 if direction == "min" else -1

    def curve(t: np.ndarray) -> np.ndarray:
        return t[1] + sign * t[2 + law.group] * N ** -t[0]

    by_difference = differences(curve, values)
    assert law.jacobian(values) == pytest.approx(by_difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("trend", ["alpha", "l_inf"])
def test_a_trend_agrees_with_its_derivatives(trend: Coefficient) -> None:
    frame = pd.DataFrame({"p": np.repeat([0.5, 1.0], 4), "n": np.tile(N[:4], 2)})
    frame["loss"] = np.where(frame["p"] == 1, 40.0, 50.0) * frame["n"] ** -0.3 + 1.5
    joint = fit_joint_law(frame, n="n", loss="loss")
    law = TrendLaw.of(joint, np.array([1.0, 0.0]), trend)
    theta = law.start * np.linspace(0.9, 1.1, 5)
    by_difference = differences(lambda t: law.predict(t[None])[0], theta)
    assert law.evaluate(theta[None])[1][0] == pytest.approx(by_difference, rel=1e-6, abs=1e-8)


def test_the_best_attempt_at_each_problem_is_kept() -> None:
    def attempt(objective: list[float]) -> Minimum:
        many = np.array(objective)
        return Minimum(
            theta=many[:, None], objective=many, converged=many > 0, held=many[:, None] < 0
        )

    kept = least([attempt([3.0, 1.0]), attempt([2.0, 5.0])], 2)
    assert kept.theta.tolist() == [[2.0], [1.0]] and kept.objective.tolist() == [2.0, 1.0]
    assert least([attempt([3.0, 1.0]), attempt([2.0, 0.5])], 1).theta.tolist() == [[0.5]]


def test_without_an_answer_all_numbers_are_nan_and_the_rows_are_kept() -> None:
    blank = PowerLawFit.blank(
        ("alpha", "l_inf", "beta"), LOSS, n=N, weights=np.ones(6), group=(0,) * 6,
        direction="min", ceiling=None,
    )  # fmt: skip
    assert not blank.identified and np.isnan([*blank.values, blank.rss, blank.r2]).all()
    assert blank.observations == 6 and blank.n == tuple(N) and blank.loss == tuple(LOSS)
