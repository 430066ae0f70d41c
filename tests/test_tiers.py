"""Tiers beyond mini: declared at the published sizes and between, apart from all that is stored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mnmt_repro import results
from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.cli import build_parser, main
from mnmt_repro.cli.presets import with_preset
from mnmt_repro.cli.train_options import model_config, training_config
from mnmt_repro.cohorts import steady, tiers
from mnmt_repro.cohorts.catalogue import (
    MINI_COHORTS,
    RUN_TIERS,
    declared,
    find_cohort,
    membership,
)
from mnmt_repro.cohorts.grids import GRIDS, Cohort
from mnmt_repro.cohorts.software25_runs import GPU, MINI, PAPER
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT
from mnmt_repro.training.config import TrainingConfig

MAINS = ("webtech-en-dezh", "webtech-en-defr", "webtech-dezh-en")


def sizes(cohort: Cohort) -> list[int]:
    return [parameter_counts(run.model)["non_embedding"] for run in cohort.runs()]


@pytest.mark.parametrize("name", MAINS)
def test_papers_grid_at_the_published_sizes_batches_and_steps(name: str) -> None:
    runs = list(find_cohort(name, "paper").runs())
    assert [run.mixture for run in runs] == [run.mixture for run in find_cohort(name).runs()]
    shapes = [run.model for run in runs if run.mixture.weights == runs[0].mixture.weights]
    assert shapes == [row.config for row in PAPER_A]  # with their 128,000 pieces
    for run in runs:
        assert (run.tier, run.training.batch_tokens) == ("paper", 500_000)
        assert run.training.optimiser == "adafactor"
        # The two largest, of 708M and 1,019M, train for twice as long as the others.
        large = run.model.d_model > 1024
        assert run.training.steps == (1_000_000 if large else 500_000)
        assert run.training.target_tokens is None


@pytest.mark.parametrize("name", MAINS)
def test_the_gpu_tier_reaches_from_a_third_of_a_million_to_papers_second_row(name: str) -> None:
    found = sizes(find_cohort(name, "gpu"))
    distinct = sorted(set(found))
    assert len(found) == 72 and len(distinct) == 8 and found == sorted(found)
    assert 250_000 < distinct[0] < 350_000
    assert distinct[-2:] == [row.published_non_embedding for row in PAPER_A[:2]]
    largest_mini = max(sizes(find_cohort(name)))
    assert largest_mini < distinct[0]


def test_grids_of_the_gpu_tier_are_minis_with_larger_models_and_budgets() -> None:
    for cohort in tiers.GPU_GRIDS:
        mini = find_cohort(cohort.name)
        assert isinstance(mini, Cohort)
        assert cohort.mixtures == mini.mixtures and cohort.seeds == mini.seeds
        assert cohort.repeats == mini.repeats and len(cohort.sizes) == len(mini.sizes)
        training = cohort.corpus.training
        assert training.precision == "bfloat16" and training.target_tokens is not None
        assert 4e7 < training.target_tokens <= 1e9
        # Only text that never ends can be trained on without watching for the best weights.
        assert (training.keep == "last") == (cohort.corpus.conlang is not None)
        assert cohort.corpus.pieces > mini.corpus.pieces
    left_out = {cohort.name for cohort in GRIDS} - {cohort.name for cohort in tiers.GPU_GRIDS}
    assert left_out == {"webtech-en-dezh-8m", "webtech-en-dezh-16m"}  # named by mini's budgets


ONLY_MINI = ("noise 0.27",)


@pytest.mark.parametrize(("tier", "settings"), [("gpu", GPU), ("paper", PAPER)])
def test_papers_upgrades_are_declared_at_every_tier(tier: str, settings) -> None:
    for cohort in MINI_COHORTS:
        if cohort.name.startswith("software25"):
            larger = find_cohort(cohort.name, tier)
            assert larger.tier == tier
            mini = [v for v in cohort.variants if v.name not in ONLY_MINI]
            for a, b in zip(mini, larger.variants, strict=True):
                assert a.name == b.name
                assert b.spec.mixture == a.spec.mixture and b.spec.tier == tier
    assert MINI.d_model < settings.d_model and settings.deeper / settings.layers == 0.5
    training = settings.training
    assert training.steps is not None and training.warmup_steps / training.steps == 0.08


def test_a_run_belongs_to_one_tier() -> None:
    found = {tier: set(membership(tier)) for tier in (*RUN_TIERS, "gpu", "paper")}
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
    assert declared("smoke") == () and membership("smoke") == {}
    stored = [content["run"] for content in results.load_runs(ROOT / "data" / "results")]
    assert {run["tier"] for run in stored} <= set(RUN_TIERS)
    for tier in RUN_TIERS:
        assert all((run["tier"] == tier) == (run["config_hash"] in found[tier]) for run in stored)


def test_trials_of_the_steady_tier_try_three_rates_a_size_at_the_whole_budget() -> None:
    runs = list(find_cohort("conlang-pilot-rates", "steady").runs())
    assert len({run.run_id for run in runs}) == len(runs)
    for width in steady.TRIALS:
        mine = [run.training for run in runs if run.model.d_model == width]
        assert {training.target_tokens for training in mine} == {steady.BUDGETS[width]}
        assert len({training.learning_rate for training in mine}) >= 3
        assert {training.decay_share for training in mine} == {0.3}


def test_rows_of_one_cohort_at_two_tiers_are_told_apart(tmp_path: Path) -> None:
    for tier in ("mini", "gpu"):
        spec = next(iter(find_cohort("conlang-sim0", tier).runs()))
        write(tmp_path, spec)
    frame = results.load(root=tmp_path)
    assert set(frame["cohort"]) == {"conlang-sim0"} and set(frame["tier"]) == {"mini", "gpu"}
    # At width 8, one layer: 16 d^2 + 20 d^2 in matrices, 7 d in norms, 2 * 32 * 2 in positions.
    assert set(results.load(root=tmp_path, tier="mini")["n_non_embedding"]) == {2_488}


def write(root: Path, spec) -> None:
    counts = parameter_counts(spec.model)
    run = {
        "run_id": spec.run_id, "config_hash": spec.config_hash, "data_hash": spec.data_hash,
        "commit": "c", "code_version": spec.code_version, "tier": spec.tier, "corpus": spec.corpus,
        "mixture": spec.mixture.weights, "size": spec.size, "steps": 1, "target_tokens": 1,
        "n_non_embedding": counts["non_embedding"], "n_total": counts["total"],
        "batch_tokens": spec.training.batch_tokens, "seed": 1, "learning_rate": 0.1,
        "wall_seconds": 1.0, "hardware": "a", "flops": 1.0, "torch": "2", "vocabulary_hash": "v",
        "started": "2026-01-01T00:00:00+00:00", "config": spec.config,
    }  # fmt: skip
    [(pair, p)] = spec.mixture.items
    row = {
        "pair": pair, "p": p, "token_share": 1.0, "pair_target_tokens": 1, "passes": 0.0,
        "test_set": "indomain", "domain": "all", "cross_entropy": 1.0, "test_tokens": 1,
        "sentences": 1,
    }  # fmt: skip
    results.write_run(run, [row], [], root=root)


def test_the_command_reaches_every_tier(tmp_path: Path, capsys) -> None:
    nothing = ["--dry-run", "--results", str(tmp_path / "none"), "--runs", str(tmp_path / "runs")]
    for tier, words in (("gpu", "not run"), ("paper", "the published text is not public")):
        assert main(["sweep", "--tier", tier]) == 0
        shown = capsys.readouterr().out
        assert f"{tier:5}  webtech-en-dezh        72 runs" in shown and words in shown
        assert main(["sweep", "webtech-en-dezh", "--tier", tier, *nothing]) == 0
        *runs, summary, note = capsys.readouterr().out.splitlines()
        assert len(runs) == 72 and "72 of 72 runs are missing" in summary
        assert note.startswith("at the speed of CPU threads") and words in note
        assert main(["sweep", "software25-noise", "--tier", tier, *nothing]) == 0
        assert "2 of 2 runs are missing and 1 that they begin with" in capsys.readouterr().out
    assert main(["sweep", "conlang-sim0", "--tier", "paper", *nothing]) == 2
    error = capsys.readouterr().err
    assert "no cohort named 'conlang-sim0' at tier paper; there are webtech-en-dezh" in error


def test_a_sweep_is_no_work_for_torchrun(monkeypatch, capsys) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["sweep", "conlang-sim0"]) == 2
    assert "torchrun is for a single `train`" in capsys.readouterr().err


# --- the same settings for text of one's own ------------------------------------------------------


def options(*given: str):
    return with_preset(build_parser().parse_args(["train", *given]))


def test_presets_are_the_published_settings() -> None:
    first = options("--preset", "paper-a")
    assert model_config(first, first.pieces) == PAPER_A[0].config
    grid = find_cohort("webtech-en-dezh", "paper")
    assert training_config(first) == next(iter(grid.runs())).training
    third = options("--preset", "paper-a", "--d-model", "768", "--layers", "6", "--heads", "12")
    assert model_config(third, third.pieces) == PAPER_A[2].config
    baseline = options("--preset", "paper-b")
    assert (first.vocabulary_temperature, baseline.vocabulary_temperature) == (1, 2)
    assert model_config(baseline, 64_000) == PAPER.model("same") and baseline.pieces == 64_000
    assert training_config(baseline) == PAPER.training and baseline.tags == "both"


def test_options_win_over_a_preset() -> None:
    tokens = options("--preset", "paper-a", "--target-tokens", "9000", "--max-length", "32")
    assert training_config(tokens) == TrainingConfig(
        learning_rate=0.01, warmup_steps=10_000, batch_tokens=500_000, target_tokens=9_000,
        max_length=32, precision="bfloat16",
    )  # fmt: skip
    # Adafactor's rate is no rate for AdamW.
    assert training_config(options("--preset", "paper-a", "--optimiser", "adamw")).learning_rate < 1
    assert options("--preset", "paper-a", "--optimiser", "adamw").learning_rate is None
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
