"""The trade-off frontier, recommended mixtures, and mixtures of more than two pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_grids import WEIGHTS

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    EqualRegret,
    Floor,
    FractionFit,
    Importance,
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
    for preference in (Importance(by_pair={"a": 1, "b": 1}), EqualRegret()):
        weights = recommend_weights(same, 1e5, preference).weights
        assert weights["a"] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("n", [2e4, 4e5])
def test_importance_is_the_best_of_a_fine_lattice(three, n: float) -> None:
    importance = {"eng-deu": 3.0, "eng-zho": 1.0, "eng-fra": 2.0}
    found = recommend_weights(three, n, Importance(by_pair=importance))
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


def test_floor_is_met_exactly_and_costs_no_more_than_needed(two, three) -> None:
    target = float(loss_of(0.4, 1e5, 90.0))
    found = recommend_weights(two, 1e5, Floor(pair="eng-zho", target=target))
    assert found.weights["eng-zho"] == pytest.approx(0.4, abs=1e-5)
    assert found.table.loss["eng-zho"] <= target + 1e-9
    found = recommend_weights(three, 1e5, Floor(pair="eng-zho", target=target))
    assert found.weights["eng-zho"] == pytest.approx(0.4, abs=1e-5)
    share = np.linspace(0.05, 0.55, 2000)
    rest = loss_of(share, 1e5) + loss_of(0.6 - share, 1e5, 45.0, (0.2, 0.6, 1.0))
    assert found.weights["eng-deu"] == pytest.approx(share[rest.argmin()], abs=1e-3)
    with pytest.raises(InputError, match="comes no nearer"):
        recommend_weights(two, 1e5, Floor(pair="eng-deu", target=1.0))


@pytest.fixture(scope="module")
def synergy() -> FractionFit:
    """A law of f(p) up to 1.22: the pair is best served by a share of about 0.83."""
    return law(c=(1.0, 0.3, 0.5))


def test_a_floor_reached_only_at_a_middle_share(synergy) -> None:
    laws = {"a": synergy, "b": law(90.0)}
    shares = np.linspace(0.05, 0.95, 90_001)
    losses = loss_of(shares, 1e5, c=(1.0, 0.3, 0.5))
    best, at_most = losses.min(), losses[-1]
    assert best < at_most - 0.01 and 0.8 < shares[losses.argmin()] < 0.86
    target = 0.9 * best + 0.1 * at_most
    found = recommend_weights(laws, 1e5, Floor(pair="a", target=target))
    assert found.table.loss["a"] <= target + 1e-9
    assert found.weights["a"] == pytest.approx(shares[losses <= target].min(), abs=1e-4)
    barely = recommend_weights(laws, 1e5, Floor(pair="a", target=best + 1e-7))
    assert barely.weights["a"] == pytest.approx(shares[losses.argmin()], abs=1e-3)
    with pytest.raises(InputError, match=f"no nearer to .* than {best:.4g}"):
        recommend_weights(laws, 1e5, Floor(pair="a", target=best - 1e-4))


def test_a_floor_leaves_the_others_their_best_share(synergy) -> None:
    """The other pair gains from sharing: it is best off when the floored pair has 0.17."""
    shares = np.linspace(0.05, 0.95, 90_001)
    found = recommend_weights(
        {"a": law(90.0), "b": synergy}, 1e5, Floor(pair="a", target=float(loss_of(0.05, 1e5, 90.0)))
    )
    best = shares[loss_of(1 - shares, 1e5, c=(1.0, 0.3, 0.5)).argmin()]
    assert found.weights["a"] == pytest.approx(best, abs=1e-3)


def test_equal_regret_is_equal(three) -> None:
    found = recommend_weights(three, 1e5, EqualRegret())
    regret = found.table.regret.to_numpy()
    assert regret == pytest.approx(np.full(3, regret.mean()), rel=1e-3)
    assert sum(found.weights.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "preference",
    [Importance({"a": 2, "b": 1}), EqualRegret(), Floor("a", 4.5)],
)
def test_weights_come_with_an_interval_that_noise_widens(preference) -> None:
    widths = []
    for noise in (0.0002, 0.01):
        laws = {"a": law(noise=noise, seed=1), "b": law(90.0, noise=noise, seed=2)}
        found = recommend_weights(laws, 1e5, preference)
        step = 0.0025
        low, high = found.table.p_low["a"], found.table.p_high["a"]
        assert low - step <= found.weights["a"] <= high + step
        assert found.table.p_low["b"] == pytest.approx(1 - high)
        widths.append(high - low)
    assert widths[1] > max(3 * widths[0], 0.004)


def test_a_note_on_sizes(two) -> None:
    importance = Importance(by_pair={"eng-deu": 1, "eng-zho": 1})
    assert recommend_weights(two, 1e5, importance).notes == ()
    smaller = {"eng-deu": two["eng-deu"], "eng-zho": law(90.0, sizes=SIZES[:4])}
    (note,) = recommend_weights(smaller, 1e5, importance).notes
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
    equal = Importance(by_pair={"a": 1, "b": 1})
    laws = {"a": noisy_design(0.05, 1), "b": noisy_design(0.05, 2)}
    assert recommend_weights(laws, 1e5, equal).refusal == ()
    monkeypatch.setattr(recommendation, "MOST_SPREAD", 0.35)
    found = recommend_weights(laws, 1e5, equal)
    (refusal,) = found.refusal
    assert "an interval wider than 0.35; add seeds, sizes or mixtures" in refusal


def test_a_pair_without_runs_of_its_own_is_refused(two) -> None:
    rows = [(p, n, loss_of(p, n)) for p in WEIGHTS[:-1] for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "cross_entropy"])
    mixed = {"a": two["eng-deu"], "b": fit_fraction(frame)}
    found = recommend_weights(mixed, 1e5, EqualRegret())
    assert found.refusal[0].startswith("b: no row has p = 1; add runs of b alone")
    with pytest.raises(InputError, match="no recommendation: b: no row has p = 1"):
        _ = found.weights


def test_quality_is_raised_not_lowered() -> None:
    rows = [(p, n, 60 - 8 * (loss_of(p, n) - 1.1)) for p in WEIGHTS for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "chrf"])
    good = fit_fraction(frame, loss="chrf", direction="max")
    laws = {"a": good, "b": good}
    found = recommend_weights(laws, 1e5, Importance(by_pair={"a": 1, "b": 1}))
    assert found.weights["a"] == pytest.approx(0.5, abs=1e-3)
    target = float(60 - 8 * (loss_of(0.3, 1e5) - 1.1))
    floor = recommend_weights(laws, 1e5, Floor(pair="a", target=target))
    assert floor.weights["a"] == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(InputError, match="mixed"):
        frontier({"a": good, "b": law()}, 1e5)


@pytest.mark.parametrize(
    ("preference", "word"),
    [
        (Importance(by_pair={"eng-deu": 1.0}), "give each of"),
        (Importance(by_pair={"eng-deu": 0.0, "eng-zho": 0.0}), "not all 0"),
        (Floor(pair="eng-xho", target=3.0), "eng-xho"),
        (Floor(pair="eng-deu", target=float("nan")), "target"),
    ],
)
def test_unusable_preferences_are_errors(two, preference, word) -> None:
    with pytest.raises(InputError, match=word):
        recommend_weights(two, 1e5, preference)


def test_unusable_mixtures_are_errors(two) -> None:
    with pytest.raises(InputError, match="at least two"):
        frontier({"eng-deu": two["eng-deu"]}, 1e5)
    with pytest.raises(InputError, match="n:"):
        recommend_weights(two, 0.0, EqualRegret())
    with pytest.raises(InputError, match="more than 4 times the largest trained size"):
        recommend_weights(two, 5e5, EqualRegret())
