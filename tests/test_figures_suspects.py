"""Other suspects: what is compared is what was put in."""

from __future__ import annotations

import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.papers.charts.budget import exponent_chart
from mnmt_repro.papers.effects import settled

TABLES = 100_000  # parameters that `synthetic.rows` puts beside N


def grid() -> pd.DataFrame:
    """A law in N; a domain where all weights have one exponent, and one that only one pair has."""

    def drifting(p: float, n: float) -> float:
        return loss_of(p, n, alpha=0.2 + 0.1 * p)

    whole = rows("a", loss=drifting, noise=0.0).assign(test_tokens=9000)
    docs = rows("a", noise=0.0).assign(domain="docs", test_tokens=500)
    news = rows("a", ("eng-deu",), noise=0.0).assign(domain="news", test_tokens=8000)
    small = rows("a", noise=0.0).assign(domain="small", test_tokens=50)
    elsewhere = rows("a", noise=0.0, test_set="newstest21").assign(test_tokens=9000)
    return pd.concat([whole, docs, news, small, elsewhere], ignore_index=True)


def test_the_domain_compared_is_one_that_all_pairs_have() -> None:
    assert settled.common_domain(grid()) == "docs"


def test_settings_side_by_side() -> None:
    table = settled.other_causes(grid()).set_index(["pair", "fitted to"])
    german = table.loc["English→German"]
    assert list(german.index) == ["as above", "N with the tables", "docs alone"]
    assert german.loc["as above", "α alone"] == pytest.approx(0.3, abs=1e-3)
    assert german.loc["as above", "α, least weight"] == pytest.approx(0.205, abs=1e-3)
    assert german.loc["as above", "spread of α"] == pytest.approx(0.095, abs=1e-3)
    assert german.loc["docs alone", "spread of α"] == pytest.approx(0, abs=1e-3)
    assert german.loc["docs alone", "slope of log f"] == pytest.approx(0, abs=1e-3)
    assert german.loc["docs alone", "R²"] == pytest.approx(1)
    assert german.loc["as above", "R²"] < 0.9999
    # The same losses fall over a narrower range of sizes: a larger exponent.
    assert (max(SIZES) + TABLES) / (min(SIZES) + TABLES) < 3
    assert german.loc["N with the tables", "α alone"] > 0.5
    drawn = exponent_chart(settled.other_causes(grid())).to_dict()
    panel = next(panel for panel in drawn["concat"] if panel["title"] == "English→German")
    dots = pd.DataFrame(drawn["datasets"][panel["layer"][4]["data"]["name"]])
    shares = dots.set_index("label")["value"]
    assert shares["as above"] == pytest.approx(0.68, abs=0.01)
    assert shares["docs alone"] == pytest.approx(1, abs=0.01)
