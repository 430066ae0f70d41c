"""Each law: its formula against its derivatives and its units; the best of many starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.laws import (
    AdditiveLaw,
    BivariateLaw,
    FractionLaw,
    JointLaw,
    MixtureLaw,
    fit_additive_law,
    fit_joint_law,
    fit_power_law,
)
from mnmt_repro.laws.law import Law
from mnmt_repro.laws.trend import Coefficient, TrendLaw

N = np.array([4e3, 2e4, 1e5, 5e5, 4e3, 2e4])
OTHER = np.array([1e4, 3e3, 9e5, 2e5, 7e4, 8e3])
P = np.array([1.0, 0.5, 0.1, 0.9, 0.3, 1.0])
WEIGHTS = np.array([5.0, 4.0, 2.0, 2.5, 6.0, 3.5]) ** -2
MIXTURE = np.column_stack([P, (1 - P) / 4, (1 - P) * 3 / 4])
START = np.array([0.3, 1.0])
GROUP = np.array([0, 1, 0, 1, 1, 0])


def additive(**options) -> AdditiveLaw:
    return AdditiveLaw(weights=WEIGHTS, n=N, d=OTHER, **options)


LAWS: dict[str, tuple[Law, list[float]]] = {
    "Eq. 2": (
        BivariateLaw(weights=WEIGHTS, n_encoder=N, n_decoder=OTHER),
        [30.0, 0.1, 0.2, 1.2],
    ),
    "Eq. 7": (JointLaw(weights=WEIGHTS, n=N, group=GROUP, keys=(0.5, 1.0)), [0.3, 9.0, 40.0, 60.0]),
    "Eq. 7, a quality": (
        JointLaw(weights=WEIGHTS, n=N, group=GROUP, keys=(0.5, 1.0), direction="max"),
        [0.3, 9.0, 40.0, 60.0],
    ),
    "Eq. 12": (
        FractionLaw(weights=WEIGHTS, p=P, n=N, form="eq12", joint=START),
        [0.3, 1.2, 40.0, 0.4, 0.6, 1.3],
    ),
    "Eq. 13, a quality": (
        FractionLaw(weights=WEIGHTS, p=P, n=N, form="eq13", joint=START, direction="max"),
        [0.3, 9.0, 40.0, 0.8],
    ),
    "mixtures": (
        MixtureLaw(weights=WEIGHTS, n=N, mixture=MIXTURE, pairs=("deu", "fra", "zho")),
        [40.0, 0.2, 0.3, 0.1, 0.3, 1.2],
    ),
    "mixtures, one size": (
        MixtureLaw(
            weights=WEIGHTS, n=N[:1].repeat(6), mixture=MIXTURE, pairs=("deu", "fra", "zho")
        ),
        [2.0, 0.2, 0.3, 0.1],
    ),
    "additive": (additive(log_loss=False), [1.2, 40.0, 60.0, 0.3, 0.25]),
    "additive, log loss": (additive(log_loss=True, delta=1e-3), [1.2, 40.0, 60.0, 0.3, 0.25]),
}


def differences(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Central differences of a function of a vector: a column for each of its entries."""
    steps = np.diag(1e-5 * np.maximum(np.abs(at), 1e-2))
    return np.stack([(function(at + h) - function(at - h)) / (2 * h.sum()) for h in steps], axis=-1)


@pytest.mark.parametrize("name", LAWS)
def test_a_formula_agrees_with_its_derivatives_and_its_units(name: str) -> None:
    law, truth = LAWS[name]
    values = np.array(truth)
    theta = law.scaled(values)
    assert law.unscaled(theta) == pytest.approx(values, rel=1e-12)
    by_units = differences(law.unscaled, theta)
    assert law.change(values) == pytest.approx(by_units, rel=1e-6, abs=1e-6)
    assert law.evaluate(theta[None])[0][0] == pytest.approx(law.target(law.curve(values, law.rows)))
    slope = differences(lambda u: law.evaluate(u[None])[0][0], theta)
    assert law.jacobian(theta) == pytest.approx(slope, rel=1e-6, abs=1e-8)
    score = np.linspace(-1, 1, 6)
    curvature = law.curvature(theta[None], score[None])
    if np.ndim(curvature):  # other laws leave it out
        by_slope = differences(lambda t: score @ law.jacobian(t), theta)
        assert curvature[0] == pytest.approx(by_slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("trend", ["alpha", "l_inf"])
def test_a_trend_agrees_with_its_derivatives(trend: Coefficient) -> None:
    frame = pd.DataFrame({"p": np.repeat([0.5, 1.0], 4), "n": np.tile(N[:4], 2)})
    frame["loss"] = np.where(frame["p"] == 1, 40.0, 50.0) * frame["n"] ** -0.3 + 1.5
    joint = fit_joint_law(frame, n="n", loss="loss")
    law = TrendLaw.of(joint, np.array([1.0, 0.0]), trend)
    theta = law.start * np.linspace(0.9, 1.1, 5)
    by_difference = differences(lambda t: law.evaluate(t[None])[0][0], theta)
    assert law.evaluate(theta[None])[1][0] == pytest.approx(by_difference, rel=1e-6, abs=1e-8)


def test_a_fit_prints_its_parameters_in_a_few_lines() -> None:
    fit = fit_power_law([1, 4, 16, 64], [5.0, 3.0, 2.0, 1.5])
    first, _, alpha, *_, method = str(fit).splitlines()
    assert first == "loss = beta * n**-alpha + l_inf   (4 rows, R² 1.00000)"
    assert alpha.split()[:2] == ["alpha", "0.5"] and method.startswith("95 % intervals: Student")
    unknown = fit_power_law([1, 2], [3.0, 2.0], label="deu")
    assert str(unknown).endswith("not identified: " + unknown.reason) and "nan" not in str(unknown)
    assert unknown.fraction_doubts() == (unknown.reason,)
    quality = fit_power_law([1, 4, 16, 64], [1.0, 3.0, 4.0, 4.5], direction="max", label="<b>")
    assert str(quality).startswith("<b>: quality = l_inf - beta * n**-alpha   (")
    assert quality._repr_html_().startswith("<p>&lt;b&gt;: quality = l_inf - beta * n**-alpha   (")


def test_a_plot_has_the_losses_and_the_law() -> None:
    cells = [(p, n, d) for p in (0.5, 1.0) for n in N[:4] for d in (1e6, 4e6, 9e6)]
    frame = pd.DataFrame(cells, columns=["p", "n", "d"])
    frame.loc[12, "d"] = frame["n"][12]  # of p = 1: as many tokens as parameters, and no size
    frame["loss"] = 1.5 + 50 * (frame["p"] * frame["n"]) ** -0.3 + 20 * frame["d"] ** -0.3
    joint = fit_joint_law(frame[frame["d"] == 1e6], n="n", loss="loss")
    alone = frame[frame["p"] == 1]
    for fit in (joint, fit_additive_law(alone["n"], alone["d"], alone["loss"])):
        chart = fit.plot().to_dict()
        lines, points = (chart["datasets"][layer["data"]["name"]] for layer in chart["layer"])
        assert [row["loss"] for row in points] == fit.loss.tolist()
        assert len(lines) == 40 * len(set(fit.law.curve_names()))
        ends = {(row["curve"], row["n"]): row["loss"] for row in lines}
        least = [i for i, n in enumerate(fit.law.n) if n == min(N)]
        names, fitted = fit.law.curve_names(), fit.fitted()
        assert [ends[names[i], min(N)] for i in least] == pytest.approx(fitted[least])
    assert ends[f"{N[0]:.3g}", max(fit.law.n)] == pytest.approx(
        fit.predict(max(fit.law.n), N[0])[0]
    )
