"""Paper B's runs, declared: budgets, rows and rates of each table, text, identities."""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from mnmt_repro import results
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.catalogue import find_cohort, get_cohort, membership, places
from mnmt_repro.papers.cohorts.software25_runs import MINI
from mnmt_repro.papers.cohorts.variants import Variant, VariantCohort
from mnmt_repro.repository import ROOT
from mnmt_repro.runs.data import keep
from mnmt_repro.runs.spec import Upgrade
from mnmt_repro.upgrading.config import UpgradeConfig


@cache
def published(table: str) -> list[dict[str, str]]:
    path = ROOT / "data" / "papers" / f"paper-b-table-{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cohort(name: str) -> VariantCohort:
    found = find_cohort(f"software25-{name}")
    assert isinstance(found, VariantCohort)
    return found


def variants(name: str, seed: int = 1) -> dict[str, Variant]:
    """Of the cohort, by name; where a name has several budgets, the largest."""
    return {
        v.name: v
        for v in sorted(cohort(name).variants, key=lambda v: v.updates_share)
        if v.spec.seed == seed
    }


# --- languages and text -----------------------------------------------------------------------


def test_a_selection_by_hash_is_the_same_in_any_order_and_direction() -> None:
    rows = [(f"word {i}", f"ilizwi {i // 2}") for i in range(200)]

    def kept(rows: list[tuple[str, str]], count: int, *, turned: bool = False) -> set:
        source, target = ([row[i] for row in rows] for i in (0, 1))
        text = Bitext(pair="eng-xho", source=source, target=target)
        if turned:
            text = Bitext(pair="xho-eng", source=target, target=source)
        chosen = keep(text, {"xho": count, "deu": 1})
        sides = zip(chosen.source, chosen.target, strict=True)
        return {pair[::-1] if turned else pair for pair in sides}

    first = kept(rows, 40)
    assert len(first) == 40 and first < set(rows)
    shuffled = random.Random(1).sample(rows, len(rows))
    assert kept(shuffled, 40) == kept(rows, 40, turned=True) == first
    assert first < kept(rows, 41) and kept(rows, 400) == set(rows)
    numbers = sorted(int(row[0].split()[1]) for row in first)
    assert numbers[0] < 30 and numbers[-1] > 170  # not the first forty


# --- tables -----------------------------------------------------------------------------------


def test_the_central_comparison_has_the_papers_budgets_and_three_seeds() -> None:
    main_runs = cohort("main").variants
    steps = MINI.training.steps
    assert steps is not None
    found = Counter((v.name, v.updates_share) for v in main_runs)
    assert set(found.values()) == {3} and {v.spec.seed for v in main_runs} == {1, 2, 3}
    for row in published("01"):
        if row["updates"]:
            assert (row["model"], int(row["updates"]) / 100_000) in found
    for variant in main_runs:
        assert variant.spec.training.steps == variant.updates_share * steps
        assert (variant.spec.upgrade is not None) == variant.name.startswith("Mt25")
        assert len(variant.spec.mixture.pairs) == (40 if variant.name == "M20" else 50)
        assert variant.spec.tags == "both"
    decoded = {(v.name, v.updates_share) for v in main_runs if v.decode}
    assert decoded == {
        ("M20", 1.0), ("M25", 1.0), ("M25-wide", 1.0), ("M25-deep", 1.0),
        ("Mt25", 0.3), ("Mt25-wide", 0.5), ("Mt25-deep", 0.5),
    }  # fmt: skip
    second = Counter((v.name, v.updates_share) for v in cohort("full").variants)
    assert set(second) == set(found) and set(second.values()) == {1}


def test_every_row_of_tables_3_to_7_and_11_is_declared() -> None:
    names = {name: [v.name for v in cohort(name).variants if v.spec.seed == 1] for name in (
        "table3", "table4", "table5", "table6", "table7", "table11"
    )}  # fmt: skip
    assert set(names["table3"]) == {f"{r['model']}, {r['setting']}" for r in published("03")}
    fourth = {f"{r['model']}, {r['setting']}" for r in published("04")}
    assert set(names["table4"]) == fourth | {"Mt25, new embeddings mean"}
    related = {"no": "", "yes": ", related"}
    fifth = {f"alpha {r['alpha']}{related[r['related']]}" for r in published("05")}
    assert set(names["table5"]) == fifth
    sixth = {f"old {r['gamma_old']}, new {r['gamma_new']}" for r in published("06")}
    assert set(names["table6"]) == sixth
    seventh = {r["grouping"] for r in published("07")}
    assert seventh <= set(names["table7"])
    eleventh = {
        f"f {r['threshold']}, gamma {r['gamma_old']}"
        for r in published("11")
        if r["part"] == "right"
    }
    assert set(names["table11"]) == eleventh | {"full recipe"}
    seeds = Counter(v.name for v in cohort("table3").variants)
    assert all(count == (3 if "wide" in name else 1) for name, count in seeds.items())
    for name in ("table3", "table4", "table5", "table6", "table11", "schedule", "insertion"):
        assert {v.updates_share for v in cohort(name).variants} == {0.3}


# --- models, settings, identities -------------------------------------------------------------


def test_all_of_an_upgrade_is_part_of_the_identity() -> None:
    run = variants("main")["Mt25"].spec
    upgrade = run.upgrade
    assert upgrade is not None
    fewer = tuple((code, count - 1) for code, count in run.kept)
    others = [
        replace(run, upgrade=None),
        replace(run, kept=fewer),
        replace(run, upgrade=replace(upgrade, fisher_share=0.5)),
        replace(run, upgrade=replace(upgrade, config=replace(upgrade.config, gamma_new=5.0))),
        replace(run, upgrade=replace(upgrade, parent=replace(upgrade.parent, seed=9))),
    ]
    assert len({each.config_hash for each in (run, *others)}) == 6
    assert replace(run, kept=run.kept[::-1]).config_hash == run.config_hash
    with pytest.raises(InputError, match="fisher_share must lie between 0 and 1, got 1"):
        Upgrade(parent=run, config=UpgradeConfig(), fisher_share=1.0)
    with pytest.raises(InputError, match="software25-main' is a list of named runs"):
        get_cohort("software25-main")


def test_a_row_has_the_name_that_its_cohort_gives_the_run(tmp_path) -> None:
    from test_results import content

    spec = variants("table5")["alpha 5"].spec
    assert set(membership()[spec.config_hash]) == {"software25-table4", "software25-table5"}
    for run_id, config in (("named", spec.config), ("of-a-grid", {})):
        both = {"eng-xho": 0.5, "xho-eng": 0.5}
        parts = content(run_id, corpus="software25", mixture=both, config=config)
        for row, pair in zip(parts["rows"], ("eng-xho", "xho-eng"), strict=True):
            row["pair"] = pair
        results.write_run(**parts, root=tmp_path)
    frame = results.load(root=tmp_path)
    named = frame[frame["run_id"] == "named"]
    assert set(zip(named["cohort"], named["variant"], named["updates_share"], strict=True)) == {
        ("software25-table4", "Mt25, new embeddings from unk", 0.3),
        ("software25-table5", "alpha 5", 0.3),
    }
    other = frame[frame["run_id"] == "of-a-grid"]
    assert set(other["variant"]) == {""} and other["updates_share"].isna().all()
    one = results.load(root=tmp_path, cohort="software25-table5", variant="alpha 5", pair="xho-eng")
    assert list(one["updates_share"]) == [0.3] and len(one) == 1
    assert results.load(root=tmp_path, updates_share=0.5).empty
    assert (spec.config_hash, "software25-table5") in places()
