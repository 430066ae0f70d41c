"""Frames behind the figures of translation quality, on rows whose scores are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import rows

from mnmt_repro.laws.fraction import fraction_of
from mnmt_repro.papers.charts import quality as charts
from mnmt_repro.papers.effects import quality
from mnmt_repro.papers.effects.fractions import fraction_fits

ALPHA, BETA, LIMIT = 0.2, 150.0, 60.0
HOW = "beam 4, up to 500 sentences a test set"


def law(p: float, n: float) -> float:
    """Eq. 11 for a quality, with f(p) = p."""
    return LIMIT - BETA * (p * n) ** -ALPHA


def scored(chrf=law, *, pairs=("eng-deu", "eng-fra"), **columns) -> pd.DataFrame:
    """Exact losses, and chrF by `chrf(p, n)`; no other metric."""
    frame = rows("some-cohort", pairs, noise=0.0, **columns)
    frame = frame.assign(
        decoding=HOW, decoded_sentences=500.0, sentences=2000, **dict.fromkeys(charts.METRIC_TITLES)
    )
    frame["chrf"] = [chrf(p, n) for p, n in zip(frame["p"], frame["n_non_embedding"], strict=True)]
    return frame


def undecoded() -> pd.DataFrame:
    return scored().assign(chrf=np.nan, decoding=None, decoded_sentences=np.nan)


def test_a_bent_line_is_explained_by_a_square_and_by_no_line() -> None:
    """On losses spread evenly about m, (loss - m)² has no correlation with them."""
    frame = scored(pairs=("eng-deu",))
    frame = frame.assign(cross_entropy=np.linspace(2, 4, len(frame)))
    frame["chrf"] = 40 * (frame["cross_entropy"] - 3) ** 2
    row = quality.linearity(quality.observed_scores(frame, "chrf")).iloc[0]
    assert row["r"] == pytest.approx(0, abs=1e-9)
    assert row["gain of a square"] == pytest.approx(1)
    assert (row["lowest"], row["highest"]) == (pytest.approx(0, abs=0.2), pytest.approx(40))
    # The interval of an r of zero: tanh of 1.96 standard errors, 1 / sqrt(64 - 3).
    assert row["high"] == pytest.approx(np.tanh(1.959964 / np.sqrt(61)), rel=1e-5)


def test_the_law_of_scores_is_found() -> None:
    points = quality.observed_scores(scored(), "chrf")
    laws = fraction_fits(points, column="score", metric="chrf")
    for law_ in laws.values():
        assert law_.params["alpha"] == pytest.approx(ALPHA, rel=1e-3)
        assert law_.params["l_inf"] == pytest.approx(LIMIT, rel=1e-3)
        np.testing.assert_allclose(
            fraction_of(np.array([0.1, 0.5]), law_.values[3:]), [0.1, 0.5], rtol=1e-2
        )


def test_held_out_errors_vanish_on_an_exact_law() -> None:
    errors = quality.score_errors(quality.observed_scores(scored(), "chrf"), "chrf")
    assert list(errors["measure"]) == ["score", "loss"] * 2
    assert list(errors["fitted"]) == [7 * 7] * 4
    assert list(errors["predicted"]) == [64 - 49] * 4
    assert (errors["error"] < 1e-4).all() and (errors["nearest"] > 0.01).all()
    assert errors["error"].between(errors["low"], errors["high"]).all()
    assert "why" not in errors


def test_held_out_errors_are_shares_of_the_range() -> None:
    """A cell that is moved by a tenth of the range, of 15 predicted: an error of 0.1 / sqrt(15)."""
    points = quality.observed_scores(scored(pairs=("eng-deu",)), "chrf")
    largest = points["n"] == points["n"].max()
    cell = largest & (points["p"] == 0.3)
    points.loc[cell, "score"] -= 0.1 * np.ptp(points["score"])
    error = quality.score_errors(points, "chrf").set_index("measure")["error"]
    assert error["score"] == pytest.approx(0.1 / np.sqrt(15), rel=1e-3)
    assert error["loss"] < 1e-4


def test_without_a_law_it_is_said_why() -> None:
    points = quality.observed_scores(
        scored(lambda p, n: 40 - 3 * np.log(p * n)), "chrf"
    )  # falls with N
    errors = quality.score_errors(points, "chrf").set_index("measure")
    assert errors.loc["score", "error"].isna().all()
    assert errors.loc["score", "why"].str.contains("falls with size").all()
    assert errors.loc["loss", "error"].notna().all()


def test_what_is_not_decoded_has_no_points() -> None:
    assert charts.not_decoded(scored(), "c", "chrf") == ""
    assert "scored with chrF yet" in charts.not_decoded(undecoded(), "c", "chrf")
    assert quality.observed_scores(undecoded(), "chrf").empty
    assert quality.linearity(quality.observed_scores(undecoded(), "chrf")).empty


def test_a_score_that_depends_on_the_weight_lies_on_parallel_lines() -> None:
    loss = np.tile([2.0, 3.0, 4.0, 5.0], 2)
    p = np.repeat([0.1, 1.0], 4)
    score = 60 - 10 * loss + np.where(p < 1, 6.0, 0.0)
    points = pd.DataFrame({"pair": "eng-deu", "p": p, "n": 1.0, "loss": loss, "score": score})
    assert quality.parallel_slope(points) == pytest.approx(-10)
    assert quality.parallel_r2(points) == pytest.approx(1)
    # Between weights 3 points either way; along the lines a variance of 125.
    assert quality.straight_line(loss, score).r ** 2 == pytest.approx(125 / 134)
    # Slopes of 8 and 12 instead: parallel lines then miss by 2 points a nat, 2 x 4 x 5 in all.
    bent = points.assign(score=60 - loss * np.where(p < 1, 8.0, 12.0))
    whole = ((bent["score"] - bent["score"].mean()) ** 2).sum()
    assert quality.parallel_r2(bent) == pytest.approx(1 - 40 / whole)
