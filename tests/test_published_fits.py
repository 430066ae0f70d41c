"""The stored fits of published data: they agree, and come out again where the data are."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import published_fits as script
import pytest

from mnmt_repro.repository import ROOT


def stored() -> pd.DataFrame:
    return pd.read_csv(ROOT / "data" / "external" / "published_fits.csv")


def test_every_stored_fit_agrees_with_the_published_one() -> None:
    table = stored()
    assert table["fit"].nunique() == 4
    apart = table[(table["ours"] - table["published"]).abs() > table["tolerance"]]
    assert apart.empty, apart.to_string()
    objective = table[(table["fit"] == script.ROBUST) & (table["quantity"] == "objective")]
    assert (objective["ours"] <= objective["published"]).all()


def test_the_stored_fits_come_out_again(lawdata_dir: Path) -> None:
    again = script.table(lawdata_dir)
    both = again.merge(stored(), on=["fit", "quantity"], suffixes=("", "_stored"))
    assert len(both) == len(again) == len(stored())
    assert both["ours"].to_numpy() == pytest.approx(both["ours_stored"].to_numpy(), rel=1e-5)
