"""The data set of stored losses: its rows, its card and its Croissant file."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from test_results import content, write

from mnmt_repro import results
from mnmt_repro.__main__ import main
from mnmt_repro.papers.cohorts.settled import SETTLED_GRIDS
from mnmt_repro.papers.commands.dataset import COLUMNS, FILES, KEY, contents, dataset
from mnmt_repro.repository import ROOT
from mnmt_repro.results.frames import _way

ABOUT = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WEIGHTS = {"eng-deu": 0.05, "eng-fra": 0.95}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return results.load(corpus=["webtech-shared", "conlang-upgrade-sim0"])


@pytest.fixture(scope="module")
def table(rows: pd.DataFrame) -> pd.DataFrame:
    return dataset(rows)


@pytest.mark.parametrize(
    "config, way",
    [
        ({"training": {"steps": 5}}, "sampled"),
        ({"training": {"steps": 5, "loss_weights": WEIGHTS}}, "text-matched"),
        ({"training": {"steps": 5, "first_weights": WEIGHTS}}, "equal-first"),
        ({"seed": 1}, "sampled"),
        ({"training": "of another program"}, "sampled"),
    ],
)
def test_a_row_says_how_its_weight_was_given(
    config: dict[str, Any], way: str, tmp_path: Path
) -> None:
    write(tmp_path, content(config=config))
    assert set(results.load(root=tmp_path)["way"]) == {way}
    assert set(results.load_curves(root=tmp_path)["way"]) == {way}


def test_the_ways_are_those_that_cohorts_declare() -> None:
    found = {(cohort.way, _way(next(cohort.runs()).config)) for cohort in SETTLED_GRIDS}
    assert found == {(way, way) for way in ("sampled", "text-matched", "equal-first")}


def test_a_run_a_pair_and_a_test_set_have_one_row(rows: pd.DataFrame, table: pd.DataFrame) -> None:
    assert list(table) == list(COLUMNS)
    assert set(table["corpus"]) == {"webtech-shared"}  # the other corpus is Paper B's
    assert not table.duplicated(KEY).any() and not table.isna().any(axis=None)
    assert {"indomain", "newstest21"} < set(table["test_set"])
    several = table[table["cohorts"].str.contains(";")]
    run = several.iloc[0]
    mine = rows[rows["run_id"] == run["run_id"]]
    assert set(run["cohorts"].split(";")) == set(mine["cohort"])
    whole = mine[(mine["domain"] == "all") & (mine["test_set"] == run["test_set"])]
    (loss,) = set(whole.loc[whole["pair"] == run["pair"], "cross_entropy"])
    assert loss == run["cross_entropy"]


def test_the_files_agree(table: pd.DataFrame) -> None:
    losses, card, croissant = contents(table, ABOUT)
    assert contents(table, ABOUT) == (losses, card, croissant)
    lines = list(csv.DictReader(io.StringIO(losses.decode())))
    assert len(lines) == len(table) and list(lines[0]) == list(COLUMNS)
    assert [float(line["cross_entropy"]) for line in lines] == list(table["cross_entropy"])
    about = json.loads(croissant)
    (file,) = about["distribution"]
    assert file["contentUrl"] == FILES[0]
    assert file["sha256"] == hashlib.sha256(losses).hexdigest()
    fields = {field["name"]: field for field in about["recordSet"][0]["field"]}
    assert list(fields) == list(COLUMNS)
    types = {name: fields[name]["dataType"] for name in ("pair", "p", "seed", "commit")}
    assert types == {
        "pair": "sc:Text", "p": "sc:Float", "seed": "sc:Integer", "commit": "sc:Text"
    }  # fmt: skip
    text = card.decode()
    sizes = table["n_non_embedding"]
    assert f"{len(table):,} rows" in text and f"{sizes.min():,} to {sizes.max():,}" in text
    assert about["description"] in " ".join(text.split())
    assert all(f"| `{name}` |" in text for name in COLUMNS)


def test_the_command_replaces_its_own_files_and_no_others(tmp_path: Path, capsys) -> None:
    store, out = tmp_path / "results", tmp_path / "out"
    call = ["dataset", "--out", str(out), "--results", str(store)]
    write(store, content())
    assert main(call) == 2 and "no run of Paper A's grids" in capsys.readouterr().err
    assert not out.exists()
    stored = min((ROOT / "data" / "results" / "webtech-shared").glob("*.json"))
    write(store, json.loads(stored.read_text()))
    assert main(call) == 0
    assert capsys.readouterr().out.split() == [str(out / name) for name in FILES]
    (out / FILES[0]).write_text("an older one")
    assert main(call) == 0 and len(pd.read_csv(out / FILES[0])) > 1
    (out / "notes.txt").write_text("mine")
    (out / FILES[0]).unlink()
    assert main(call) == 2 and "notes.txt" in capsys.readouterr().err
    assert not (out / FILES[0]).exists()


def test_mlcroissant_reads_what_is_written(table: pd.DataFrame, tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip(
        "mlcroissant", reason="mlcroissant is not installed: the Croissant file was NOT validated"
    )
    for name, content_ in zip(FILES, contents(table, ABOUT), strict=True):
        (tmp_path / name).write_bytes(content_)
    found = mlcroissant.Dataset(tmp_path / FILES[2])
    assert not found.metadata.ctx.issues.errors and not found.metadata.ctx.issues.warnings
    records = pd.DataFrame(list(found.records("losses")))
    assert list(records["losses/cross_entropy"]) == list(table["cross_entropy"])
    assert [pair.decode() for pair in records["losses/pair"]] == list(table["pair"])
