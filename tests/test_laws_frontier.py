"""The trade-off frontier, recommended mixtures, and mixtures of more than two pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_grids import WEIGHTS

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    FractionFit,
    fit_fraction,
    frontier,
    recommend_weights,
    recommendation,
)
from mnmt_repro.laws.frontier import lattice

SIZES = np.geomspace(4e3, 1.2e5, 6)


def loss_of(p, n, beta=60.0, c=(0.4, 0.5, 1.5), l_inf=1.1):
    return beta * ((p + c[0] * p ** c[1] * (1 - p) ** c[2]) * n) ** -0.3 + l_inf


def law(
    beta: float = 60.0, noise: float = 0.0, seed: int = 0, sizes=SIZES, **options
) -> FractionFit:
    rows = [(p, n, loss_of(p, n, beta, **options)) for p in WEIGHTS for n in sizes]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "cross_entropy"])
    rng = np.random.default_rng(seed)
    frame["cross_entropy"] *= 1 + noise * rng.standard_normal(len(frame))
    return fit_fraction(frame)


@pytest.fixture(scope="module")
def two() -> dict[str, FractionFit]:
    return {"eng-deu": law(), "eng-zho": law(90.0)}


@pytest.fixture(scope="module")
def three(two) -> dict[str, FractionFit]:
    return {**two, "eng-fra": law(45.0, c=(0.2, 0.6, 1.0))}


def test_frontier_is_the_law_along_the_mixtures(two) -> None:
    frame = frontier(two, [1e5, 1e6])
    assert len(frame) == 2 * 99 * 2
    wide = frame.pivot(index=["n", "point"], columns="pair", values=["p", "loss"])
    assert wide["p"].sum(axis=1).to_numpy() == pytest.approx(np.ones(198))
    german = wide["p"]["eng-deu"].to_numpy(), wide.index.get_level_values("n").to_numpy()
    assert wide["loss"]["eng-deu"].to_numpy() == pytest.approx(loss_of(*german), rel=1e-6)
    first = wide.loc[1e5, "loss"]
    assert (np.diff(first["eng-deu"]) < 0).all() and (np.diff(first["eng-zho"]) > 0).all()


def test_equal_pairs_share_equally(two) -> None:
    same = {"a": two["eng-deu"], "b": two["eng-deu"]}
    for importance in (None, {"a": 3, "b": 3}):
        weights = recommend_weights(same, 1e5, importance).weights
        assert weights["a"] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("n", [2e4, 4e5])
def test_importance_is_the_best_of_a_fine_lattice(three, n: float) -> None:
    importance = {"eng-deu": 3.0, "eng-zho": 1.0, "eng-fra": 2.0}
    found = recommend_weights(three, n, importance)
    assert sum(found.weights.values()) == pytest.approx(1)
    points = lattice(3, 120)
    points = points[(points >= min(WEIGHTS)).all(axis=1)]
    betas, shapes = (60.0, 90.0, 45.0), ((0.4, 0.5, 1.5),) * 2 + ((0.2, 0.6, 1.0),)
    total = sum(
        weight * loss_of(points[:, i], n, betas[i], shapes[i])
        for i, weight in enumerate(importance.values())
    )
    reached = sum(importance[pair] * found.table.loss[pair] for pair in three)
    assert reached <= total.min() + 1e-9
    assert list(found.weights.values()) == pytest.approx(points[total.argmin()], abs=0.01)


def test_weights_come_with_an_interval_that_noise_widens() -> None:
    widths = []
    for noise in (0.0002, 0.01):
        laws = {"a": law(noise=noise, seed=1), "b": law(90.0, noise=noise, seed=2)}
        found = recommend_weights(laws, 1e5, {"a": 2, "b": 1})
        step = 0.0025
        low, high = found.table.p_low["a"], found.table.p_high["a"]
        assert low - step <= found.weights["a"] <= high + step
        assert found.table.p_low["b"] == pytest.approx(1 - high)
        widths.append(high - low)
    assert widths[1] > max(3 * widths[0], 0.004)


def test_a_note_on_sizes(two) -> None:
    assert recommend_weights(two, 1e5).notes == ()
    smaller = {"eng-deu": two["eng-deu"], "eng-zho": law(90.0, sizes=SIZES[:4])}
    (note,) = recommend_weights(smaller, 1e5).notes
    assert note == (
        "eng-zho: its models have sizes from 4,000 to 30,784.5, so its loss at 100,000 is "
        "extrapolated"
    )


def noisy_design(noise: float, seed: int) -> FractionFit:
    """Three sizes, four weights, two seeds: a pair of the design that `recommend` asks for."""
    design = [(p, n) for p in (0.2, 0.5, 0.8, 1.0) for n in (5e3, 2e4, 8e4) for _ in range(2)]
    frame = pd.DataFrame(design, columns=["p", "n"])
    errors = np.random.default_rng(seed).standard_normal(len(frame))
    return fit_fraction(
        frame.assign(loss=loss_of(frame.p, frame.n) * (1 + noise * errors)), n="n", loss="loss"
    )


def test_a_wide_interval_is_refused(monkeypatch) -> None:
    laws = {"a": noisy_design(0.05, 1), "b": noisy_design(0.05, 2)}
    assert recommend_weights(laws, 1e5).refusal == ()
    monkeypatch.setattr(recommendation, "MOST_SPREAD", 0.35)
    found = recommend_weights(laws, 1e5)
    (refusal,) = found.refusal
    assert "an interval wider than 0.35; add seeds, sizes or mixtures" in refusal


def test_a_pair_without_runs_of_its_own_is_refused(two) -> None:
    rows = [(p, n, loss_of(p, n)) for p in WEIGHTS[:-1] for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "cross_entropy"])
    mixed = {"a": two["eng-deu"], "b": fit_fraction(frame)}
    found = recommend_weights(mixed, 1e5)
    assert found.refusal[0].startswith("b: no row has p = 1; add runs of b alone")
    with pytest.raises(InputError, match="no recommendation: b: no row has p = 1"):
        _ = found.weights


def test_quality_is_raised_not_lowered() -> None:
    rows = [(p, n, 60 - 8 * (loss_of(p, n) - 1.1)) for p in WEIGHTS for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "chrf"])
    good = fit_fraction(frame, loss="chrf", direction="max")
    laws = {"a": good, "b": good}
    found = recommend_weights(laws, 1e5)
    assert found.weights["a"] == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(InputError, match="mixed"):
        frontier({"a": good, "b": law()}, 1e5)


@pytest.mark.parametrize(
    ("importance", "word"),
    [
        ({"eng-deu": 1.0}, "give each of"),
        ({"eng-deu": 0.0, "eng-zho": 0.0}, "not all 0"),
        ({"eng-deu": float("nan"), "eng-zho": 1.0}, "give numbers from 0"),
    ],
)
def test_unusable_importances_are_errors(two, importance, word) -> None:
    with pytest.raises(InputError, match=word):
        recommend_weights(two, 1e5, importance)


def test_unusable_mixtures_are_errors(two) -> None:
    with pytest.raises(InputError, match="at least two"):
        frontier({"eng-deu": two["eng-deu"]}, 1e5)
    with pytest.raises(InputError, match="n:"):
        recommend_weights(two, 0.0)
    with pytest.raises(InputError, match="more than 4 times the largest trained size"):
        recommend_weights(two, 5e5)
