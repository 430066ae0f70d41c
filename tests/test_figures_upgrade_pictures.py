"""Figures 1 and 2 of Paper B, drawn of the settings that it prints."""

from __future__ import annotations

import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts import upgrade_pictures as pictures
from mnmt_repro.papers.cohorts.software25_runs import PAPER

OLD, NEW = "from the old model", "new"


def test_six_layers_go_below_the_encoder_and_above_the_decoder() -> None:
    table = pictures.layers(PAPER)
    deep = table[table["model"] == "deeper"].set_index(["stack", "place"])["part"]
    assert (deep["encoder"][range(1, 7)] == NEW).all() and (deep["encoder"].iloc[6:] == OLD).all()
    assert (deep["decoder"][range(13, 19)] == NEW).all() and (
        deep["decoder"].iloc[:12] == OLD
    ).all()
    assert len(deep["encoder"]) == len(deep["decoder"]) == 18


def test_the_blocks_of_figure_2_fill_both_matrices() -> None:
    table = pictures.blocks(PAPER)
    entries = (table["rows"] * table["columns"]).groupby(table["panel"]).sum()
    assert entries.to_dict() == {"up": 8192 * 1024, "out": 1024 * 8192}
    assert dict(zip(table["block"], table["rate"], strict=True)) == {"M1": 0.5, "M2": 1.0}


def test_a_tier_without_these_runs_is_told() -> None:
    with pytest.raises(InputError, match="'smoke': Paper B's runs are declared at mini, paper"):
        pictures.find_tier("smoke")
