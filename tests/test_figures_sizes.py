"""The sizes of Paper A's models: table and chart against arithmetic by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_repro.architecture import PAPER_A
from mnmt_repro.papers.charts import sizes


def test_the_table_has_printed_and_counted_numbers_side_by_side() -> None:
    table = sizes.model_sizes(PAPER_A)
    assert table["printed − counted"].tolist() == [0] * 6 + [327_680, 0]
    assert table["printed − counted N"].tolist() == [0] * 8
    first = table.iloc[0]
    assert (first["layers"], first["d"], first["N, printed"]) == ("2 + 2", 512, 18_881_024)


def test_the_bars_end_where_the_marks_are() -> None:
    drawn = sizes.sizes_chart(PAPER_A).to_dict()
    rows = pd.concat(map(pd.DataFrame, drawn["datasets"].values()))
    bars = rows.dropna(subset="part").groupby("size", sort=False)["millions"].sum()
    marks = rows[rows["mark"] == "total"].set_index("size")["millions"]
    assert list(bars.index) == list(marks.index) and len(bars) == 8
    assert bars.drop("12+12, 1280").to_dict() == pytest.approx(marks.drop("12+12, 1280").to_dict())
    stacks = rows[rows["part"].isin(["encoder", "decoder"])].groupby("size")["millions"].sum()
    n = rows[rows["mark"] == "N"].set_index("size")["millions"]
    assert stacks.to_dict() == pytest.approx(n.to_dict())
