"""The law of any mixture: what other pairs are worth, and losses of untrained mixtures."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    fit_mixture_law,
    leave_one_mixture_out,
    recommend_weights,
)

PAIRS = ["deu", "fra", "zho"]
TRUTH = {"beta": 40, "gamma": 0.2, "t[fra]": 0.3, "t[zho]": 0.05, "alpha": 0.3, "l_inf": 1.5}


def runs(noise: float = 0.0, zero: bool = True, sizes=(1e4, 1e5, 1e6)) -> pd.DataFrame:
    """Losses of German in mixtures in steps of 0.2, and in some without German."""
    steps = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0][not zero :]
    mixtures = [(d, f) for d, f in itertools.product(steps, repeat=2) if d + f <= 1]
    rows = [(*each, n) for each in mixtures for n in sizes]
    frame = pd.DataFrame(rows, columns=["deu", "fra", "n"]).eval("zho = 1 - deu - fra")
    q = frame["deu"] + 0.3 * frame["fra"] + 0.05 * frame["zho"]
    errors = np.exp(noise * np.random.default_rng(1).standard_normal(len(frame)))
    return frame.assign(loss=(1.5 + 40 * frame["n"] ** -0.3) * q**-0.2 * errors)


def law(frame: pd.DataFrame, **options):
    options = {"n": "n", "loss": "loss", "errors": "relative"} | options
    return fit_mixture_law(frame, "deu", PAIRS, **options)


def test_recovers_the_exact_law_and_predicts_another_mixture_and_size() -> None:
    fit = law(runs(), label="German")
    assert fit.params == pytest.approx(TRUTH, rel=1e-5)
    q = 0.5 + 0.3 * 0.3 + 0.05 * 0.2
    expected = (1.5 + 40 * 1e7**-0.3) * q**-0.2
    assert fit.predict({"zho": 0.2, "fra": 0.3, "deu": 0.5}, 1e7) == pytest.approx([expected])
    half = pd.DataFrame({"zho": [0.2], "fra": [0.3], "deu": [0.5]})
    for mixture in (half, half[PAIRS].to_numpy()):
        band = fit.band(mixture, [1e5, 1e7], draws=20)
        assert band["deu"].tolist() == [0.5, 0.5] and band["n"].tolist() == [1e5, 1e7]
        assert band["loss"][1] == pytest.approx(expected)
    assert fit.predict({"deu": 1.0}, [1e5, 1e6]) == pytest.approx(
        1.5 + 40 * np.array([1e5, 1e6]) ** -0.3
    )
    assert str(fit).startswith("German: loss = (l_inf + beta * n**-alpha) * (p + sum of t[other]")


def test_units_of_losses_and_sizes_do_not_matter() -> None:
    frame = runs(noise=0.01)
    one, other = law(frame), law(frame.assign(loss=frame["loss"] * 1.4427, n=frame["n"] * 1e3))
    for name in ("gamma", "t[fra]", "t[zho]", "alpha"):
        assert other.params[name] == pytest.approx(one.params[name], rel=1e-4)
    assert other.params["l_inf"] == pytest.approx(1.4427 * one.params["l_inf"], rel=1e-4)


def test_intervals_of_transfers_hold_the_truth_and_mixtures_are_the_unit() -> None:
    fit = law(runs(noise=0.01))
    assert len(set(fit.runs)) == 21
    ends = fit.draws("runs", draws=200).quantile([0.025, 0.975])
    for name, truth in (("t[fra]", 0.3), ("t[zho]", 0.05)):
        low, high = ends[name]
        assert low < truth < high and low < fit.params[name] < high


def test_a_worth_of_nothing_stops_at_zero() -> None:
    frame = runs(zero=False)
    q = frame["deu"] - 0.1 * frame["fra"] + 0.05 * frame["zho"]  # French does harm
    frame["loss"] = (1.5 + 40 * frame["n"] ** -0.3) * q**-0.2
    fit = law(frame)
    assert "t[fra] >= 0" in fit.active_bounds and fit.params["t[fra]"] == 0


def test_one_size_has_a_law_without_size() -> None:
    frame = runs(sizes=(1e5,))
    fit = law(frame)
    assert fit.names == ("beta", "gamma", "t[fra]", "t[zho]")
    assert fit.params["t[fra]"] == pytest.approx(0.3, rel=1e-5)
    assert law(frame, n=None).predict({"deu": 1}, 1) == pytest.approx(fit.predict({"deu": 1}, 1e5))
    with pytest.raises(InputError, match="the law is of one size, 100,000"):
        fit.predict({"deu": 1}, 1e6)


def test_left_out_mixtures_are_predicted_by_the_others() -> None:
    frame = runs(noise=0.01)
    table = leave_one_mixture_out(law(frame))
    out = np.isclose(frame["deu"], 0.4) & np.isclose(frame["fra"], 0.2)
    by_hand = law(frame[~out]).predict(frame[out], frame["n"][out])
    assert table["predicted"][out].to_numpy() == pytest.approx(by_hand, rel=1e-6)
    same_size = ~out & (frame["n"] == 1e4)
    assert table["naive"][out].iloc[0] == pytest.approx(frame["loss"][same_size].mean())
    assert (table["predicted"] / table["loss"] - 1).std() < 0.02


def test_a_recommended_mixture_lies_within_the_hull_of_the_trained() -> None:
    frame = runs(noise=0.01).query("deu <= 0.6 and fra <= 0.4 and zho <= 0.6")
    laws = {}
    for pair in PAIRS:  # each as German, in its place
        swapped = frame.rename(columns={"deu": pair, pair: "deu"})
        laws[pair] = fit_mixture_law(swapped, pair, PAIRS, n="n", loss="loss")
    wish = {"deu": 1, "fra": 0, "zho": 0}
    best = recommend_weights(laws, 1e5, wish, draws=20)
    # French is worth more to German than Chinese is; 0.6 and 0.4 are the most that were trained.
    assert best.table["p"].to_dict() == pytest.approx({"deu": 0.6, "fra": 0.4, "zho": 0}, abs=1e-3)


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        (runs().query("fra == 0"), "the weight of fra is 0 in every mixture"),
        (runs()[:9], "3 mixtures of 3 pairs are too few"),
        (runs(sizes=(1e4, 1e5)), "a third"),
        (runs(zero=False).eval("fra = (1 - deu) / 2").eval("zho = fra"), "independently"),
        (runs().assign(loss=2.0), "flat"),
        (runs().eval("loss = 5 - loss / 10"), "alpha|independently"),
    ],
)  # fmt: skip
def test_says_why_a_law_is_not_identified(frame: pd.DataFrame, word: str) -> None:
    fit = law(frame)
    assert not fit.identified and re.search(word, fit.reason)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"fra": 0.5}, "row 0 has deu 0, fra 0.5, zho 1; give every pair its weight"),
        ({"fra": np.nan}, "row 0 has deu 0, fra nan"),
        ({"loss": -1.0}, "loss: row 0 is -1"),
        ({"n": 0.0}, "n: row 0 is 0"),
        ({"pair": list("ab") * 31 + ["a"]}, "pair: .*a law is of one"),
    ],
)
def test_bad_rows_are_named(change: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        law(runs().assign(**change))
    with pytest.raises(InputError, match="row 0 has deu 0.5, fra 0, zho 0"):
        law(runs()).predict({"deu": 0.5}, 1e5)
