"""`mnmt-repro compare`: which of two models is better, and is it chance?"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import fails
from small_text import small_bitext

from mnmt_repro.cli import main
from mnmt_repro.training.checkpoint import TensorFile, write_tensors

CONLANG = ["train", "--d-model", "8", "--heads", "2", "--curve-points", "2"]
BITEXT = ["--data", "eng-deu=talks.tsv", "--data", "eng-nld=talks.nl.tsv", "--tags", "both"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """`short` and `longer` on one conlang; `few` and `more` pieces on one bitext."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MNMT_REPRO_CACHE", str(folder / "cache"))
        for name, steps in (("short", "2"), ("longer", "40")):
            assert main([*CONLANG, "--steps", steps, "--out", name]) == 0
        text = small_bitext(count=120)
        for language, file in (("deu", "talks.tsv"), ("nld", "talks.nl.tsv")):
            columns = {"eng": text.source, language: text.target}
            pd.DataFrame(columns).to_csv(file, sep="\t", index=False)
        for name, pieces in (("few", "320"), ("more", "350")):
            mine = [*CONLANG, *BITEXT, "--pieces", pieces, "--steps", "3", "--out", name]
            assert main(mine) == 0
    return folder


@pytest.fixture(autouse=True)
def here(models: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(models)
    capsys.readouterr()


def rows_of(arguments: list[str], capsys) -> list[dict]:
    assert main(["compare", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def losses(folder: str, arguments: list[str], capsys) -> dict[str, dict]:
    assert main(["evaluate", folder, *arguments, "--json"]) == 0
    return {row["pair"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_better_model_is_told_from_chance(capsys) -> None:
    options = ["--limit", "60"]
    rows = rows_of(["short", "longer", *options], capsys)
    assert [row["pair"] for row in rows] == ["src-aaa", "src-bbb"]
    before, after = (losses(name, options, capsys) for name in ("short", "longer"))
    for row in rows:
        assert (row["measure"], row["sentences"]) == ("nats per token", 60)
        assert row["baseline"] == pytest.approx(before[row["pair"]]["cross_entropy"], rel=1e-12)
        assert row["model"] == pytest.approx(after[row["pair"]]["cross_entropy"], rel=1e-12)
        assert row["difference"] == pytest.approx(row["model"] - row["baseline"], rel=1e-9)
        assert row["low"] < row["difference"] < row["high"] < 0
        assert row["p_value"] == pytest.approx(1 / 1001)


def test_a_model_against_itself(capsys) -> None:
    rows = rows_of(["short", "short", "--limit", "20"], capsys)
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in rows)
    assert all(row["p_value"] == 1 for row in rows)


def test_other_pieces_are_compared_by_character(capsys) -> None:
    """Nats a token times tokens are nats a character times characters, for both models."""
    data = ["--data", "eng-deu=talks.tsv", "--data", "eng-nld=talks.nl.tsv"]
    rows = rows_of(["few", "more", *data], capsys)
    assert [row["measure"] for row in rows] == ["nats per character"] * 2
    characters = sum(len(line) + 1 for line in small_bitext(count=120).target)
    for name, column in (("few", "baseline"), ("more", "model")):
        by_pair = losses(name, data, capsys)
        for row in rows:
            mine = by_pair[row["pair"]]
            nats = mine["cross_entropy"] * mine["test_tokens"]
            assert row[column] * characters == pytest.approx(nats, rel=1e-9)


def test_models_that_cannot_be_compared_are_refused(capsys) -> None:
    fails(["compare", "short", "few"], capsys, "in common: src-aaa, src-bbb; eng-deu, eng-nld")
    assert main([*CONLANG, "--steps", "1", "--similarity", "0.5", "--out", "related"]) == 0
    capsys.readouterr()
    fails(["compare", "short", "related"], capsys, "not of the same generated languages")
    assert math.isfinite(rows_of(["related", "related", "--limit", "5"], capsys)[0]["model"])


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("embedding", math.nan, "last.safetensors: the weight embedding.weight holds NaN"),
        ("output", 3e38, "broken, src-aaa: the loss is not a number"),
        ("embedding", None, "the weight embedding.weight is stored as torch.int32, not float32"),
    ],
)
def test_a_model_that_gives_no_numbers_is_refused(
    name: str, value: float | None, message: str, capsys
) -> None:
    shutil.copytree("short", "broken", dirs_exist_ok=True)
    file = TensorFile("short/last.safetensors")
    tensors = {name: tensor.clone() for name, tensor in file.read().items()}
    weight = tensors[f"model.{name}.weight"]
    if value is None:
        tensors[f"model.{name}.weight"] = weight.view(torch.int32)
    else:
        weight[5] = value
    write_tensors(Path("broken/last.safetensors"), tensors, file.metadata)
    fails(["compare", "short", "broken", "--limit", "5"], capsys, message)
    add = ["--limit", "5", "--add-to", "losses.csv"]
    fails(["evaluate", "broken", *add], capsys, message)
