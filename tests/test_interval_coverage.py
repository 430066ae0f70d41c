"""The stored table of coverage, and one of its cells simulated anew."""

from __future__ import annotations

import interval_coverage as simulated
import pandas as pd
import pytest

from mnmt_repro.repository import ROOT


def stored() -> pd.DataFrame:
    return pd.read_csv(ROOT / "data" / "coverage.csv")


def test_intervals_that_should_hold_the_truth_in_95_of_100_do() -> None:
    table = stored()
    cells = table[["law", "world", "errors"]].drop_duplicates().itertuples(index=False, name=None)
    assert set(cells) == set(simulated.CELLS) and (table["draws"] >= 1000).all()
    # 92 to 97 %, and half a point more for the noise of a share over 1,000 draws; 99 % at a bound.
    most = table["world"].map({"away": 0.975, "bound": 0.99})
    outside = table[(table["coverage"] < 0.92) | (table["coverage"] > most)]
    assert outside.empty, outside.to_string()


def test_a_cell_of_the_table_comes_out_as_stored() -> None:
    again = simulated.coverage("power", "bound", "relative", 200, seed=1).set_index("parameter")
    cell = stored().query("law == 'power' and world == 'bound' and errors == 'relative'")
    for name, row in cell.set_index("parameter").iterrows():
        # Three standard errors of a share over 200 draws.
        assert again.loc[name, "coverage"] == pytest.approx(row["coverage"], abs=0.05)
