"""Figures of one grid, and charts of estimates with their intervals."""

from __future__ import annotations

import pytest
from synthetic import rows

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts import grid_figures
from mnmt_repro.papers.effects.grids import read_all


def test_a_page_cannot_do_without_the_cohort_asked_for():
    with pytest.raises(InputError, match="webtech-en-defr: too few runs are stored"):
        read_all(rows("webtech-en-dezh").assign(tier="mini"), "webtech-en-defr", "mini")


def test_captions_give_what_was_found():
    about = dict.fromkeys(["config_hash", "corpus", "data_hash", "hardware", "seed"], "x")
    stored = rows("webtech-dezh-en", ("deu-eng",), noise=0.0).assign(
        **about, wall_seconds=1.0, tier="mini"
    )
    (grid,) = read_all(stored, "webtech-dezh-en", "mini").values()
    joint = grid_figures.law_figure(grid, "joint")
    assert "Figure 17" in joint.caption and "R² of a weight is 1.000" in joint.caption
    coefficients = grid_figures.coefficient_figure(grid)
    assert "Figure 14" in coefficients.caption
    for figure in (joint, coefficients, grid_figures.law_figure(grid, "separate")):
        figure.chart.to_dict()  # checks the schema


def test_the_exact_irreducible_loss_of_generated_languages_is_drawn():
    about = dict.fromkeys(["config_hash", "corpus", "data_hash", "hardware", "seed"], "x")
    stored = rows("conlang-sim0", ("src-aaa",)).assign(**about, wall_seconds=1.0, tier="mini")
    (grid,) = read_all(stored, "conlang-sim0", "mini").values()
    figure = grid_figures.coefficient_figure(grid)
    assert "exact L∞ is 0.231" in figure.caption  # 6 · 0.5004 / 13, see the page of corpora
    drawn = figure.chart.to_dict()["datasets"].values()
    points = [row for each in drawn for row in each if "value" in row and row["law"] == "exact"]
    assert {row["value"] for row in points} == {0.23095}
