"""Estimands of the settled tier on rows with known truth."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import loss_of, seeds
from test_estimands import drifting, holds, units, width, with_fraction

from mnmt_repro.papers.effects import settled
from mnmt_repro.papers.effects.noise import NoRowsYet, OutOfRegime

PAIRS = ("src-aaa", "src-bbb")
MIXED = (4_000, 8_000, 16_000, 32_000)
ALONE = tuple(int(n) for n in np.geomspace(100, 40_000, 400))
GRID, MATCHED, HALF = "conlang-settled", "conlang-settled-matched", "conlang-settled-half"
TOKENS = 1e6 / 0.05
"""Of all pairs: one million of them are of a pair at p = 0.05."""


def table(
    cohort: str = GRID,
    *,
    noise: float = 0.0,
    alone: tuple[int, ...] = ALONE,
    first: int = 0,
    count: int = 3,
    **more: Any,
) -> pd.DataFrame:
    """Mixtures and single pairs, f(p) = p ** 0.5 unless `loss` says else."""
    more = {"loss": with_fraction(lambda p: p**0.5), "noise": noise} | more
    parts = [
        seeds(cohort, PAIRS, weights=weights, sizes=sizes, first=first, count=count, **more)
        for weights, sizes in (((0.05, 0.95), MIXED), ((1.0,), alone))
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(tier="settled", pair_target_tokens=TOKENS * frame["p"])


def found(estimand: Any, *frames: pd.DataFrame, least: float = 25, **options: Any) -> Any:
    options = {"weight": 0.05, "least_own_tokens": least, "cohorts": (GRID,)} | options
    return units(estimand, *frames, tier="settled", **options)


def log_linear(frame: pd.DataFrame, tilt: float = 0.0) -> pd.DataFrame:
    """With losses that are a power of f N, so that reading between sizes is exact."""
    n, p = frame["n_non_embedding"], frame["p"]
    f = np.where(p < 1, p**0.5 * (n / MIXED[0]) ** tilt, 1.0)
    return frame.assign(cross_entropy=30 * (f * n) ** -0.2)


# ------------------------------------------------------------------ capacity


def test_a_fraction_without_noise_is_read_exactly() -> None:
    few = (100, 900, 5_000, 40_000)
    exact = log_linear(table(alone=few))
    whole = found(settled.capacity_by_interpolation, exact)
    assert whole["all"]["capacity"].value == pytest.approx(0.05**-0.5, rel=1e-6)
    part = whole["src-aaa, N = 32,000"]
    assert part["fraction"].value == pytest.approx(0.05**0.5, rel=1e-6)
    assert part["own_tokens_per_parameter"].value == pytest.approx(1e6 / 32_000)
    assert len(whole) == 1 + len(PAIRS) * len(MIXED)
    # Neighbouring sizes that are near give it for any law.
    fine = found(settled.capacity_by_interpolation, table())
    assert fine["all"]["capacity"].value == pytest.approx(0.05**-0.5, rel=1e-3)


def test_the_largest_size_in_regime_for_all_pairs_speaks() -> None:
    frame = table()
    poor = (frame["pair"] == "src-bbb") & (frame["n_non_embedding"] == MIXED[-1])
    frame.loc[poor, "pair_target_tokens"] /= 2
    at = (frame["p"] == 0.05) & (frame["n_non_embedding"] == MIXED[-2])
    frame.loc[at, "cross_entropy"] = loss_of(0.1, MIXED[-2])  # f = 0.1 at this size alone
    whole = found(settled.capacity_by_interpolation, frame)
    assert whole["all"]["capacity"].value == pytest.approx(2, rel=1e-3)


def test_without_a_cell_in_regime_there_is_no_number() -> None:
    for estimand in (
        settled.capacity_by_interpolation,
        settled.fraction_slope_by_interpolation,
    ):
        with pytest.raises(OutOfRegime, match="at most 250 tokens per parameter, not 1000"):
            found(estimand, table(), least=1000)
    with pytest.raises(NoRowsYet, match="no cells at p = 0.1"):
        found(settled.capacity_by_interpolation, table(), weight=0.1)


def test_a_fraction_is_not_read_outside_single_pairs() -> None:
    above = tuple(n for n in ALONE if n > 3_000)
    whole = found(settled.capacity_by_interpolation, table(alone=above))
    assert math.isnan(whole["src-aaa, N = 4,000"]["capacity"].value)  # f N is 894
    assert whole["all"]["capacity"].value > 1
    # Where many draws fall outside, the value has no interval.
    edge = (6_800, 20_000, 40_000)  # f N is 7155
    part = found(settled.capacity_by_interpolation, table(alone=edge, noise=0.01, first=3))["all"]
    assert part["capacity"].value > 1 and math.isnan(part["capacity"].low)


def test_mixtures_of_another_cohort_are_read_on_the_single_pairs_of_the_last() -> None:
    matched = table(MATCHED, loss=with_fraction(lambda p: p))
    matched = matched[matched["p"] < 1]
    whole = found(
        settled.capacity_by_interpolation, table(), matched, cohorts=(MATCHED, GRID), least=25
    )
    assert whole["all"]["capacity"].value == pytest.approx(1, rel=1e-3)


def test_each_way_is_read_on_its_single_pairs() -> None:
    sampled = log_linear(table(alone=(100, 900, *MIXED[1:])))
    matched = log_linear(table(MATCHED, alone=()))
    weighted = matched[matched["p"] < 1].assign(cross_entropy=lambda f: f["cross_entropy"] * 0.9)
    alone = (weighted["n_non_embedding"] == MIXED[-1]) & (weighted["pair"] == PAIRS[1])
    rows = pd.concat([sampled, weighted[~alone]]).assign(passes=2.0)
    read = settled.fractions_by_way(rows, settled.ways(GRID), 0.05).set_index(["way", "n"])
    assert list(dict.fromkeys(read.index.get_level_values("way"))) == [
        "long runs", "text-matched",
    ]  # fmt: skip
    whole, weight = (read.loc[way, MIXED[1]] for way in ("long runs", "text-matched"))
    assert whole["times"] == pytest.approx(0.05**-0.5, rel=1e-3)
    assert weight["times"] / whole["times"] == pytest.approx(0.9**-5, rel=1e-3)
    assert whole["own"] == pytest.approx(1e6 / MIXED[1]) and whole["passes"] == 2
    assert whole["unread"] == 0 or math.isnan(whole["unread"])  # inside the single pairs' losses
    # Losses fall with the fifth root of f N.
    assert [whole["deficit"], weight["deficit"]] == pytest.approx(
        [100 * (0.05**-0.1 - 1), 100 * (0.9 * 0.05**-0.1 - 1)]
    )
    assert math.isnan(read.loc["text-matched", MIXED[0]]["deficit"])  # no single pair
    assert [n for way, n in read.index if way == "text-matched"] == [*MIXED[:-1]]  # of both pairs


# ------------------------------------------------------------------ slope, exponent, text


@pytest.mark.parametrize("tilt", [0.0, -0.15])
def test_the_slope_of_the_fraction(tilt: float) -> None:
    frame = log_linear(table(alone=(100, 900, 5_000, 40_000)), tilt)
    slope = found(settled.fraction_slope_by_interpolation, frame)["all"]
    assert slope["slope"].value == pytest.approx(tilt, abs=1e-6)
    assert slope["cells"].value == len(PAIRS) * len(MIXED)
    frame["cross_entropy"] *= np.exp(0.005 * np.random.default_rng(0).standard_normal(len(frame)))
    assert holds(found(settled.fraction_slope_by_interpolation, frame)["all"]["slope"], tilt)
    with pytest.raises(OutOfRegime, match="can be read: 2 of 3"):
        found(settled.fraction_slope_by_interpolation, frame, least=100)


def test_the_exponent_shifts_in_regime() -> None:
    loss = partial(drifting, alpha=-0.3)
    frame = table(loss=loss, alone=MIXED, noise=0.002, first=3)
    poor = (frame["p"] == 0.05) & (frame["n_non_embedding"] == MIXED[-1])
    frame.loc[poor, "cross_entropy"] *= 1.2  # too little text, and off
    found_in = found(settled.exponent_shift_in_regime, frame, least=40)
    assert all(holds(each["shift"], -0.3) for each in found_in.values())
    with pytest.raises(OutOfRegime, match="in regime at p = 0.05: 2 of 3"):
        found(settled.exponent_shift_in_regime, frame, least=100)
    with pytest.raises(OutOfRegime, match="no cell in regime"):
        found(settled.exponent_shift_in_regime, frame, least=1e6)


def test_with_more_text_a_cell_comes_nearer_the_law() -> None:
    def late(by: float, noise_of: int, cohort: str) -> pd.DataFrame:
        frame = table(cohort, alone=MIXED, noise=0.01, first=noise_of)
        last = (frame["p"] == 0.05) & (frame["n_non_embedding"] == MIXED[-1])
        return frame.assign(cross_entropy=frame["cross_entropy"] * np.where(last, by, 1.0))

    def nearer(half: pd.DataFrame) -> Any:
        whole = late(1.02, 0, GRID)
        asked = {"cohorts": (GRID, HALF)}
        return found(settled.nearer_with_text, whole, half, **asked)["all"]

    one = nearer(late(1.1, 0, HALF))
    gap = math.log(1.1 / 1.02)
    assert one["nearer"].value == pytest.approx(gap, abs=1e-3)
    difference = one["distance_half"].value - one["distance_whole"].value
    assert one["nearer"].value == pytest.approx(difference)
    # The same seeds at both budgets: their noise cancels.
    assert width(one["nearer"]) < 0.1 * width(nearer(late(1.1, 7, HALF))["nearer"])
    assert holds(nearer(late(1.1, 7, HALF))["nearer"], gap)
