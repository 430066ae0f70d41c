"""Upgrades on generated languages, from a store with known losses."""

from __future__ import annotations

import pandas as pd
import pytest
from software25_store import write_store

from mnmt_repro import results
from mnmt_repro.papers.cohorts.conlang_upgrade import SIMILAR
from mnmt_repro.papers.cohorts.variants import Variant
from mnmt_repro.papers.effects import updates_saved
from mnmt_repro.papers.effects.updates_saved import LIKE

BASE = {("M4", 1.0): 1.0, ("M6", 0.1): 3.0, ("M6", 0.3): 2.5, ("M6", 1.0): 2.0,
        ("Mt6", 0.1): 2.2, ("Mt6", 0.3): 1.8}  # fmt: skip


def loss(variant: Variant, pair: str) -> float | None:
    """Half a nat less for the similar language at similarity 1, upgraded; none is at 0.5."""
    if variant.spec.corpus == "conlang-upgrade-sim05":
        return None
    bought = 0.5 if SIMILAR in pair and variant.spec.corpus.endswith("sim1") else 0.0
    return BASE[variant.name, variant.updates_share] - bought * (variant.name == "Mt6")


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    root = write_store(tmp_path_factory.mktemp("store"), *updates_saved.CONLANG_COHORTS, loss=loss)
    return updates_saved.conlang_losses(results.load(root=root))


def test_the_upgraded_model_is_compared_with_all_others(losses: pd.DataFrame) -> None:
    table = updates_saved.conlang_comparison(losses).set_index(["similarity", "group", "updates"])
    assert set(table.index.get_level_values("similarity")) == {0.0, 1.0}
    added = table.loc[(1.0, LIKE, 0.3)]
    assert added["upgraded"] == pytest.approx(1.3) and pd.isna(added["old model"])
    assert (added["from scratch"], added["from scratch, as long"]) == (2.0, 2.5)
    assert added["gain, %"] == pytest.approx(35) and pd.isna(added["forgotten, %"])
    old = table.loc[(0.0, "old, language A", 0.1)]
    assert old["forgotten, %"] == pytest.approx(120) and old["gain, %"] == pytest.approx(-10)
