"""The convergence correction on and off, on runs whose end is known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.papers.charts.convergence import cells_chart, curve_chart, law_chart, trust_chart
from mnmt_repro.papers.effects import convergence

PAIRS = ("eng-deu", "eng-zho")
STEPS = np.array([60, 90, 130, 190, 280, 410, 590, 860, 1260, 1840, 2680, 3920])
LARGE = SIZES[-2:]
HARDER = 1.1
"""Validation losses over test losses."""


def late(step: np.ndarray | float, p: float, n: float) -> np.ndarray | float:
    """What is missing at a step: much for large models at p = 0.05, little elsewhere."""
    much = 12.0 if p == 0.05 and n in LARGE else 1.0
    return much * np.asarray(step, dtype=float) ** -0.5


def stored(
    multiple: float = 1.0, weights=(0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
) -> pd.DataFrame:
    """Rows at the end of runs of `multiple` times 3,920 steps, over a law that holds exactly."""
    end = multiple * STEPS[-1]
    frame = rows(
        "webtech-en-dezh",
        PAIRS,
        loss=lambda p, n: loss_of(p, n) + float(late(end, p, n)),
        noise=0.0,
        weights=weights,
        steps=int(end),
        target_tokens=int(1000 * end),
    )
    return frame.assign(size=[f"N{n}" for n in frame["n_non_embedding"]])


@cache
def learning() -> pd.DataFrame:
    """Learning curves of all runs of `stored`; not to be written to."""
    parts = [
        pd.DataFrame(
            {
                "run_id": row.run_id,
                "pair": row.pair,
                "p": row.p,
                "size": row.size,
                "n_non_embedding": row.n_non_embedding,
                "step": STEPS,
                "cross_entropy": HARDER * (
                    loss_of(row.p, row.n_non_embedding) + late(STEPS, row.p, row.n_non_embedding)
                ),
            }
        )
        for row in stored().itertuples(index=False, name="Row")
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def corrected() -> pd.DataFrame:
    return convergence.correct(stored(), learning())


def test_the_multiple_is_the_papers_steps_over_those_it_trained() -> None:
    table = convergence.budget_table(stored()).set_index("quantity")
    assert table.loc["multiple of the budget", "paper"] == 2.5 == 2_500_000 / 1_000_000
    assert table.loc["steps read at", "ours"] == 9_800
    # Section 3.1: 1M steps of 500k tokens for 1,019,312,128 parameters.
    paper = table.loc["tokens a parameter, trained", "paper"]
    assert paper == pytest.approx(5e11 / 1_019_312_128)
    assert table.loc["tokens a parameter, trained", "ours"] == pytest.approx(3.92e6 / SIZES[-1])


def test_only_two_cells_a_pair_move_and_by_what_they_lack(corrected: pd.DataFrame) -> None:
    moved = corrected[corrected["corrected"]]
    assert set(moved["p"]) == {0.05} and set(moved["n_non_embedding"]) == set(LARGE)
    assert len(moved) == 4
    fall = 12 * (3920**-0.5 - 9800**-0.5)
    np.testing.assert_allclose(moved["observed"] - moved["cross_entropy"], fall, rtol=1e-3)
    rest = corrected[~corrected["corrected"]]
    assert (rest["cross_entropy"] == rest["observed"]).all()


def test_they_move_toward_the_law_of_the_others(corrected: pd.DataFrame) -> None:
    found = convergence.corrected_cells(corrected)
    assert (found["reason"] == "corrected").all()
    # Others lack 1 / sqrt(3920) = 0.016 nats too, which is in the law's constant.
    for row in found.to_dict("records"):
        law = loss_of(0.05, row["n"]) + 3920**-0.5
        assert row["law"] == pytest.approx(law, rel=1e-3)
        assert row["before"] == pytest.approx((law + 11 * 3920**-0.5) / law - 1, abs=1e-3)
        assert 0 < row["after"] < row["before"] * 0.7


def test_a_cell_of_two_seeds_is_their_mean() -> None:
    one = stored()
    other = one.assign(run_id="again-" + one["run_id"], cross_entropy=1.02 * one["cross_entropy"])
    curves = learning()
    steeper = curves.assign(
        run_id="again-" + curves["run_id"],
        cross_entropy=curves["cross_entropy"] + 3 * curves["step"].astype(float) ** -0.5,
    )
    both = convergence.correct(pd.concat([one, other]), pd.concat([curves, steeper]))
    found = convergence.corrected_cells(both)
    single = convergence.corrected_cells(convergence.correct(one, curves))
    assert len(found) == len(single) == 4
    np.testing.assert_allclose(found["observed"], 1.02**0.5 * single["observed"])
    np.testing.assert_allclose(found["before"], single["before"], rtol=1e-5)
    assert (found["after"] < single["after"]).all()


def test_effect_shows_both_states(corrected: pd.DataFrame) -> None:
    table = convergence.effect(corrected).set_index(["pair", "law", "coefficient"])
    off, on = convergence.STATES
    for pair in ("English→German", "English→Chinese"):
        joint = table.loc[(pair, "joint (Eq. 7)", "R²")]
        assert joint[on] > joint[off]
        alpha = table.loc[(pair, "joint (Eq. 7)", "α")]
        assert abs(alpha[on] - 0.3) < abs(alpha[off] - 0.3)
        own = table.loc[(pair, "p = 0.05 alone (Eq. 6)", "α")]
        assert own[on] != own[off]


def test_the_ends_of_exact_curves_are_predicted() -> None:
    found = convergence.backtest(learning())
    assert len(found) == 2 * 8 * 8
    # Kept up to step 1,260, the last at or before 3,920 / 2.5.
    assert set(found["multiple"]) == {3920 / 1260}
    np.testing.assert_allclose(found["missed"], 0, atol=1e-4)
    small = found[(found["p"] == 0.05) & found["n"].isin(LARGE)]
    np.testing.assert_allclose(small["fall"] / HARDER, 12 * (1260**-0.5 - 3920**-0.5), rtol=1e-9)
    table = convergence.trust_table(found).set_index("p")
    assert table.loc[1.0, "curves"] == 16
    fall = HARDER * (1260**-0.5 - 3920**-0.5)
    assert table.loc[1.0, "fall"] == pytest.approx(fall)
    assert table.loc[1.0, "predicted fall"] == pytest.approx(fall, rel=1e-3)
    assert (table["closer"] == 1).all() and (table["error"] < 1e-4).all()


def test_short_and_flat_curves_are_left_out_of_the_backtest() -> None:
    curves = learning()
    short = curves[curves["step"] >= 860]  # two points before the cut
    assert convergence.backtest(short).empty
    flat = curves[curves["p"] == 0.05].assign(cross_entropy=3.0)
    assert convergence.backtest(flat).empty
    assert convergence.trust_table(convergence.backtest(flat)).empty


def test_longer_runs_are_predicted() -> None:
    longer = [
        stored(k, (0.1, 1.0)).assign(cohort=f"webtech-en-dezh-{m}m") for k, m in ((2, 8), (4, 16))
    ]
    found = convergence.against_longer(stored(), learning(), pd.concat(longer, ignore_index=True))
    assert len(found) == 2 * 2 * 2 * 8
    assert set(found["cohort"]) == {
        "English→{German, Chinese}, 8M tokens", "English→{German, Chinese}, 16M tokens",
    }  # fmt: skip
    assert set(found["multiple"]) == {2.0, 4.0}
    np.testing.assert_allclose(found["missed"], 0, atol=1e-4)
    half = found[found["multiple"] == 4.0]
    np.testing.assert_allclose(half["fall"], 3920**-0.5 / 2, rtol=1e-9)
    nothing = convergence.against_longer(stored(), learning(), stored(2).iloc[:0])
    assert nothing.empty and convergence.trust_table(nothing, "cohort").empty
    assert convergence.against_longer(stored(), learning(), stored()).empty  # no longer than ours


def test_a_curve_that_no_power_law_fits_is_left_alone_and_said() -> None:
    curves = learning().copy()
    flat = curves["pair"] == "eng-zho"
    curves.loc[flat, "cross_entropy"] = 3.0
    found = convergence.corrected_cells(convergence.correct(stored(), curves))
    chinese = found[found["pair"] == "English→Chinese"]
    assert (chinese["observed"] == chinese["corrected loss"]).all()
    assert (chinese["reason"] != "corrected").all()


def test_charts_are_valid(corrected: pd.DataFrame) -> None:
    points, laws = convergence.law_data(corrected)
    assert points.groupby("state")["moved"].sum().to_dict() == {
        "with the correction": 4, "without the correction": 4,
    }  # fmt: skip
    assert set(points["p"]) == set(laws["p"]) == {0.05, 1.0}
    law_chart(points, laws).to_dict()
    seen, law = convergence.curve_data(corrected, learning())
    assert len(seen) == 4 * len(STEPS)
    assert law["step"].max() == pytest.approx(9_800)
    curve_chart(seen, law).to_dict()
    found = convergence.corrected_cells(corrected)
    spec = cells_chart(found).to_dict()
    drawn = pd.DataFrame(spec["datasets"][spec["concat"][0]["layer"][4]["data"]["name"]])
    assert len(drawn) == 2 * len(found) == 8
    assert drawn["value"].sum() == pytest.approx(found["before"].sum() + found["after"].sum())
    curves = learning()[learning()["p"] == 0.05]
    trust_chart(convergence.backtest(curves)).to_dict()
