"""Estimates in rows, beside what a paper prints."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.claims import read_stored
from mnmt_repro.figures.forest import PRINTED_SERIES, forest, of_claims
from mnmt_repro.repository import ROOT


def test_rows_of_claims_are_their_stored_measures() -> None:
    table = of_claims(read_stored(ROOT), {"A8": "domains", "A10": "direction"}, "mean_log_ratio")
    ours = table[table["series"] != PRINTED_SERIES]
    assert set(ours["group"]) == {"domains", "direction"}
    assert (ours["low"] <= ours["value"]).all() and (ours["value"] <= ours["high"]).all()
    printed = of_claims(read_stored(ROOT), {"A10": "direction"}, "mean_log_ratio", {"A10": 0.693})
    assert printed.iloc[0][["label", "series", "value"]].tolist() == [
        "Paper A",
        PRINTED_SERIES,
        0.693,
    ]


def test_a_claim_without_measures_has_no_rows() -> None:
    assert of_claims(read_stored(ROOT), {"A8": "domains"}, "no such measure").empty


def test_a_panel_a_group_and_an_axis_that_holds_the_reference() -> None:
    rows = pd.DataFrame({"label": ["a", "b"], "value": [2.0, 3.0], "group": ["x", "y"]})
    chart = forest(rows, title="ratio", log=True, reference=1).to_dict()
    assert [panel["title"] for panel in chart["vconcat"]] == ["x", "y"]
    line, names, _, dots = chart["vconcat"][1]["layer"]
    assert line["mark"]["type"] == "rule"
    assert names["encoding"]["text"]["field"] == "label"
    assert dots["encoding"]["x"]["scale"]["domain"] == [1, 3]
    assert dots["encoding"]["shape"]["legend"] is None  # of one series
