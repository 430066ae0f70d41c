"""Tables on uncertainty, on rows whose noise and law are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.papers.effects import uncertainty
from mnmt_repro.papers.effects.grids import LossGrid, read_grid

COHORT = "webtech-en-dezh"
PAIR = ("eng-deu",)
FIVE = (0.05, 0.1, 0.5, 0.9, 1.0)


def grids(*frames: pd.DataFrame) -> dict[str, LossGrid]:
    grid = read_grid(pd.concat(frames), COHORT)
    assert grid is not None
    return {COHORT: grid}


def test_noise_between_two_seeds_by_hand():
    one = rows(COHORT, PAIR, noise=0.0).assign(seed=1)
    cell = (one["p"] == 0.5) & (one["n_non_embedding"] == SIZES[0])
    assert cell.sum() == 1
    one.loc[cell, "cross_entropy"] = 2.0
    again = one[cell].assign(seed=2, cross_entropy=2.2)
    row = uncertainty.noise_levels(grids(one, again)).iloc[0]
    assert row["cells with seeds"] == 1
    assert row["between seeds"] == pytest.approx(np.log(2.2 / 2.0) / 2**0.5)
    assert row["footnote 5"] == 0.01


@pytest.mark.parametrize("tier", ["mini", "steady"])  # which minimise absolute, relative errors
def test_laws_leave_the_noise_that_was_put_in(tier):
    given = grids(rows(COHORT, PAIR, noise=0.004).assign(tier=tier))
    row = uncertainty.noise_levels(given).iloc[0]
    for law in ("left by Eq. 6", "left by Eq. 7"):
        assert row[law] == pytest.approx(0.004, rel=0.25)
    assert np.isnan(row["between seeds"]) and row["cells with seeds"] == 0


def test_laws_that_are_true_are_preferred_to_more_parameters():
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=lambda q: 0.6 * (q - 1) + 1)  # Eq. 13

    given = grids(rows(COHORT, PAIR, loss=loss, weights=FIVE, noise=0.004, seed=2))
    table = uncertainty.law_comparison(given).set_index("law")
    assert table["parameters"].to_dict() == {
        "Eq. 6": 3 * 5,
        "Eq. 7": 2 + 5,
        "Eq. 11 with Eq. 12": 3 + 3,
        "Eq. 11 with Eq. 13": 3 + 1,
        "size and text": 5,
    }
    # Three of the laws hold the truth, so the fifteen parameters of the first are wasted.
    true = table.drop(index=["Eq. 6", "size and text"])
    assert table["ΔAICc"]["Eq. 6"] > true["ΔAICc"].max() + 10
    assert table["ΔAICc"].min() == 0
    assert table.loc[["Eq. 6", "Eq. 7"], "error on a weight"].isna().all()
    loss = given[COHORT].points["loss"]
    sums = (1 - table["R²"]) * ((loss - loss.mean()) ** 2).sum()
    noise = np.sqrt(sums["Eq. 7"] / (40 - 7))
    assert noise == pytest.approx(0.004 * loss.mean(), rel=0.25)
    for law in ("Eq. 11 with Eq. 12", "Eq. 11 with Eq. 13"):
        assert table.loc[law, "error on a weight"] < 3 * noise


def test_a_law_of_size_and_text_is_found_where_it_is_true():
    def loss(p: float, n: float) -> float:
        return 1.0 + 20 * n**-0.3 + 60 * (4e6 * p) ** -0.25

    made = grids(rows(COHORT, PAIR, loss=loss, weights=FIVE, noise=0.002, seed=2))
    table = uncertainty.law_comparison(made).set_index("law")
    assert table["ΔAICc"].idxmin() == "size and text"
    noise = 0.002 * made[COHORT].points["loss"].mean()
    assert table.loc["size and text", "error on a weight"] < 2 * noise
    assert table.loc["Eq. 11 with Eq. 12", "error on a weight"] > 2 * noise
