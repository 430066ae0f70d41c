"""Ablations, groupings and languages of Paper B beside ours, on losses that are known."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from software25_store import write_store

from mnmt_repro import results
from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.forest import HERE, IN_PAPER, two_sides
from mnmt_repro.papers.charts.upgrades import who_pays_table
from mnmt_repro.papers.cohorts.languages25 import directions_of
from mnmt_repro.papers.cohorts.names import LANGUAGE_NAMES
from mnmt_repro.papers.cohorts.variants import Variant
from mnmt_repro.papers.effects import ablations, audit, corpora, published
from mnmt_repro.papers.effects.ablations import ABLATIONS, WAYS, who_pays
from mnmt_repro.papers.effects.variants import Variants, latest_variants, variants_of

ROOT = Path(__file__).resolve().parents[1]
ALL, ADDED = directions_of("all"), directions_of("added")
BY_NAME = {each.name: each for each in (*ABLATIONS, ablations.TABLE7)}

# By how many per cent a variant's loss is above 2 nats, on the original and the added languages.
WORSE = {
    "alpha 1": (0.0, 0.0),
    "alpha 5": (1.0, -10.0),
    "alpha 10": (-2.0, -10.0),
    "Mt25": (0.0, 0.0),
    "Mt25-v1": (5.0, 5.0),
    "M25-wide": (0.0, 0.0),
}


def loss(variant: Variant, pair: str) -> float | None:
    """Directions stray by +-0.5 per cent by turns where a variant differs from its control."""
    if variant.name not in WORSE:
        return None
    worse = WORSE[variant.name][pair in ADDED]
    stray = 0.5 * (-1) ** (ALL.index(pair) // 2) if worse else 0.0
    return 2 * (1 + (worse + stray) / 100)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    root = tmp_path_factory.mktemp("store")
    write_store(root, "software25-table5", "software25-table7", loss=loss)
    return results.load(root=root)


def bench(rows: pd.DataFrame, name: str) -> Variants:
    return variants_of(rows, f"software25-{name}")


# Ablations


def test_a_table_has_both_sides(rows: pd.DataFrame) -> None:
    table = ablations.cells(BY_NAME["table5"], bench(rows, "table5"))
    cells = table.set_index(["variant", "group"])
    five = cells.loc[("alpha 5", "added")]
    # By eye from the paper: 25.7* against 22.2.
    assert (five["paper"], five["difference"], five["mark"]) == (25.7, 3.5, "*")
    assert five["gain, %"] == pytest.approx(10, abs=0.11) and five["our mark"] == "*"
    assert five["seeds"] == 1
    old = cells.loc[("alpha 5", "original")]
    assert old["gain, %"] == pytest.approx(-1, abs=0.01) and old["low"] < -1 < old["high"]
    control = cells.loc[("alpha 1", "all")]
    assert control["loss"] == pytest.approx(2) and math.isnan(control["gain, %"])
    assert control["paper"] == 31.0 and control["mark"] == "" and control["our mark"] == ""
    sides = two_sides(table).set_index(["side", "variant", "group"])
    assert sides.loc[(HERE, "alpha 5", "added"), "clear"]
    assert not sides.loc[(IN_PAPER, "alpha 10", "all"), "clear"]  # printed without a star
    missing = cells.loc[("alpha 5, related", "all")]
    assert missing["paper"] == 31.5 and missing[["loss", "gain, %"]].isna().all()


def test_a_test_set_that_no_run_was_scored_on_is_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="test_set = 'newstest21': .* values there are: indomain"):
        variants_of(rows, "software25-table5", test_set="newstest21")


def test_the_better_way_stands_first_and_a_run_that_is_missing_has_no_gain(
    rows: pd.DataFrame,
) -> None:
    table = ablations.choices(rows)
    assert table.loc[table["cohort"] == "software25-noise", "gain, %"].isna().all()
    five = table["variant"].eq("alpha 5") & table["against"].eq("alpha 1")
    old = table[five & table["on"].eq("original")].assign(one="five", other="none")
    assert old["gain, %"].item() == pytest.approx(-1, abs=0.01)
    assert old["difference"].item() == pytest.approx(33.0 - 33.2)  # by eye from the paper
    (turned,) = ablations.better_first(old).to_dict("records")
    assert (turned["one"], turned["other"]) == ("none", "five")
    assert turned["gain, %"] == pytest.approx(100 * (1 - 1 / 1.01), abs=0.01)
    open_ = old.assign(high=0.5)
    assert ablations.better_first(open_).equals(open_)


def test_who_pays_for_up_sampling(rows: pd.DataFrame) -> None:
    table = who_pays(rows).set_index(["way", "languages"])
    five = table.loc["up-sample new languages × 5"]
    assert five.loc["new", "change"] == pytest.approx(-10, abs=0.11)
    other = five.loc["other old"]
    assert other["change"] == pytest.approx(1, abs=0.1) and other["low"] < 1 < other["high"]
    shown = who_pays_table(rows).shown
    assert shown["choice"].tolist() == list(WAYS) and shown.loc[0, "new"].startswith("−9.9 (−10.2")
    assert shown.loc[4, "new"] == "not stored"


# Groupings


def test_table_7_is_by_resource_level(rows: pd.DataFrame) -> None:
    table = ablations.cells(ablations.TABLE7, bench(rows, "table7"))
    cells = table.set_index(["variant", "group"])
    row = cells.loc[("Mt25-v1", "very low")]
    assert (row["paper"], row["difference"], row["mark"]) == (20.0, 1.0, "(*)")
    assert row["gain, %"] == pytest.approx(-5, abs=0.51)
    assert math.isnan(cells.loc[("M12t25", "all"), "loss"])
    assert math.isnan(cells.loc[("M25-wide", "all"), "paper"])
    assert cells.loc[("M25-wide", "all"), "gain, %"] == pytest.approx(0)


# Languages


def test_table_9_beside_ours() -> None:
    table = corpora.table9().set_index("language")
    xhosa, nepali = table.loc["xho"], table.loc["npi"]
    assert (xhosa["pairs, paper"], xhosa["name"]) == (634_078, "Xhosa")
    assert table.loc["fra", "level, paper"] == "high"
    # The main condition keeps the paper's ratio, so the levels of added languages are the paper's.
    added = table[table["group"] == "added"]
    assert (added["level, main condition"] == added["level, paper"]).all()
    assert nepali["pairs, main condition"] < nepali["pairs, all our text"]
    old = table[table["group"] == "original"]
    assert (old["pairs, main condition"] == old["pairs, all our text"]).all()
    factor = old["pairs, paper"].sum() / old["pairs, all our text"].sum()
    assert nepali["level, all our text"] == audit.resource_level(
        nepali["pairs, all our text"] * factor
    )
    assert (table["level, paper"] == published.grouping("Mt25")["level"]).all()
    assert table["name"].to_dict() == {code: LANGUAGE_NAMES[code] for code in table.index}


def test_fresh_seeds_replace_the_first_round_once_all_are_stored(tmp_path: Path) -> None:
    write_store(tmp_path, "software25-noise", "software25-noise-fresh", loss=lambda *_: 2.0)
    every = results.load(root=tmp_path, domain="all")
    whole = latest_variants(every, "software25-noise")
    assert (whole.cohort, whole.blocked) == ("software25-noise-fresh", True)
    assert whole.seeds(ALL, whole.variant("no noise", 0.3)) == 4
    first = latest_variants(every[every["seed"] != 7], "software25-noise")
    assert (first.cohort, first.blocked) == ("software25-noise", False)
