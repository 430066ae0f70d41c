"""The effective fraction against similarity."""

from __future__ import annotations

import pandas as pd
from synthetic import rows

from mnmt_repro.papers.charts.fraction_panels import similarity_chart
from mnmt_repro.papers.effects import fractions
from mnmt_repro.papers.effects.fractions import SIMILARITY_COHORTS, Line, compare_lines

PAIRS = ("src-aaa", "src-bbb")


def lines(*similarities: float) -> pd.DataFrame:
    mini = SIMILARITY_COHORTS["mini"]
    stored = pd.concat([rows(mini[value], PAIRS, noise=0.001) for value in similarities])
    wanted = [
        Line(panel="similarity", label=f"similarity {value:g}", cohort=cohort)
        for value, cohort in mini.items()
    ]
    return compare_lines(stored, wanted).lines


def test_fractions_by_similarity() -> None:
    assert list(fractions.SIMILARITY_LABELS.values()) == [0, 0.25, 0.5, 0.75, 1]
    table = fractions.by_similarity(lines(0, 0.5, 1))
    assert set(table["similarity"]) == {0, 0.5, 1} and table["p"].max() < 1
    half = table[(table["p"] == 0.5) & (table["language"] == "language A")]
    assert (half["f"] - 0.5).abs().max() < 0.05  # f = p, at every similarity
    chart = similarity_chart(table).to_dict()
    assert [panel["title"] for panel in chart["hconcat"]] == ["language A", "language B"]


def test_one_similarity_is_no_contrast() -> None:
    assert fractions.by_similarity(lines(0)).empty
