"""Tiers are apart, and presets are the published settings."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mnmt_repro import results
from mnmt_repro.architecture import PAPER_A
from mnmt_repro.cli import build_parser, main
from mnmt_repro.cli.train_options import TrainOptions, model_config, read_options
from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.catalogue import RUN_TIERS, declared, membership
from mnmt_repro.papers.cohorts.software25_runs import PAPER
from mnmt_repro.repository import ROOT
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.published import PUBLISHED


def test_a_run_belongs_to_one_tier() -> None:
    found = {tier: set(membership(tier)) for tier in RUN_TIERS}
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
    assert declared("smoke") == () and membership("smoke") == {}
    stored = [content["run"] for content in results.load_runs(ROOT / "data" / "results")]
    assert {run["tier"] for run in stored} <= set(RUN_TIERS)
    for run in stored:  # pilots are in no tier's cohorts
        assert {tier for tier in RUN_TIERS if run["config_hash"] in found[tier]} <= {run["tier"]}


def test_a_sweep_is_no_work_for_torchrun(monkeypatch, capsys) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["sweep", "conlang-sim0"]) == 2
    assert "torchrun is for a single `train`" in capsys.readouterr().err


# --- the same settings for text of one's own ------------------------------------------------------


def options(*arguments: str) -> TrainOptions:
    return read_options(build_parser().parse_args(["train", "--corpus", "conlang", *arguments]))


def test_presets_are_the_published_settings() -> None:
    first = options("--preset", "paper-a")
    assert model_config(first, first.pieces) == PAPER_A[0].config
    assert first.training == PUBLISHED["paper-a"].training
    third = options("--preset", "paper-a", "--d-model", "768", "--layers", "6", "--heads", "12")
    assert model_config(third, third.pieces) == PAPER_A[2].config
    baseline = options("--preset", "paper-b")
    assert (first.vocabulary_temperature, baseline.vocabulary_temperature) == (1, 2)
    assert model_config(baseline, 64_000) == PAPER.model("same") and baseline.pieces == 64_000
    assert baseline.training == PAPER.training and baseline.tags == "both"


def test_options_win_over_a_preset() -> None:
    tokens = options("--preset", "paper-a", "--target-tokens", "9000", "--max-length", "32")
    assert tokens.training == TrainingConfig(
        learning_rate=0.01, warmup_steps=10_000, batch_tokens=500_000, target_tokens=9_000,
        max_length=32, precision="bfloat16",
    )  # fmt: skip
    # Adafactor's rate is no rate for AdamW, whose usual one is taken; a default may be given, too.
    adamw = options("--preset", "paper-a", "--optimiser", "adamw", "--layers", "1")
    assert (adamw.training.learning_rate, adamw.layers) == (0.005, 1)
    with pytest.raises(InputError, match="--preset: the upgraded model has its settings"):
        options("--preset", "paper-a", "--continue-from", "start")


def test_a_model_is_trained_with_a_preset(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--d-model", "8", "--heads", "2", "--layers", "1", "--steps", "2"]
    few = ["--batch-tokens", "64", "--curve-points", "1", "--out", "run"]
    assert main(["train", "--preset", "paper-b", *small, *few]) == 2
    assert "--preset paper-b: name its text" in capsys.readouterr().err
    few += ["--corpus", "conlang"]
    assert main(["train", "--preset", "paper-b", *small, *few]) == 0  # bfloat16
    assert "2 steps" in capsys.readouterr().out
    log = pd.read_json(tmp_path / "run" / "log.jsonl", lines=True)
    # The rate rises to 0.003 over 8,000 steps.
    assert log["learning_rate"].tolist() == pytest.approx([0.003 * 2 / 8000] * 2)
