"""Models of many pairs from laws of two, on losses whose law is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.figures import scaling, three_pairs

PAIRS = ("eng-deu", "eng-fra", "eng-zho")
MIXTURES = (
    (1 / 3, 1 / 3, 1 / 3),
    (0.5, 0.25, 0.25),
    (0.25, 0.5, 0.25),
    (0.1, 0.1, 0.8),
)


def fraction(p: float) -> float:
    """Eq. 12 with c1 = 0.4, c2 = 0.8, c3 = 1.2: inside the family that is fitted."""
    return p + 0.4 * p**0.8 * (1 - p) ** 1.2


def truth(p: float, n: float) -> float:
    return loss_of(p, n, fraction=fraction)


def two_pair_points() -> dict[str, pd.DataFrame]:
    return {
        "webtech-en-dezh": scaling.observed(
            rows("webtech-en-dezh", ("eng-deu", "eng-zho"), loss=truth, noise=0.0)
        ),
        "webtech-en-defr": scaling.observed(
            rows("webtech-en-defr", ("eng-deu", "eng-fra"), loss=truth, noise=0.0)
        ),
    }


def three_pair_rows(loss=truth, mixtures=MIXTURES, pairs=PAIRS, sizes=SIZES[::2]) -> pd.DataFrame:
    """Rows as `results.load` gives them; `loss` is a function of p, N and the mixture's weights."""
    found = []
    for weights in mixtures:
        text = ",".join(f"{pair}:{p:g}" for pair, p in zip(pairs, weights, strict=True))
        for n in sizes:
            for pair, p in zip(pairs, weights, strict=True):
                found.append(
                    {
                        "run_id": f"{text} {n}",
                        "mixture": text,
                        "pair": pair,
                        "p": p,
                        "n_non_embedding": n,
                        "cross_entropy": loss(p, n),
                        "test_set": "indomain",
                        "domain": "all",
                        "cohort": "webtech-en-defrzh",
                    }
                )
    return pd.DataFrame(found)


def test_laws_come_from_every_cohort_that_holds_the_pair() -> None:
    laws = three_pairs.pair_laws(two_pair_points())
    assert {pair: [law.label for law in own] for pair, own in laws.items()} == {
        "eng-deu": ["webtech-en-dezh", "webtech-en-defr"],
        "eng-zho": ["webtech-en-dezh"],
        "eng-fra": ["webtech-en-defr"],
    }
    np.testing.assert_allclose(laws["eng-fra"][0].fraction([0.1, 0.5]), [
        0.1 + 0.4 * 0.1**0.8 * 0.9**1.2, 0.5 + 0.4 * 0.5**2.0,
    ], rtol=1e-3)  # fmt: skip


def test_a_grid_that_determines_no_law_gives_none() -> None:
    whole = two_pair_points()["webtech-en-dezh"]
    few_weights = whole[whole["p"].isin([0.5, 0.9, 1.0])]
    few_sizes = whole[whole["n"].isin(SIZES[:3])]
    without_single = whole[whole["p"] < 1]
    for points in (few_weights, few_sizes, without_single, whole.iloc[:0]):
        assert three_pairs.pair_laws({"some": points}) == {}
    assert three_pairs.pair_laws({}) == {}


def test_three_pairs_that_obey_the_laws_are_predicted_exactly() -> None:
    laws = three_pairs.pair_laws(two_pair_points())
    cells = three_pairs.cells_of(three_pair_rows())
    assert len(cells) == len(MIXTURES) * 4 * 3
    found = three_pairs.predict(laws, cells)
    np.testing.assert_allclose(found["predicted"], found["loss"], rtol=2e-4)
    table = three_pairs.error_table(found)
    assert len(table) == len(MIXTURES) * 3 + 1
    assert table["error"].max() < 2e-4
    assert table.iloc[-1]["mixture"] == "all"


def test_an_excess_that_is_built_in_is_found() -> None:
    laws = three_pairs.pair_laws(two_pair_points())
    worse = three_pairs.cells_of(three_pair_rows(loss=lambda p, n: 1.04 * truth(p, n)))
    table = three_pairs.error_table(three_pairs.predict(laws, worse))
    np.testing.assert_allclose(table["bias"], 0.04, atol=3e-4)
    # Relative to the observed loss: 1 / 1.04 - 1.
    np.testing.assert_allclose(table["error"], 1 - 1 / 1.04, atol=3e-4)
    told = three_pairs.in_words(table, three_pairs.own_errors(laws))
    assert "worse than predicted by 4.0% on average" in told
    assert "0.0% on the two-pair runs of these sizes and weights" in told


def test_the_laws_own_errors_are_what_is_put_in() -> None:
    frame = rows("webtech-en-dezh", ("eng-deu", "eng-zho"), loss=truth, noise=0.02, seed=3)
    laws = three_pairs.pair_laws({"webtech-en-dezh": scaling.observed(frame)})
    table = three_pairs.own_errors(laws)
    assert list(table["cells"]) == [64, 64]
    # Noise of 2 % with six of 64 degrees of freedom spent.
    np.testing.assert_allclose(table["error"], 0.02 * (58 / 64) ** 0.5, rtol=0.2)
    assert (table["worst"] > 0.03).all()
    # Of the sizes and weights of the mixtures alone: 8 weights of 8 sizes are cut to some.
    cells = three_pairs.cells_of(three_pair_rows())
    some = three_pairs.own_errors(laws, cells)
    shares = frame[frame["pair"] == "eng-deu"]["p"]
    within = shares.between(cells["p"].min() - 1e-9, cells["p"].max() + 1e-9)
    sizes = frame[frame["pair"] == "eng-deu"]["n_non_embedding"].isin(cells["n"])
    assert list(some["cells"]) == [int((within & sizes).sum())] * 2 and some["cells"][0] < 64


def test_each_law_of_a_pair_that_has_two_is_held_against_the_runs_alone() -> None:
    points = two_pair_points()
    points["webtech-en-defr"] = points["webtech-en-defr"].assign(
        loss=lambda frame: 1.1 * frame["loss"]
    )
    laws = three_pairs.pair_laws(points)
    table = three_pairs.each_law(laws, three_pairs.cells_of(three_pair_rows()))
    assert set(table["pair"]) == {"English→German"} and len(table) == 2
    assert table["error"].tolist() == pytest.approx([0.0, 0.1], abs=1e-3)
    assert table["bias"].tolist() == pytest.approx([0.0, 1 / 1.1 - 1], abs=1e-3)


def test_pairs_without_a_law_are_left_out_unless_all_languages_are_alike() -> None:
    laws = three_pairs.pair_laws({"webtech-en-dezh": two_pair_points()["webtech-en-dezh"]})
    cells = three_pairs.cells_of(three_pair_rows())
    assert set(three_pairs.predict(laws, cells)["pair"]) == {"eng-deu", "eng-zho"}
    alike = three_pairs.for_all_alike(laws, PAIRS)
    assert {pair: len(own) for pair, own in alike.items()} == dict.fromkeys(PAIRS, 2)
    assert three_pairs.error_table(three_pairs.predict(alike, cells))["error"].max() < 2e-4
    assert three_pairs.for_all_alike({}, PAIRS) == {}


def test_nothing_stored_gives_empty_frames_and_a_sentence() -> None:
    laws = three_pairs.pair_laws({})
    cells = three_pairs.cells_of(three_pair_rows().iloc[:0])
    assert cells.empty
    found = three_pairs.predict(laws, cells)
    assert found.empty and {"predicted", "relative_error"} <= set(found)
    assert three_pairs.predict(laws, three_pairs.cells_of(three_pair_rows())).empty
    table = three_pairs.error_table(found)
    own = three_pairs.own_errors(laws)
    assert own.empty and three_pairs.in_words(table, own) == "No cell can be predicted yet."
    assert three_pairs.same_share(cells, two_pair_points()).empty
    assert three_pairs.rest_matters(cells).empty


def test_mixtures_are_kept_apart_and_two_pair_runs_are_not_taken_for_three() -> None:
    frame = three_pair_rows()
    two = frame.iloc[:2].assign(mixture="eng-deu:0.5,eng-zho:0.5", p=0.5)
    zero = frame.iloc[:1].assign(p=0.0)
    cells = three_pairs.cells_of(pd.concat([frame, two, zero], ignore_index=True))
    assert len(cells) == len(frame)
    deu = cells[(cells["pair"] == "eng-zho") & (cells["p"] == 0.25)]
    assert deu["mixture"].nunique() == 2


def test_seeds_of_a_mixture_are_averaged() -> None:
    one = three_pair_rows(sizes=SIZES[:1], mixtures=MIXTURES[:1])
    other = one.assign(run_id="again", cross_entropy=one["cross_entropy"] + 1)
    cells = three_pairs.cells_of(pd.concat([one, other], ignore_index=True))
    np.testing.assert_allclose(cells["loss"], one["cross_entropy"] + 0.5)


def test_runs_against_runs_need_no_law() -> None:
    cells = three_pairs.cells_of(three_pair_rows(loss=lambda p, n: 1.1 * truth(p, n)))
    table = three_pairs.same_share(cells, two_pair_points())
    # 0.5 and 0.1 are weights of Eq. 5; 1/3, 0.25 and 0.8 are not.
    assert set(table["p"]) == {0.1, 0.5}
    np.testing.assert_allclose(table[["ratio", "least", "most"]], 1.1)
    german = table[(table["pair"] == "English→German") & (table["p"] == 0.5)]
    assert set(german["beside"]) == {"English→{German, Chinese}", "English→{German, French}"}
    assert set(german["cells"]) == {4}


def test_does_the_rest_of_the_mixture_matter() -> None:
    frame = three_pair_rows()
    assert three_pairs.rest_matters(three_pairs.cells_of(frame))["spread"].max() < 1e-12
    # Chinese at 0.25 is made 3 % worse wherever French has the half.
    hit = (frame["pair"] == "eng-zho") & frame["mixture"].str.contains("eng-fra:0.5")
    frame.loc[hit, "cross_entropy"] *= 1.03
    table = three_pairs.rest_matters(three_pairs.cells_of(frame)).set_index("pair")["spread"]
    assert table["English→Chinese"] == pytest.approx(0.03)
    assert len(table) == 1  # at 0.25 only Chinese has two mixtures here


def test_the_control_compares_single_pairs() -> None:
    points = two_pair_points()["webtech-en-dezh"]
    alone = three_pair_rows(mixtures=((1.0, 0.0, 0.0),), loss=lambda p, n: 1.02 * truth(1.0, n))
    table = three_pairs.alone_again(alone, points)
    assert list(table["pair"]) == ["eng-deu"] * 4
    np.testing.assert_allclose(table["ratio"], 1.02)


def test_distance_of_two_seeds() -> None:
    rng = np.random.default_rng(0)
    frames = [three_pair_rows(sizes=SIZES) for _ in range(40)]
    for seed, frame in enumerate(frames):
        frame["run_id"] += f" {seed}"
        frame["cross_entropy"] *= np.exp(0.01 * rng.standard_normal(len(frame)))
    told = three_pairs.seed_noise(pd.concat(frames, ignore_index=True))
    # Mean |a - b| of two Gaussians of standard deviation 1 % is 2 / sqrt(pi) = 1.128 %.
    assert " 1.1" in told and f"{len(MIXTURES) * 8 * 3} cells" in told
    assert "second seed" in three_pairs.seed_noise(frames[0])


def test_charts_are_valid() -> None:
    laws = three_pairs.pair_laws(two_pair_points())
    cells = three_pairs.cells_of(three_pair_rows())
    lines = three_pairs.law_lines(laws, cells)
    single = lines[(lines["pair"] == "eng-deu") & (lines["p"] == 0.5)]
    assert single["loss"].iloc[0] == pytest.approx(truth(0.5, SIZES[0]), rel=1e-3)
    drawn = three_pairs.figure_20(cells, lines).to_dict()
    weights = {row["p"] for rows in drawn["datasets"].values() for row in rows}
    assert weights == {0.1, 0.25, 0.333, 0.5, 0.8}
    three_pairs.figure_20(cells, three_pairs.law_lines({}, cells)).to_dict()
    three_pairs.predicted_chart(three_pairs.predict(laws, cells)).to_dict()
