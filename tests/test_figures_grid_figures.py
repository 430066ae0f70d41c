"""Figures of one grid, and charts of estimates with their intervals."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from synthetic import rows

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts import grid_figures
from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.effects.grids import NEWS, read_all


def test_the_cohort_asked_for_is_first_and_news_is_last():
    news = rows("webtech-en-defr", ("eng-deu", "eng-fra"))
    places = news["pair"].map(NEWS)
    stored = pd.concat([rows("webtech-en-dezh"), news, news.assign(test_set=places)])
    grids = read_all(stored.assign(tier="mini"), "webtech-en-defr", "mini")
    assert list(grids) == ["webtech-en-defr", "webtech-en-dezh", "webtech-en-defr-news"]
    tabs = [grid_figures.label(grid, "separate") for grid in grids.values()]
    assert tabs == ["Figure 11: En→{De,Fr}", "Figure 2: En→{De,Zh}", "Figure 9: En→{De,Fr}, news"]
    assert grid_figures.label(grids["webtech-en-defr-news"], "joint") == "En→{De,Fr}, news"


def test_the_cohort_asked_for_is_of_its_tier_and_the_tabs_are_of_any():
    stored = pd.concat(
        [
            rows("webtech-en-dezh").assign(tier="mini"),
            rows("webtech-dezh-en", ("deu-eng",)).assign(tier="steady"),
        ]
    )
    assert list(read_all(stored, "webtech-en-dezh", "mini")) == [
        "webtech-en-dezh",
        "webtech-dezh-en",
    ]
    with pytest.raises(InputError, match="no runs of tier 'steady'; set tier to mini"):
        read_all(stored, "webtech-en-dezh", "steady")


def test_a_page_cannot_do_without_the_cohort_asked_for():
    with pytest.raises(InputError, match="No runs of .* are stored yet"):
        read_all(rows("webtech-en-dezh").assign(tier="mini"), "webtech-en-defr", "mini")


def test_captions_give_what_was_found():
    about = dict.fromkeys(["config_hash", "corpus", "data_hash", "hardware", "seed"], "x")
    stored = rows("webtech-dezh-en", ("deu-eng",), noise=0.0).assign(
        **about, wall_seconds=1.0, tier="mini"
    )
    (grid,) = read_all(stored, "webtech-dezh-en", "mini").values()
    assert grid_figures.joint(grid).caption == (
        "One law explains 100.0\u00a0% of the variance for German→English."
    )
    coefficients = grid_figures.coefficient_figure(grid)
    assert "from 0.3 to 0.3 (German→English)" in coefficients.caption
    assert "without bands" in coefficients.alt  # as in Figure 14


def test_intervals_outside_the_axis_are_cut_off():
    table = pd.DataFrame({"label": ["a", "b"], "value": [1.0, 2.0], "low": [0.0, math.nan]})
    table["high"] = [9.0, math.nan]
    chart = forest(table, "x", marks={"paper": 2.0}, domain=(0.5, 4)).to_dict()
    drawn = chart["datasets"][chart["concat"][0]["layer"][4]["data"]["name"]]
    assert (drawn[0]["low"], drawn[0]["high"]) == (0.5, 4)
