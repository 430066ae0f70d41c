"""Models of many pairs from laws of two, on losses whose law is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.laws.fraction import fraction_of
from mnmt_repro.papers.effects import three_pairs
from mnmt_repro.papers.effects.cells import mean_losses
from mnmt_repro.papers.effects.noise import root_mean_square

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
        "webtech-en-dezh": mean_losses(
            rows("webtech-en-dezh", ("eng-deu", "eng-zho"), loss=truth, noise=0.0), "pair", "p"
        ),
        "webtech-en-defr": mean_losses(
            rows("webtech-en-defr", ("eng-deu", "eng-fra"), loss=truth, noise=0.0), "pair", "p"
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
    np.testing.assert_allclose(fraction_of(np.array([0.1, 0.5]), laws["eng-fra"][0].values[3:]), [
        0.1 + 0.4 * 0.1**0.8 * 0.9**1.2, 0.5 + 0.4 * 0.5**2.0,
    ], rtol=1e-3)  # fmt: skip


def test_three_pairs_that_obey_the_laws_are_predicted_exactly() -> None:
    laws = three_pairs.pair_laws(two_pair_points())
    cells = three_pairs.mixture_cells(three_pair_rows())
    assert len(cells) == len(MIXTURES) * 4 * 3
    found = three_pairs.predict(laws, cells)
    np.testing.assert_allclose(found["predicted"], found["loss"], rtol=2e-4)


def test_each_mixture_is_predicted_from_the_others() -> None:
    """Losses of a pair that depend on its own weight and size, as Paper A has it."""
    table = three_pairs.left_out_mixtures(three_pair_rows())
    assert len(table) == len(MIXTURES) * 4 * 3
    # Chinese has a quarter twice, no other pair has a weight twice.
    assert table["Eq. 7"].notna().sum() == 2 * 4
    assert (table["Eq. 7"].dropna().abs() < 0.02).all()
    assert (table["mean"].abs() > 0.02).any()


def test_runs_against_runs_need_no_law() -> None:
    cells = three_pairs.mixture_cells(three_pair_rows(loss=lambda p, n: 1.1 * truth(p, n)))
    table = three_pairs.same_share(cells, two_pair_points())
    # 0.5 and 0.1 are weights of Eq. 5; 1/3, 0.25 and 0.8 are not.
    assert set(table["p"]) == {0.1, 0.5}
    np.testing.assert_allclose(table["ratio"], 1.1)
    german = table[(table["pair"] == "eng-deu") & (table["p"] == 0.5)]
    assert german["beside"].value_counts().to_dict() == {
        "webtech-en-dezh": 4,
        "webtech-en-defr": 4,
    }
    chinese = german[german["beside"] == "webtech-en-dezh"]
    assert set(chinese["partner"]) == {"eng-zho"} and set(chinese["added"]) == {"eng-fra"}


def test_distance_of_two_seeds() -> None:
    rng = np.random.default_rng(0)
    frames = [three_pair_rows(sizes=SIZES) for _ in range(40)]
    for seed, frame in enumerate(frames):
        frame["run_id"] += f" {seed}"
        frame["cross_entropy"] *= np.exp(0.01 * rng.standard_normal(len(frame)))
    # Mean |a - b| of two Gaussians of standard deviation 1 % is 2 / sqrt(pi) = 1.128 %.
    found = three_pairs.seed_distance(pd.concat(frames, ignore_index=True))
    assert found == pytest.approx(0.01128, rel=0.03)
    assert np.isnan(three_pairs.seed_distance(frames[0]))


def test_a_cohort_is_predicted_from_cohorts_of_two() -> None:
    two = rows("webtech-en-dezh", ("eng-deu", "eng-zho"), loss=truth, noise=0.0)
    two["mixture"] = "two"
    frame = pd.concat([two, three_pair_rows(loss=lambda p, n: 1.04 * truth(p, n))])
    found = three_pairs.from_two(frame, "webtech-en-defrzh", ["webtech-en-dezh"])
    assert set(found.errors["pair"]) == {"eng-deu", "eng-zho"}
    assert found.miss.value == pytest.approx(1 - 1 / 1.04, abs=3e-4)
    assert found.plain_miss.value == pytest.approx(1 - 1 / 1.04, abs=0.02)  # lines, not a law
    band, loss = found.in_own_intervals()
    assert band == loss == 0  # of two-pair runs without noise
    alike = three_pairs.from_two(frame, "webtech-en-defrzh", ["webtech-en-dezh"], alike=True)
    assert set(alike.errors["pair"]) == set(PAIRS)
    with pytest.raises(InputError, match="no stored run can be predicted from webtech-en-dezh"):
        three_pairs.from_two(two, "webtech-en-defrzh", ["webtech-en-dezh"])


def test_the_interval_of_a_root_mean_square() -> None:
    errors = np.random.default_rng(1).normal(0, 0.1, 400)
    errors *= 0.1 / np.sqrt((errors**2).mean())
    found = root_mean_square(errors)
    # The root mean square of 400 Gaussians has a standard error of sd / sqrt(2 * 400).
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.1 / np.sqrt(800), rel=0.15)
    assert found.value == pytest.approx(0.1)
    assert found.low < 0.1 < found.high
