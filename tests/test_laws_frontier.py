"""The trade-off frontier, recommended mixtures, and mixtures of more than two pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    EqualRegret,
    Floor,
    FractionFit,
    Importance,
    fit_fraction,
    frontier,
    mixture_errors,
    predict_mixture,
    recommend_weights,
)
from mnmt_repro.laws.frontier import lattice
from mnmt_repro.laws.recommendation import MIN_WEIGHT

SIZES = np.geomspace(4e3, 1.2e5, 6)
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)


def loss_of(p, n, beta=60.0, c=(0.4, 0.5, 1.5), l_inf=1.1):
    return beta * ((p + c[0] * p ** c[1] * (1 - p) ** c[2]) * n) ** -0.3 + l_inf


def law(beta: float = 60.0, noise: float = 0.0, seed: int = 0, **options) -> FractionFit:
    rows = [(p, n, loss_of(p, n, beta, **options)) for p in WEIGHTS for n in SIZES]
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


def test_band_holds_the_truth_at_every_point_of_most_frontiers() -> None:
    covered = []
    for seed in range(10):
        laws = {"a": law(noise=0.004, seed=seed), "b": law(90.0, noise=0.004, seed=100 + seed)}
        weights = [{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}]
        band = frontier(laws, 2e5, weights, level=0.95, draws=200)
        assert list(band.columns) == ["n", "point", "pair", "p", "loss", "low", "high"]
        truth = loss_of(band.p, 2e5, band.pair.map({"a": 60.0, "b": 90.0}))
        covered.append(((band.low <= truth) & (truth <= band.high)).mean())
    assert np.mean(covered) >= 0.8  # 40 points, in pairs that err together


def test_lattice_holds_all_mixtures_once() -> None:
    points = lattice(3, 10)
    assert len(points) == 36  # 9 choose 2
    assert points.sum(1) == pytest.approx(np.ones(36)) and (points > 0).all()
    assert len(np.unique(points, axis=0)) == 36


def test_equal_pairs_share_equally(two) -> None:
    same = {"a": two["eng-deu"], "b": two["eng-deu"]}
    for preference in (Importance(weights={"a": 1, "b": 1}), EqualRegret()):
        weights = recommend_weights(same, 1e5, preference).weights
        assert weights["a"] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("n", [2e4, 1e6])
def test_importance_is_the_best_of_a_fine_lattice(three, n: float) -> None:
    importance = {"eng-deu": 3.0, "eng-zho": 1.0, "eng-fra": 2.0}
    found = recommend_weights(three, n, Importance(weights=importance))
    assert sum(found.weights.values()) == pytest.approx(1)
    points = lattice(3, 120)
    betas, shapes = (60.0, 90.0, 45.0), ((0.4, 0.5, 1.5),) * 2 + ((0.2, 0.6, 1.0),)
    total = sum(
        weight * loss_of(points[:, i], n, betas[i], shapes[i])
        for i, weight in enumerate(importance.values())
    )
    reached = sum(importance[pair] * found.loss[pair] for pair in three)
    assert reached <= total.min() + 1e-9
    assert list(found.weights.values()) == pytest.approx(points[total.argmin()], abs=0.01)


def test_floor_is_met_exactly_and_costs_no_more_than_needed(two, three) -> None:
    target = float(loss_of(0.4, 1e5, 90.0))
    found = recommend_weights(two, 1e5, Floor(pair="eng-zho", target=target))
    assert found.weights["eng-zho"] == pytest.approx(0.4, abs=1e-5)
    assert found.loss["eng-zho"] <= target + 1e-9
    found = recommend_weights(three, 1e5, Floor(pair="eng-zho", target=target))
    assert found.weights["eng-zho"] == pytest.approx(0.4, abs=1e-5)
    share = np.linspace(0.01, 0.59, 2000)
    rest = loss_of(share, 1e5) + loss_of(0.6 - share, 1e5, 45.0, (0.2, 0.6, 1.0))
    assert found.weights["eng-deu"] == pytest.approx(share[rest.argmin()], abs=1e-3)
    with pytest.raises(InputError, match="comes no nearer"):
        recommend_weights(two, 1e5, Floor(pair="eng-deu", target=1.0))


def test_an_easy_floor_leaves_the_pair_its_least_share(two) -> None:
    found = recommend_weights(two, 1e5, Floor(pair="eng-deu", target=50.0))
    assert found.weights["eng-deu"] == pytest.approx(MIN_WEIGHT)
    assert "least share" in found.notes[0] and "least share" in found._repr_html_()


@pytest.mark.parametrize("relative", [False, True])
def test_equal_regret_is_equal(three, relative: bool) -> None:
    found = recommend_weights(three, 1e5, EqualRegret(relative=relative))
    regret = np.array(list(found.regret.values()))
    if relative:
        regret = regret / np.array([beta * 1e5**-0.3 for beta in (60.0, 90.0, 45.0)])
    assert regret == pytest.approx(np.full(3, regret.mean()), rel=1e-3)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert list(found.summary().columns) == ["pair", "p", "loss", "regret"]


def test_quality_is_raised_not_lowered() -> None:
    rows = [(p, n, 60 - 8 * (loss_of(p, n) - 1.1)) for p in WEIGHTS for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "chrf"])
    good = fit_fraction(frame, loss="chrf", direction="max")
    laws = {"a": good, "b": good}
    found = recommend_weights(laws, 1e5, Importance(weights={"a": 1, "b": 1}))
    assert found.weights["a"] == pytest.approx(0.5, abs=1e-3)
    target = float(60 - 8 * (loss_of(0.3, 1e5) - 1.1))
    floor = recommend_weights(laws, 1e5, Floor(pair="a", target=target))
    assert floor.weights["a"] == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(InputError, match="mixed"):
        frontier({"a": good, "b": law()}, 1e5)


@pytest.mark.parametrize(
    ("preference", "word"),
    [
        (Importance(weights={"eng-deu": 1.0}), "pairs"),
        (Importance(weights={"eng-deu": 0.0, "eng-zho": 0.0}), "not all 0"),
        (Floor(pair="eng-xho", target=3.0), "eng-xho"),
        (Floor(pair="eng-deu", target=float("nan")), "target"),
        ("fairness", "preference"),
    ],
)
def test_unusable_preferences_are_errors(two, preference, word) -> None:
    with pytest.raises(InputError, match=word):
        recommend_weights(two, 1e5, preference)


def test_unusable_mixtures_are_errors(two) -> None:
    with pytest.raises(InputError, match="at least two"):
        frontier({"eng-deu": two["eng-deu"]}, 1e5)
    with pytest.raises(InputError, match=r"weights\[0\]"):
        frontier(two, 1e5, [{"eng-deu": 0.5, "eng-zho": 0.6}])
    with pytest.raises(InputError, match=r"weights\[0\]"):
        frontier(two, 1e5, [{"eng-deu": 0.5, "eng-fra": 0.5}])
    with pytest.raises(InputError, match="n:"):
        recommend_weights(two, 0.0, EqualRegret())


def test_three_pairs_from_two_pair_laws() -> None:
    """Appendix H: German has two laws, from two cohorts; their predictions are averaged."""
    laws = {"eng-deu": [law(60.0), law(62.0)], "eng-zho": law(90.0)}
    weights = {"eng-deu": 0.3, "eng-zho": 0.7}
    table = predict_mixture(laws, weights, [1e5, 2e5])
    german = table[table.pair == "eng-deu"]
    low, high = loss_of(0.3, german.n, 60.0), loss_of(0.3, german.n, 62.0)
    assert german.loss.to_numpy() == pytest.approx((low + high) / 2, rel=1e-6)
    assert german.lowest.to_numpy() == pytest.approx(low, rel=1e-6)
    assert list(german.laws) == [2, 2]
    observed = pd.DataFrame(
        {"pair": "eng-deu", "p": 0.3, "n_non_embedding": german.n, "cross_entropy": low * 1.01}
    )
    errors = mixture_errors(laws, observed)
    expected = ((low + high) / 2 - 1.01 * low) / (1.01 * low)
    assert errors.relative_error.to_numpy() == pytest.approx(expected, rel=1e-4)
    for mixture in ({"eng-deu": 0.5, "eng-fra": 0.5}, {"eng-deu": 0.5, "eng-zho": 0.6}):
        with pytest.raises(InputError):
            predict_mixture(laws, mixture, 1e5)
