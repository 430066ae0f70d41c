"""The charts that pages share, and how a page opens: each is drawn, and says what it must."""

from __future__ import annotations

import math
from pathlib import Path

import altair
import numpy as np
import pandas as pd
import pytest
from stored_claims import made_claim, made_verdict, stored_table

from mnmt_repro.papers.charts import opening, verdicts
from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.lines import label_places, lines
from mnmt_repro.papers.charts.theme import INK

ESTIMATES = pd.DataFrame(
    {
        "label": ["a", "b", "a", "b"],
        "series": ["x", "x", "y", "the paper"],
        "value": [1.0, 2.0, 3.0, 4.0],
        "low": [0.5, 1.0, 2.0, math.nan],
        "high": [1.5, 9.0, 4.0, math.nan],
        "clear": [True, False, True, True],
    }
)
CURVES = pd.DataFrame(
    [
        {"pair": pair, "p": p, "n": n, "loss": 20 * p**-0.1 * n**-0.3, "low": 0.1, "high": 9.0}
        for pair in ("eng-deu", "eng-fra")
        for p in (0.05, 0.95, 1.0)
        for n in np.geomspace(1e3, 1e6, 13)
    ]
)


def marks(chart: altair.TopLevelMixin) -> set[str]:
    """Kinds of mark that a chart draws; altair checks it against the schema on the way."""

    def walk(node: object) -> set[str]:
        if isinstance(node, dict):
            mark = node.get("mark")
            own = {mark["type"]} if isinstance(mark, dict) else set()
            return own.union(*map(walk, node.values()))
        return set().union(*map(walk, node)) if isinstance(node, list) else set()

    return walk(chart.to_dict())


def test_a_forest_has_a_row_a_label_and_cuts_intervals_at_its_domain() -> None:
    chart = forest(ESTIMATES, "ratio", log=True, marks={"3": 3.0}, domain=(0.7, 5))
    assert marks(chart) == {"rule", "point", "text"}
    (panel,) = chart.to_dict()["concat"]
    rows = pd.DataFrame(chart.to_dict()["datasets"][panel["layer"][1]["data"]["name"]])
    assert (rows["low"].min(), rows["high"].max()) == (0.7, 5)
    assert panel["layer"][2]["encoding"]["y"]["scale"]["domain"] == ["a", "b"]
    grouped = ESTIMATES.assign(group=["g", "g", "Paper B", "Paper B"])
    ours, paper = forest(grouped, "t", columns=2).to_dict()["concat"]
    assert [ours["title"], paper["title"]] == ["g", "Paper B"]
    assert paper["layer"][2]["encoding"]["shape"] == {"value": "diamond"}


def test_lines_have_a_panel_a_pair_dots_bands_and_printed_values() -> None:
    chart = lines(
        CURVES,
        "n",
        "loss",
        by="p",
        panel="pair",
        dots=CURVES[::4],
        printed=CURVES[:1],
        interval=("low", "high"),
        dashed=[1.0],
        log=["n", "loss"],
        marks={"noise": 2.0},
    )
    assert marks(chart) == {"line", "point", "area", "rule", "text"}
    titles = [panel["title"] for panel in chart.to_dict()["concat"]]
    assert titles == ["English→German", "English→French"]
    unlike = CURVES[:1].assign(pair="the paper")
    (drawn,) = lines(CURVES[:13], "n", "loss", by="pair", printed=unlike).to_dict()["concat"]
    diamonds = [layer for layer in drawn["layer"] if "diamond" in str(layer["mark"])]
    assert [layer["mark"]["stroke"] for layer in diamonds] == [INK]
    bound = pd.DataFrame({"p": [0.05], "loss": [2.0], "says": ["over 2"]})  # of every size
    bounded = lines(CURVES[:13], "n", "loss", by="p", printed=bound)
    assert marks(bounded) == {"line", "rule", "text"}
    assert "over 2" in str(bounded.to_dict()["datasets"])
    plain = lines(CURVES[CURVES["pair"] == "eng-deu"], "n", "loss", by="p", diagonal=True)
    assert marks(plain) == {"line", "rule", "text"}


def test_labels_away_from_their_lines_stand_in_order_of_the_weight() -> None:
    ends = {0.05: [(0, 4.0), (1, 3.0)], 0.5: [(0, 3.0), (0.5, 2.0)], 0.9: [(0, 2.9), (0.5, 2.1)]}
    curves = pd.DataFrame(
        [{"p": p, "loss": x, "score": y} for p, line in ends.items() for x, y in line]
    )
    under = pd.DataFrame({"loss": [0.55, 0.55], "score": [2.0, 2.1]})  # of two labels
    look = {"ends": (0, 5), "log": False, "height": 300}
    places = label_places(curves, under, "loss", "score", "p", **look).sort_values("label_y")
    assert places["p"].tolist() == [0.9, 0.5, 0.05]  # where lines went on: 0.5, 0.9, 0.05
    beside = label_places(curves, None, "loss", "score", "p", **look).sort_values("label_y")
    assert beside["p"].tolist() == [0.5, 0.9, 0.05]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """One claim that asks for at least 3, of which 4 (3.5 to 4.5) was measured."""
    claim = made_claim(measure="capacity", note="It is a mean.")
    monkeypatch.setattr(verdicts, "claims_by_id", lambda: {"Z1": claim})
    monkeypatch.setattr(opening, "claims_by_id", lambda: {"Z1": claim})
    monkeypatch.setitem(opening.PAPER_LINKS, "Z", "https://example.org")
    return stored_table(tmp_path, made_verdict(claim, headline=(4.0, 3.5, 4.5)))


def test_three_lines_state_the_paper_the_effect_and_how_sure(stored: pd.DataFrame) -> None:
    text = opening.three_lines(stored, "Z1", "Z1", Z1="Too small.").data
    assert "[Paper Z](https://example.org)" in text
    assert "4.0 times (3.5 to 4.5)" in text and "4 seeds" in text
    assert 'verdicts.html#what-our-runs-cannot-say">How sure</a>' in text
    assert text.count('data-verdict="reproduced"') == 2
    assert "Too small.\n" in text and ">Too small.</td>" in text  # beside both badges
    assert '"the paper says">x (x)</td>' in text and text.count("; limit: at least 3 times") == 2
    assert "It is a mean." in opening.three_lines(stored, "Z1").data  # where it is reproduced
    answer = opening.says(stored, "Z1", {"reproduced": "It is {value}."}).data
    assert ">It is 4.0 times.<" in answer  # with as many digits as below
    also = opening.also_says(stored, "Z1")
    assert "The paper: " in also and ": 4.0 times (3.5 to 4.5), reproduced (Z1)." in also


def test_dots_have_the_colour_of_the_curve_of_their_size() -> None:
    curves = pd.DataFrame({"n": [732.0, 732, 115_936, 115_936], "x": [1, 2] * 2, "y": [3, 2] * 2})
    chart = lines(curves, "x", "y", by="n", dots=curves.astype({"n": int})).to_dict()
    shown = {row["n"] for rows in chart["datasets"].values() for row in rows if "n" in row}
    assert shown == {732, 115_936}
    assert "N = 115,936" in {
        row.get("label") for rows in chart["datasets"].values() for row in rows
    }
