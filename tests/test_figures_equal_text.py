"""A gap that is taken apart: cells whose parts are known by construction."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from mnmt_repro.papers.charts.budget import equal_text_chart
from mnmt_repro.papers.effects import settled

PAIR, TOKENS = "eng-deu", (1_000, 10_000, 100_000)


def alone(tokens: float, n: int) -> float:
    """The single-pair model: straight on the logarithm of its tokens."""
    return 8.0 - math.log10(tokens) - 0.1 * math.log10(n)


def left(p: float, n: int) -> float:
    """What the mixture is behind at equal text: less in the larger model, and at larger weights."""
    return (0.5 if n == 100 else -0.2) + (0.1 if p < 0.1 else 0.0)


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two sizes; the mixtures' last loss is the single pair's at equal text, and `left` more."""
    curves, rows = [], []
    for n in (100, 1_000):
        for p in (0.0, 0.005, 0.05, 0.5, 1.0):
            run = f"{n}-{p}"
            mine = 100_000 * p * 0.9 if p < 1 else 100_000  # shorter sentences than the other's
            rows.append({"run_id": run, "pair": PAIR, "pair_target_tokens": mine})
            for step, tokens in enumerate(TOKENS, start=1):
                point = {"run_id": run, "pair": PAIR, "p": p, "n_non_embedding": n, "step": step}
                loss = alone(tokens, n) if p == 1 else 9.0
                if 0 < p < 1 and step == 3:
                    loss = alone(mine, n) + left(p, n)
                curves.append(point | {"target_tokens": tokens, "cross_entropy": loss})
    return pd.DataFrame(curves), pd.DataFrame(rows)


def test_both_parts_are_those_built_in() -> None:
    parts = settled.split_gap(*frames()).set_index(["p", "n"])
    # Neither zero-shot nor the single pair; at 0.005 fewer tokens than the first point's 1,000.
    assert sorted(parts.index) == [(0.05, 100), (0.05, 1_000), (0.5, 100), (0.5, 1_000)]
    for (p, n), row in parts.iterrows():
        assert row["equal"] == pytest.approx(left(p, n))
        assert row["text"] == pytest.approx(-math.log10(0.9 * p))
        assert row["gap"] == pytest.approx(row["equal"] + row["text"])
        assert row["tokens"] == pytest.approx(90_000 * p)


def test_a_size_without_a_single_pair_model_is_left_out() -> None:
    curves, rows = frames()
    kept = curves[(curves["n_non_embedding"] == 100) | (curves["p"] < 1)]
    assert set(settled.split_gap(kept, rows)["n"]) == {100}
    assert settled.split_gap(curves[curves["p"] < 1], rows).empty


def test_the_chart_has_a_panel_a_pair_and_part() -> None:
    spec = equal_text_chart(settled.split_gap(*frames())).to_dict()
    drawn = pd.DataFrame(next(iter(spec["datasets"].values())))
    assert set(drawn["part"]) == set(settled.TEXT_PARTS.values())
    assert set(drawn["pair"]) == {"English→German"} and len(drawn) == 2 * 4


def test_what_text_alone_predicts_of_a_longer_budget() -> None:
    def rows(budget: float, weight_too: bool) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {
                    "pair": PAIR,
                    "p": p,
                    "n_non_embedding": n,
                    "pair_target_tokens": budget * p,
                    "cross_entropy": 1
                    + 20 * n**-0.3
                    + (30 * p**-0.25 if weight_too else 60 * (budget * p) ** -0.25),
                }
                for p in (0.1, 0.3, 0.5, 1.0)
                for n in (1_000, 4_000, 16_000, 64_000)
            ]
        )

    # Where text is all there is to a weight, twice the budget is worth what the law says.
    table = settled.predicted_by_text(rows(1e6, False), rows(2e6, False))
    assert len(table) == 16
    assert table["predicted"].to_numpy() == pytest.approx(table["observed"].to_numpy(), rel=1e-3)
    # Where a weight acts by itself, the longer run gains nothing of what is predicted.
    table = settled.predicted_by_text(rows(1e6, True), rows(2e6, True))
    assert (table["observed"].abs() < 1e-9).all() and (table["predicted"] > 1).all()
