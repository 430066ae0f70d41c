"""A longer run that begins with a shorter one's checkpoint ends as if it had not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from test_experiments import tiny_spec

from mnmt_repro.runs.execute import execute
from mnmt_repro.runs.order import shorter_runs
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.start import begin_from_shorter
from mnmt_repro.training.checkpoint import load_checkpoint
from mnmt_repro.training.config import LAST, LOG, STEM


def with_budget(spec: RunSpec, **training) -> RunSpec:
    return replace(spec, training=replace(spec.training, **training))


SHORT = tiny_spec()
LONG = with_budget(SHORT, steps=12)
DECLARED = (SHORT, LONG, with_budget(SHORT, steps=8))


def test_the_longest_of_the_shorter_runs_comes_first() -> None:
    assert [run.training.steps for run in shorter_runs(LONG, DECLARED)] == [8, 5]
    assert shorter_runs(SHORT, DECLARED) == ()


@pytest.mark.parametrize(
    "other",
    [
        replace(LONG, seed=LONG.seed + 1),
        with_budget(LONG, learning_rate=0.5),
        with_budget(LONG, keep="best"),
    ],
)
def test_a_run_that_differs_in_more_than_its_budget_begins_anew(
    other: RunSpec, tmp_path: Path
) -> None:
    (tmp_path / SHORT.run_id).mkdir()
    (tmp_path / SHORT.run_id / LAST).write_bytes(b"would be read")
    begin_from_shorter(other, tmp_path / other.run_id, DECLARED)
    assert not (tmp_path / other.run_id).exists()


def test_a_run_under_way_keeps_its_own_checkpoint(tmp_path: Path) -> None:
    execute(SHORT, tmp_path / SHORT.run_id, progress_bar=False)
    own = tmp_path / LONG.run_id / LAST
    own.parent.mkdir()
    own.write_bytes(b"its own")
    begin_from_shorter(LONG, own.parent, DECLARED)
    assert own.read_bytes() == b"its own"


@pytest.mark.parametrize("budget", ["steps", "target_tokens"])
def test_a_longer_run_starts_where_the_decay_of_a_shorter_one_began(
    tmp_path: Path, budget: str
) -> None:
    """Three decayed budgets of one trunk: each equals the run trained from the first step."""
    sizes = (10, 16, 24) if budget == "steps" else (1300, 2000, 3000)
    either = {"steps": None, "target_tokens": None}
    runs = [with_budget(SHORT, **{**either, budget: size, "decay_share": 0.4}) for size in sizes]
    for shorter, run in zip((None, *runs), runs, strict=False):
        folder = tmp_path / "chain" / run.run_id
        begin_from_shorter(run, folder, [*runs, with_budget(SHORT, steps=2)])
        if shorter is not None:  # the steps before its decay are not trained again
            stem = load_checkpoint(folder.parent / shorter.run_id / STEM).progress
            assert stem.step == load_checkpoint(folder / LAST).progress.step > 0
        execute(run, folder, progress_bar=False)
        execute(run, tmp_path / run.run_id / run.run_id, progress_bar=False)
        chained = load_checkpoint(tmp_path / "chain" / run.run_id / LAST)
        straight = load_checkpoint(tmp_path / run.run_id / run.run_id / LAST)
        assert chained.identity == straight.identity == run.run_id
        log = (folder / LOG).read_text(encoding="utf-8").splitlines()
        assert len(log) == len(set(log)) == len(chained.progress.curve)  # no point comes twice
        assert chained.progress.step == straight.progress.step
        for name, tensor in straight.weights.items():
            assert torch.equal(chained.weights[name], tensor), name
