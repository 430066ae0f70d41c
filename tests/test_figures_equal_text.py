"""A gap that is taken apart: cells whose parts are known by construction."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from mnmt_repro.figures import equal_text

PAIR, TOKENS = "eng-deu", (1_000, 10_000, 100_000)


def alone(tokens: float, n: int) -> float:
    """The single-pair model: straight on the logarithm of its tokens."""
    return 8.0 - math.log10(tokens) - 0.1 * math.log10(n)


def frames(sharing: float = 0.25) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two sizes; the mixtures' last loss is the single pair's at equal text, and `sharing` more."""
    curves, rows = [], []
    for n in (100, 1_000):
        for p in (0.0, 0.005, 0.2, 0.5, 1.0):
            run = f"{n}-{p}"
            mine = 100_000 * p * 0.9 if p < 1 else 100_000  # shorter sentences than the other's
            rows.append({"run_id": run, "pair": PAIR, "pair_target_tokens": mine})
            for step, tokens in enumerate(TOKENS, start=1):
                point = {"run_id": run, "pair": PAIR, "p": p, "n_non_embedding": n, "step": step}
                loss = alone(tokens, n) if p == 1 else 9.0
                if 0 < p < 1 and step == 3:
                    loss = alone(mine, n) + sharing
                curves.append(point | {"target_tokens": tokens, "cross_entropy": loss})
    return pd.DataFrame(curves), pd.DataFrame(rows)


def test_both_parts_are_those_built_in() -> None:
    parts = equal_text.split(*frames()).set_index(["p", "n"])
    # Neither zero-shot nor the single pair; at 0.005 fewer tokens than the first point's 1,000.
    assert sorted(parts.index) == [(0.2, 100), (0.2, 1_000), (0.5, 100), (0.5, 1_000)]
    for (p, _), row in parts.iterrows():
        assert row["sharing"] == pytest.approx(0.25)
        assert row["text"] == pytest.approx(-math.log10(0.9 * p))
        assert row["gap"] == pytest.approx(row["sharing"] + row["text"])
        assert row["tokens"] == pytest.approx(90_000 * p)


def test_a_size_without_a_single_pair_model_is_left_out() -> None:
    curves, rows = frames()
    kept = curves[(curves["n_non_embedding"] == 100) | (curves["p"] < 1)]
    assert set(equal_text.split(kept, rows)["n"]) == {100}
    assert equal_text.split(curves[curves["p"] < 1], rows).empty
    assert equal_text.in_words(equal_text.split(curves[curves["p"] < 1], rows)) == ""


def test_the_chart_has_a_panel_a_pair_and_part() -> None:
    spec = equal_text.chart(equal_text.split(*frames())).to_dict()
    drawn = pd.DataFrame(next(iter(spec["datasets"].values())))
    assert set(drawn["part"]) == set(equal_text.PARTS.values())
    assert set(drawn["pair"]) == {"English→German"} and len(drawn) == 2 * 4


def test_words_give_the_least_and_the_greatest_size() -> None:
    told = equal_text.in_words(equal_text.split(*frames(sharing=-0.5)), most=0.2)
    # 0.745 nats of text (log10 of 0.18), half a nat of help.
    assert "- English→German: -0.50 of 0.24 nats at N = 100 and -0.50 of 0.24 nats at" in told
