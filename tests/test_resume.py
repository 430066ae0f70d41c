"""Killed at any moment and called again, a run ends as if it had never stopped; bad files told."""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_runs import EVEN, STEPS, adamw, resumable_run, small_data, t5

from mnmt_repro.errors import InputError
from mnmt_repro.interchange.folder import weight_files
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import Progress, load_checkpoint, read_progress, save_checkpoint
from mnmt_repro.training.loop import TrainingDiverged, train
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig
from mnmt_repro.upgrading.recipe import upgrade
from mnmt_repro.upgrading.start import load_upgraded, save_upgraded


def without_seconds(points: list[dict]) -> list[dict]:
    return [{key: value for key, value in point.items() if key != "seconds"} for point in points]


def log_of(folder: Path) -> list[dict]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return without_seconds([json.loads(line) for line in lines])


def test_killed_at_random_moments_and_restarted_the_weights_are_the_same(tmp_path: Path) -> None:
    # A server process that has imported torch once forks the runs; a SIGKILL to one is a real one.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["small_runs", "torch._dynamo"])  # what optimisers import

    def start(folder: Path, checkpoint_seconds: float):
        process = context.Process(target=resumable_run, args=(str(folder), checkpoint_seconds))
        process.start()
        return process

    whole, torn = tmp_path / "whole", tmp_path / "torn"
    start(whole, 60.0).join()

    def step() -> int:
        saved = torn / "last.safetensors"
        return read_progress(saved).step if saved.exists() else 0

    # A kill waits for progress, not for a time, so a busy machine kills at the same places.
    moments, reached = random.Random(0), []
    for _ in range(6):
        process = start(torn, 0.02)
        goal = step() + moments.choice((0, 1, 4, 8))  # 0: while it starts
        while process.is_alive() and step() < goal:
            time.sleep(0.001)
        process.join(moments.uniform(0, 0.03))
        if process.exitcode is not None:
            break
        process.kill()
        process.join()
        reached.append(step())
    else:
        process = start(torn, 0.02)
        process.join()
    assert process.exitcode == 0
    assert len(reached) >= 2
    assert any(0 < step < STEPS for step in reached)  # at least one run went on from the middle
    assert reached == sorted(reached)

    for name in ("last.safetensors", "best.safetensors"):
        expected, found = load_file(whole / name), load_file(torn / name)
        assert expected.keys() == found.keys()
        for key, value in expected.items():  # weights, optimiser and random state
            assert torch.equal(value, found[key]), f"{name}: {key}"
    expected, found = (load_checkpoint(f / "last.safetensors").progress for f in (whole, torn))
    assert without_seconds(found.curve) == without_seconds(expected.curve)
    assert (found.pair_tokens, found.position, found.best) == (
        expected.pair_tokens, expected.position, expected.best,
    )  # fmt: skip
    assert log_of(torn) == log_of(whole) == without_seconds(expected.curve)
    leftovers = {path.name for path in torn.iterdir() if not path.name.startswith(".")}
    assert leftovers == {"last.safetensors", "best.safetensors", "log.jsonl"}


def go(folder: Path, **options):
    settings = {"seed": 1, "identity": "this", "progress_bar": False}
    config = options.pop("config", None) or adamw(steps=4)
    return train(
        options.pop("model", None) or t5(), config, small_data(), EVEN, folder,
        **{**settings, **options},
    )  # fmt: skip


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    _, first = go(tmp_path)
    before = (tmp_path / "last.safetensors").read_bytes()
    model, again = go(tmp_path)
    assert again == first
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert not model.training


@pytest.mark.parametrize("kind", ["adamw", "adafactor"])
def test_killed_on_a_ramp_an_upgraded_model_goes_on_along_it(
    tmp_path: Path, monkeypatch, kind: str
) -> None:
    """The factor of a step is that step's, and the state carried over is put in but once."""
    config = adamw(steps=8, optimiser=kind, learning_rate=0.05)
    go(tmp_path / "old", config=adamw(steps=3, optimiser=kind, learning_rate=0.05))
    start = tmp_path / "start.safetensors"
    changes = UpgradeConfig(
        wider=2,
        deeper=DepthConfig(encoder=1),
        gamma_old=Ramp(start=0.05, end=0.5, steps=7),
        gamma_new=2.0,
    )
    old = load_checkpoint(tmp_path / "old" / "last.safetensors")
    save_upgraded(start, upgrade(old, changes))

    def train_on(folder: Path) -> dict[str, torch.Tensor]:
        begun = load_upgraded(start)
        go(
            folder, config=config, model=begun.model, prepare=begun.prepare,
            schedule_start=begun.schedule_start, checkpoint_seconds=0.0,
        )  # fmt: skip
        return load_file(folder / "last.safetensors")

    whole = train_on(tmp_path / "whole")
    assert whole["optimiser.-1.steps"] == 8
    assert whole["optimiser.0.step"] == 3 + 8

    plain, calls = Transformer.loss, []

    def dying(self: Transformer, *arguments) -> torch.Tensor:
        calls.append(1)
        if len(calls) in (3, 7):
            raise KeyboardInterrupt
        return plain(self, *arguments)

    monkeypatch.setattr(Transformer, "loss", dying)
    for done in (2, 5):
        with pytest.raises(KeyboardInterrupt):
            train_on(tmp_path / "torn")
        assert load_checkpoint(tmp_path / "torn" / "last.safetensors").progress.step == done
    torn = train_on(tmp_path / "torn")
    assert torn.keys() == whole.keys()
    for key, value in whole.items():
        assert torch.equal(value, torn[key]), key


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "but not a checkpoint of mnmt-repro"),
        ({"model": '{"depth": 3}', "progress": "{}"}, "was written by another version"),
        ({"model": "{", "progress": "{}"}, "was written by another version"),
    ],
)
def test_a_checkpoint_of_another_program_or_version_is_told_apart(
    tmp_path: Path, metadata: dict[str, str], message: str
) -> None:
    path = tmp_path / "last.safetensors"
    save_file({"model.x": torch.zeros(1)}, path, {"identity": "x", **metadata})
    for read in (load_checkpoint, read_progress):
        with pytest.raises(InputError, match=message):
            read(path)


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    go(tmp_path)
    with pytest.raises(InputError, match=r"last\.safetensors belongs to another run"):
        go(tmp_path, identity="that")
    with pytest.raises(InputError, match="belongs to another run"):
        go(tmp_path, model=t5(d_model=8))


def test_a_loss_that_is_no_number_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    go(tmp_path)
    good = (tmp_path / "last.safetensors").read_bytes()
    with pytest.raises(TrainingDiverged) as caught:
        go(tmp_path, config=adamw(steps=40, learning_rate=1e36, warmup_steps=0))
    message = str(caught.value)
    assert str(tmp_path / "last.safetensors") in message
    assert "lower learning_rate" in message
    assert (tmp_path / "last.safetensors").read_bytes() == good
    go(tmp_path, config=adamw(steps=6))  # from which a gentler run goes on


def test_weights_that_are_no_numbers_are_never_saved(tmp_path: Path, monkeypatch) -> None:
    """A gradient may overflow where the loss does not: the step after it is the first to show."""
    calls, plain = [], Transformer.loss

    def overflowing(self: Transformer, *arguments) -> torch.Tensor:
        calls.append(1)
        loss = plain(self, *arguments)
        if len(calls) == 3:
            loss.register_hook(lambda gradient: gradient * float("nan"))
        return loss

    monkeypatch.setattr(Transformer, "loss", overflowing)
    with pytest.raises(TrainingDiverged):
        go(tmp_path, config=adamw(steps=10), checkpoint_seconds=0.0)
    kept = load_checkpoint(tmp_path / "last.safetensors")
    assert kept.progress.step == 2
    assert all(value.isfinite().all() for value in kept.weights.values())


def test_a_truncated_checkpoint_is_told(tmp_path: Path) -> None:
    go(tmp_path)
    path = tmp_path / "last.safetensors"
    whole = path.read_bytes()
    for keep in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(InputError, match=r"cannot read the checkpoint .*last\.safetensors"):
            go(tmp_path)
        with pytest.raises(InputError, match=f"cannot read the checkpoint {path}"):
            read_progress(path)


SWAP = """
import itertools, os, sys
path, *others = sys.argv[1:]
for other in itertools.cycle(others):
    os.link(other, path + ".new")
    os.replace(path + ".new", path)
"""


def save_ones(path: str) -> None:
    """A checkpoint whose weights are all one, with odd characters in its metadata."""
    model = Transformer(t5())
    for parameter in model.parameters():
        torch.nn.init.ones_(parameter)
    save_checkpoint(Path(path), model, Progress(), identity='a "b" \\ \n\x01\x7f é\u2028')


def test_equal_checkpoints_have_equal_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / str(i) for i in range(9)]
    for path in paths[1:]:
        save_ones(str(path))
    other = multiprocessing.get_context("spawn").Process(target=save_ones, args=(str(paths[0]),))
    other.start()
    other.join()
    assert len({path.read_bytes() for path in paths}) == 1
    with safe_open(str(paths[0]), framework="pt") as file:
        assert file.metadata()["identity"] == 'a "b" \\ \n\x01\x7f é\u2028'
    assert all((weight == 1).all() for weight in load_checkpoint(paths[0]).weights.values())


READERS = {
    "checkpoint": lambda path: load_checkpoint(path).weights,
    "folder": lambda path: {
        name: file.read(name)[name] for name, file in weight_files(path.parent).items()
    },
}


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_replaced_while_it_is_read_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch, reader: str
) -> None:
    monkeypatch.setattr("mnmt_repro.training.checkpoint.check_shapes", lambda *_: {})  # slow
    path, sizes = tmp_path / "model.safetensors", {}
    for width in (8, 16):
        model = Transformer(t5(d_model=width))
        for parameter in model.parameters():
            torch.nn.init.constant_(parameter, width)
        sizes[width] = sum(each.numel() for each in model.state_dict().values())
        save_checkpoint(tmp_path / f"{width}", model, Progress(), identity="")
    path.hardlink_to(tmp_path / "16")
    command = [sys.executable, "-c", SWAP, path, tmp_path / "8", tmp_path / "16"]
    with subprocess.Popen(command) as writer:
        try:
            for _ in range(500):
                found = torch.cat([tensor.flatten() for tensor in READERS[reader](path).values()])
                assert set(found.tolist()) == {width := found[0].item()}
                assert len(found) == sizes[width]
        finally:
            writer.kill()


def test_a_checkpoint_without_the_state_of_a_parameter_is_told(tmp_path: Path) -> None:
    go(tmp_path)
    path = tmp_path / "last.safetensors"
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata()
    for lacking, told in (("optimiser.1.step", "does not fit"), ("optimiser.1.", "lacks")):
        kept = {name: value for name, value in load_file(path).items() if lacking not in name}
        save_file(kept, path, metadata)
        with pytest.raises(InputError, match=told):
            go(tmp_path, config=adamw(steps=5))
