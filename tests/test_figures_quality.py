"""Frames behind the figures of translation quality, on rows whose scores are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, WEIGHTS, loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.figures import quality
from mnmt_repro.results.schema import METRICS as STORED_METRICS

ALPHA, BETA, LIMIT = 0.2, 150.0, 60.0
HOW = "beam 4, up to 500 sentences a test set"


def law(p: float, n: float) -> float:
    """Eq. 11 for a quality, with f(p) = p."""
    return LIMIT - BETA * (p * n) ** -ALPHA


def scored(chrf=law, *, pairs=("eng-deu", "eng-fra"), **columns) -> pd.DataFrame:
    """Exact losses, and chrF by `chrf(p, n)`; no other metric."""
    frame = rows("some-cohort", pairs, noise=0.0, **columns)
    frame = frame.assign(
        decoding=HOW, decoded_sentences=500.0, sentences=2000, **dict.fromkeys(quality.METRICS)
    )
    frame["chrf"] = [chrf(p, n) for p, n in zip(frame["p"], frame["n_non_embedding"], strict=True)]
    return frame


def undecoded() -> pd.DataFrame:
    return scored().assign(chrf=np.nan, decoding=None, decoded_sentences=np.nan)


def test_every_metric_of_the_store_has_a_name() -> None:
    assert set(quality.METRICS) == set(STORED_METRICS)


def test_observed_averages_seeds_and_leaves_out_what_was_not_decoded() -> None:
    frame = pd.DataFrame(
        {
            "cohort": "c",
            "domain": "all",
            "test_set": ["indomain"] * 4 + ["newstest21"],
            "pair": ["eng-deu"] * 4 + ["eng-fra"],
            "decoding": HOW,
            "p": [0.5, 0.5, 0.5, 0.0, 1.0],
            "n_non_embedding": [100, 100, 100, 100, 200],
            "cross_entropy": [2.0, 3.0, 7.0, 9.0, 1.0],
            "chrf": [30.0, 20.0, np.nan, 1.0, 50.0],
        }
    )
    points = quality.observed(frame, "chrf")
    assert points.to_numpy().tolist() == [
        ["eng-deu", 0.5, 100, 2.5, 25.0, 2],
        ["eng-fra", 1.0, 200, 1.0, 50.0, 1],
    ]
    assert list(points) == ["pair", "p", "n", "loss", "score", "seeds"]


@pytest.mark.parametrize("column", ["cohort", "domain", "decoding", "test_set"])
def test_observed_refuses_a_mixture_of_settings(column: str) -> None:
    mixed = scored()
    mixed.loc[mixed.index[0], column] = "other"
    with pytest.raises(InputError, match="other"):
        quality.observed(mixed, "chrf")


def test_an_unknown_metric_is_told() -> None:
    with pytest.raises(InputError, match="metric 'meteor': use one of chrf, bleu"):
        quality.observed(scored(), "meteor")


def test_a_straight_line_is_found_straight() -> None:
    frame = scored(lambda p, n: 90 - 12 * loss_of(p, n))
    table = quality.linearity(quality.observed(frame, "chrf"))
    assert list(table["pair"]) == ["English→German", "English→French"]
    np.testing.assert_allclose(table["r"], -1)
    np.testing.assert_allclose(table["R²"], 1)
    np.testing.assert_allclose(table["gain of a square"], 0, atol=1e-9)
    assert list(table["cells"]) == [len(WEIGHTS) * len(SIZES)] * 2
    text = quality.in_words(table, "chrf")
    assert text.count("\n") == 1 and "correlation with cross-entropy is -1.000" in text


def test_a_bent_line_is_explained_by_a_square_and_by_no_line() -> None:
    """On losses spread evenly about m, (loss - m)² has no correlation with them."""
    frame = scored(pairs=("eng-deu",))
    frame = frame.assign(cross_entropy=np.linspace(2, 4, len(frame)))
    frame["chrf"] = 40 * (frame["cross_entropy"] - 3) ** 2
    row = quality.linearity(quality.observed(frame, "chrf")).iloc[0]
    assert row["r"] == pytest.approx(0, abs=1e-9)
    assert row["gain of a square"] == pytest.approx(1)
    assert (row["lowest"], row["highest"]) == (pytest.approx(0, abs=0.2), pytest.approx(40))
    # The interval of an r of zero: tanh of 1.96 standard errors, 1 / sqrt(64 - 3).
    assert row["high"] == pytest.approx(np.tanh(1.959964 / np.sqrt(61)), rel=1e-5)


def test_every_metric_there_is_has_its_rows() -> None:
    frame = scored()
    frame["bleu"] = frame["chrf"] / 2
    table = quality.linearity_of_metrics(frame)
    assert list(table["metric"]) == ["chrF", "chrF", "BLEU", "BLEU"]
    np.testing.assert_allclose(table["r"][:2], table["r"][2:])
    assert quality.linearity_of_metrics(undecoded()).empty


def test_the_joint_law_of_scores_is_found() -> None:
    points = quality.observed(scored(), "chrf")
    fits = quality.fit_scores(points, "chrf")
    for fit in fits.values():
        assert fit.params["alpha"] == pytest.approx(ALPHA, rel=1e-3)
        assert fit.params["l_inf"] == pytest.approx(LIMIT, rel=1e-3)
        assert fit.beta[0.1] == pytest.approx(BETA * 0.1**-ALPHA, rel=1e-2)
    table = quality.fit_table(fits)
    assert not table["at its bound"].any() and set(table["identified"]) == {"yes"}
    np.testing.assert_allclose(table["R²"], 1)


def test_scores_that_do_not_level_off_stop_at_the_highest_there_is() -> None:
    points = quality.observed(scored(lambda p, n: 3 * np.log(p * n)), "chrf")
    table = quality.fit_table(quality.fit_scores(points, "chrf"))
    assert table["at its bound"].all()
    np.testing.assert_allclose(table["limit"], 100)
    # BLEURT has no highest score.
    free = quality.fit_scores(points, "bleurt")
    assert all(fit.ceiling is None for fit in free.values())


def test_held_out_errors_vanish_on_an_exact_law() -> None:
    errors = quality.held_out_errors(quality.observed(scored(), "chrf"), "chrf")
    assert list(errors["measure"]) == ["chrF", "test loss"] * 2
    assert list(errors["fitted"]) == [7 * 7] * 4
    assert list(errors["predicted"]) == [64 - 49] * 4
    assert (errors["error"] < 1e-4).all() and (errors["nearest cell"] > 0.01).all()
    assert "why" not in errors


def test_held_out_errors_are_shares_of_the_range() -> None:
    """A cell that is moved by a tenth of the range, of 15 predicted: an error of 0.1 / sqrt(15)."""
    points = quality.observed(scored(pairs=("eng-deu",)), "chrf")
    largest = points["n"] == points["n"].max()
    cell = largest & (points["p"] == 0.3)
    points.loc[cell, "score"] -= 0.1 * np.ptp(points["score"])
    error = quality.held_out_errors(points, "chrf").set_index("measure")["error"]
    assert error["chrF"] == pytest.approx(0.1 / np.sqrt(15), rel=1e-3)
    assert error["test loss"] < 1e-4


def test_without_a_law_it_is_said_why() -> None:
    points = quality.observed(scored(lambda p, n: 40 - 3 * np.log(p * n)), "chrf")  # falls with N
    errors = quality.held_out_errors(points, "chrf").set_index("measure")
    assert errors.loc["chrF", "error"].isna().all()
    assert errors.loc["chrF", "why"].str.contains("falls with size").all()
    assert errors.loc["test loss", "error"].notna().all()
    laws = quality.fraction_fits(points, "chrf")
    assert "English→German: the score falls with size" in quality.why_no_frontier(laws)
    with pytest.raises(InputError, match="falls with size"):
        quality.frontier_chart(laws, points, "chrf")
    one = {"eng-deu": laws["eng-deu"]}
    assert quality.why_no_frontier(one) == "a frontier needs two decoded pairs, there are 1"


def test_the_frontier_passes_through_exact_points() -> None:
    points = quality.observed(scored(), "chrf")
    spec = quality.frontier_chart(quality.fraction_fits(points, "chrf"), points, "chrf").to_dict()
    drawn = [pd.DataFrame(rows) for rows in spec["datasets"].values()]
    (curves,) = (each for each in drawn if "place" in each and each["place"].min() > 0)
    assert len(drawn) == 3  # the band, the curves and the dots
    half = curves[np.isclose(curves["eng-deu"], curves["eng-fra"], atol=1e-6)]
    # At equal weights both pairs score alike, at every size.
    assert len(half) == len(SIZES)
    expected = [law(0.5, n) for n in half["n"]]
    np.testing.assert_allclose(half["eng-deu"], expected, rtol=1e-4)


def test_every_chart_is_valid_vega_lite() -> None:
    points = quality.observed(scored(), "chrf")
    fits = quality.fit_scores(points, "chrf")
    left = quality.score_against_loss(points, "chrf").to_dict()
    assert left["hconcat"][0]["layer"][-1]["encoding"]["y"]["title"] == "chrF"
    sizes = quality.score_against_size(points, fits, "bleurt").to_dict()
    assert sizes["hconcat"][1]["layer"][0]["encoding"]["y"]["title"] == "BLEURT × 100"
    few = points[(points["p"] == 0.5) & (points["n"] == points["n"].min())]
    alone = quality.score_against_loss(few, "chrf").to_dict()  # one cell: no line
    assert len(alone["hconcat"][0]["layer"]) == 1


def test_a_page_says_in_one_sentence_what_is_missing() -> None:
    assert quality.not_decoded(scored(), "c") == ""
    text = quality.not_decoded(undecoded(), "c")
    assert "has been decoded yet (`mnmt-repro sweep c --decode`" in text
    assert "No runs of c are stored yet" in quality.not_decoded(scored().iloc[:0], "c")
    text = quality.not_decoded(scored(), "c", ("bleurt",))
    assert "BLEURT" in text and "weights" in text
    assert quality.observed(undecoded(), "chrf").empty
    assert quality.linearity(quality.observed(undecoded(), "chrf")).empty
    assert "Too few runs" in quality.in_words(
        quality.linearity(quality.observed(undecoded(), "chrf")), "chrf"
    )


def test_how_runs_were_decoded_is_told() -> None:
    frame = scored(pairs=("eng-deu",))
    frame.loc[frame.index[:4], ["chrf", "decoding", "decoded_sentences"]] = np.nan
    text = quality.how_decoded(frame, "chrf")
    assert text.startswith(f"60 of 64 stored runs have been decoded: {HOW}")
    assert "Cross-entropy is that of the whole test set." in text
    whole = quality.how_decoded(frame.assign(sentences=500), "chrf")
    assert "whole test set" not in whole


def test_a_score_that_depends_on_the_weight_lies_on_parallel_lines() -> None:
    loss = np.tile([2.0, 3.0, 4.0, 5.0], 2)
    p = np.repeat([0.1, 1.0], 4)
    score = 60 - 10 * loss + np.where(p < 1, 6.0, 0.0)
    points = pd.DataFrame({"pair": "eng-deu", "p": p, "n": 1.0, "loss": loss, "score": score})
    table = quality.linearity_by_weight(points).set_index("p")
    assert table["slope"].tolist() == pytest.approx([-10, -10])
    assert table["score at equal loss"].to_dict() == pytest.approx(
        {0.1: 31.0, 1.0: 25.0}
    )  # at a loss of 3.5
    told = quality.weights_in_words(points, "chrf")
    # Between weights 3 points either way; along the lines a variance of 125.
    assert f"explains {125 / 134:.1%}" in told and "a weight, 100.0%" in told
    assert "3.50 nats, which 2 of the 2 weights have" in told
    assert "the line of p = 0.1 is at 31.0, that of p = 1 at 25.0" in told
    # A weight whose losses do not reach so low has no score there.
    far = points[points["p"] == 0.1].assign(p=0.05, loss=lambda rows: rows["loss"] + 9)
    table = quality.linearity_by_weight(pd.concat([points, far])).set_index("p")
    assert np.isnan(table.loc[0.05, "score at equal loss"])
    assert table.loc[1.0, "score at equal loss"] == pytest.approx(25.0)
    assert quality.weights_in_words(points[points["p"] == 1], "chrf") == ""
