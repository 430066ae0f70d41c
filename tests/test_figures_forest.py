"""Estimates in rows, beside what a paper prints."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.papers.charts.forest import forest


def test_a_panel_a_group_and_an_axis_that_holds_the_marks() -> None:
    rows = pd.DataFrame({"label": ["a", "b"], "value": [2.0, 3.0], "group": ["x", "y"]})
    chart = forest(rows, "ratio", log=True, marks={"one": 1}).to_dict()
    assert [panel["title"] for panel in chart["concat"]] == ["x", "y"]
    _, line, _, names, _, dots, _, text = chart["concat"][1]["layer"]
    assert line["mark"]["type"] == "rule" and text["encoding"]["text"]["field"] == "mark"
    assert names["encoding"]["text"]["field"] == "label"
    assert dots["encoding"]["x"]["scale"]["domain"] == [1, 3]
    assert dots["encoding"]["shape"]["legend"] is None  # of one series


def test_series_share_a_line_unless_they_have_intervals() -> None:
    rows = pd.DataFrame({"label": "a", "series": ["x", "y"], "value": [1.0, 2.0]})
    (alone,) = forest(rows, "t").to_dict()["concat"]
    (apart,) = forest(rows.assign(low=0.5, high=2.5), "t").to_dict()["concat"]
    assert apart["height"] > alone["height"]
    (cut,) = forest(rows.assign(low=0.5, high=2.5), "t", domain=(1, 2)).to_dict()["concat"]
    assert cut["layer"][4]["encoding"]["x"]["scale"]["domain"] == [1, 2]


def test_panels_beside_one_another_have_axes_of_their_own() -> None:
    rows = pd.DataFrame({"label": ["a", "b"], "value": [2.0, 9.0], "group": ["x", "y"]})
    panels = forest(rows, "t", columns=2).to_dict()["concat"]
    domains = [panel["layer"][5]["encoding"]["x"]["scale"]["domain"] for panel in panels]
    assert domains == [[2, 2], [9, 9]]
    below = forest(rows, "t", shared=False).to_dict()["concat"]
    assert [panel["layer"][5]["encoding"]["x"]["scale"]["domain"] for panel in below] == domains


def test_a_tall_panel_has_its_axis_above_and_below() -> None:
    def sides(labels: int) -> list[str]:
        rows = pd.DataFrame({"label": [f"row {i}" for i in range(labels)], "value": 1.0})
        (panel,) = forest(rows, "t").to_dict()["concat"]
        axes = [layer["encoding"].get("x", {}).get("axis") for layer in panel["layer"]]
        return [axis.get("orient", "bottom") for axis in axes if axis]

    assert sides(3) == ["bottom"] and sides(30) == ["bottom", "top"]
