"""Two processes that share out every batch train the model that one process trains."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import pytest
import torch
from small_runs import EVEN, adamw, fairseq, small_data, t5
from torch import Tensor

from mnmt_repro.cli import main
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import Checkpoint, load_checkpoint
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.distributed import is_split, process_group
from mnmt_repro.training.loop import TrainingDiverged, train
from mnmt_repro.upgrading.learning_rate import NEW, OLD, scale_updates

LAST, LOG = "last.safetensors", "log.jsonl"
STEPS = 6
CLIPPED = "adamw, tied, smoothed, clipped"
RUNS = {
    "adafactor": (
        t5(),
        TrainingConfig(
            learning_rate=0.1,
            warmup_steps=4,
            batch_tokens=160,
            steps=STEPS,
            curve_points=6,
            keep="best",
        ),
    ),
    CLIPPED: (
        fairseq(),
        adamw(
            steps=STEPS,
            clip_norm=0.05,
            label_smoothing=0.1,
            weight_decay=0.01,
            curve_points=6,
            keep="best",
        ),
    ),
    "one sentence a step": (t5(), adamw(steps=STEPS, batch_tokens=1)),  # the second has none
}
SPLIT = (CLIPPED,)  # of AdamW
DROPOUT = (t5(dropout=0.2), adamw(steps=STEPS, curve_points=1))
CLI = [
    "train", "--steps", "4", "--d-model", "8", "--heads", "2", "--curve-points", "2",
    "--seed", "3", "--out", "run",
]  # fmt: skip


def half_speed(model: Transformer, optimiser: torch.optim.Optimizer) -> None:
    """Learning-rate scaling: the encoder's parameters learn at half the rate."""
    parameters = dict(model.named_parameters())
    groups = {
        name: torch.tensor(OLD if name.startswith("encoder") else NEW, dtype=torch.uint8)
        for name in parameters
    }
    scale_updates(optimiser, parameters, groups, (1.0, 0.5))


def run(folder: Path, name: str, steps: int = STEPS, shard: bool = False) -> None:
    model, config = DROPOUT if name == "dropout" else RUNS[name]
    trained, _ = train(
        model, replace(config, steps=steps), small_data(finite=150), EVEN, folder / name, seed=5,
        identity=name, progress_bar=False, prepare=half_speed, checkpoint_seconds=0.0,
        shard=shard, recompute=shard,
    )  # fmt: skip
    assert not any(is_split(value) for value in trained.state_dict().values())


def all_runs(folder: Path) -> None:
    """What the two processes do: every run, one that is stopped, and one that diverges."""
    with process_group("cpu") as device:
        assert device == "cpu"
        for name in (*RUNS, "dropout"):
            run(folder, name)
        for name in SPLIT:
            run(folder / "split", name, shard=True)
        run(folder.with_name("begun"), CLIPPED, shard=True)  # by one process
        for steps in (2, 4, STEPS):
            run(folder / "torn", "dropout", steps)
            run(folder / "split" / "torn", "dropout", steps, shard=steps != 4)
        with pytest.raises(TrainingDiverged, match="lower learning_rate"):
            train(
                t5(), adamw(steps=40, learning_rate=1e36, warmup_steps=0), small_data(), EVEN,
                folder / "diverged", seed=1, progress_bar=False,
            )  # fmt: skip


def command(folder: Path) -> None:
    """What `torchrun ... mnmt-repro train` does in each process."""
    os.chdir(folder)
    os.environ["MNMT_REPRO_CACHE"] = str(folder / "cache")
    with (
        Path(f"out{os.environ['RANK']}").open("w", encoding="utf-8") as out,
        contextlib.redirect_stdout(out),
    ):
        assert main(CLI) == 0


def as_torchrun(work: Callable[[Path], None], folder: Path, rank: int, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    work(folder)


def in_two_processes(work: Callable[[Path], None], folder: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["small_runs", "torch._dynamo", "torch.distributed"])
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    both = [
        context.Process(target=as_torchrun, args=(work, folder, rank, port)) for rank in range(2)
    ]
    for process in both:
        process.start()
    while alive := [process for process in both if process.is_alive()]:
        wait([process.sentinel for process in alive], timeout=600)
        if any(process.exitcode for process in both) or both == [p for p in both if p.is_alive()]:
            for process in alive:
                process.kill()
                process.join()
    assert [process.exitcode for process in both] == [0, 0]


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """Folders of the runs of two processes."""
    folder = tmp_path_factory.mktemp("distributed") / "two"
    run(folder.with_name("begun"), CLIPPED, 3)
    in_two_processes(all_runs, folder)
    return folder


def last(folder: Path) -> Checkpoint:
    return load_checkpoint(folder / LAST)


def largest_difference(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """Between two models' weights, but for keys' biases.

    A bias of keys adds the same to all scores of a query, which changes nothing: its gradient is
    rounding alone, and AdamW makes whole steps of it.
    """
    assert a.keys() == b.keys()
    names = [name for name in a if not name.endswith("k.bias")]
    return max(float((a[name] - b[name]).abs().max()) for name in names)


@pytest.mark.parametrize("which", [*RUNS, *(f"split/{name}" for name in SPLIT)])
def test_two_processes_train_as_one_does(two: Path, which: str) -> None:
    name = Path(which).name
    if not (two / "one" / name).exists():
        run(two / "one", name)
    one, both = last(two / "one" / name), last(two / which)
    for field in ("step", "target_tokens", "pair_tokens", "pair_sentences", "position"):
        assert getattr(both.progress, field) == getattr(one.progress, field)
    assert len(one.progress.curve) == len(both.progress.curve) >= 4
    for expected, found in zip(one.progress.curve, both.progress.curve, strict=True):
        for field in ("cross_entropy", "train_loss"):
            assert found[field] == pytest.approx(expected[field], abs=1e-5)
    assert largest_difference(both.weights, one.weights) < 1e-4
    files = {path.name for path in (two / which).iterdir()}
    assert files == {LAST, LOG} | ({"best.safetensors"} if RUNS[name][1].keep == "best" else set())
    lines = (two / which / LOG).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == both.progress.curve  # each told once


def test_a_stopped_run_of_two_processes_goes_on_with_the_same_dropout(two: Path) -> None:
    whole, torn = last(two / "dropout"), last(two / "torn" / "dropout")
    assert torn.progress.step == STEPS
    assert largest_difference(torn.weights, whole.weights) == 0
    assert largest_difference(whole.weights, last(two / "adafactor").weights) > 0.01
    split = last(two / "split" / "torn" / "dropout")  # split, then whole in each, then split
    assert largest_difference(split.weights, whole.weights) < 1e-4


def test_one_process_goes_on_from_a_checkpoint_of_two_and_they_from_its_own(
    two: Path, tmp_path: Path
) -> None:
    run(tmp_path, CLIPPED, STEPS + 4)
    whole = last(tmp_path / CLIPPED)
    for name in ("", "split"):
        folder = tmp_path / f"on{name}" / CLIPPED
        folder.mkdir(parents=True)
        (folder / LAST).write_bytes((two / name / CLIPPED / LAST).read_bytes())
        run(folder.parent, CLIPPED, STEPS + 4)
        assert largest_difference(last(folder).weights, whole.weights) < 1e-4
    begun = last(two.with_name("begun") / CLIPPED)
    assert largest_difference(begun.weights, last(two / CLIPPED).weights) < 1e-4


def test_the_command_under_torchrun(tmp_path: Path, monkeypatch, capsys) -> None:
    in_two_processes(command, tmp_path / "two")
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    assert main(CLI) == 0
    shown = capsys.readouterr().out
    told = (tmp_path / "two" / "out0").read_text(encoding="utf-8")
    assert "4 steps" in told and told.splitlines()[-2:] == shown.splitlines()[-2:]
    assert (tmp_path / "two" / "out1").read_text(encoding="utf-8") == ""
    one, both = (last(tmp_path / name / "run") for name in ("one", "two"))
    assert one.identity == both.identity  # the same run, however many train it
    assert largest_difference(both.weights, one.weights) < 1e-4
    files = {path.name for path in (tmp_path / "two" / "run").iterdir()}
    assert files == {LAST, LOG, "run.json", "lock"}
