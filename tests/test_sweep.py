"""Sweeps: many runs at once, skipped when done, stored once, not held up by one that fails."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import PAIRS, adamw
from test_experiments import tiny_spec

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.papers.cohorts import catalogue
from mnmt_repro.runs.execute import execute
from mnmt_repro.runs.lock import run_lock
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.sweep import (
    DEFAULT_SECONDS_PER_COST,
    ExecutorName,
    HandedOver,
    InThisProcess,
    executor_of,
    process_pool,
    seconds_per_cost_of,
    sweep,
)
from mnmt_repro.training.checkpoint import read_progress


def grid(steps: int | None = None) -> list[RunSpec]:
    more = {} if steps is None else {"training": adamw(steps=steps, curve_points=1)}
    return [tiny_spec(mixture=Mixture.two(*PAIRS, p), **more) for p in (0.0, 0.5, 1.0)]


def sweep_into(
    store: Path, runs: Path, specs: list[RunSpec], executor: Executor, **options
) -> list[str]:
    return sweep(
        specs,
        is_done=lambda spec: (store / spec.corpus / f"{spec.run_id}.json").exists(),
        store=lambda done: results.write_run(**done, root=store),
        runs_folder=runs,
        executor=executor,
        progress_bar=False,
        **options,
    )


def stored(store: Path) -> set[str]:
    return {content["run"]["run_id"] for content in results.load_runs(store)}


def test_an_interruption_cancels_what_may_never_begin() -> None:
    """Such as a job in the queue of a cluster."""

    class Pending(threading.Event):
        def result(self) -> None:
            assert self.wait(60)

        cancel = threading.Event.set

    task, begun = Pending(), threading.Event()

    def hand_over(*_: Any) -> Pending:  # its task is there only after the interruption
        begun.set()
        time.sleep(0.2)
        return task

    with pytest.raises(KeyboardInterrupt), HandedOver(1, hand_over) as executor:
        future = executor.submit(print)
        assert begun.wait(60)
        raise KeyboardInterrupt
    assert task.is_set() and future.result() is None


def test_an_interruption_ends_no_other_process_of_the_caller() -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    with pytest.raises(KeyboardInterrupt), process_pool(1):
        raise KeyboardInterrupt
    other.join(0.5)
    assert other.is_alive()
    other.kill()


def test_two_workers_a_failing_run_a_killed_worker_and_a_second_call(
    tmp_path: Path, capsys
) -> None:
    store, runs = tmp_path / "store", tmp_path / "runs"
    specs, broken = grid(), tiny_spec(mixture=Mixture.of({"src-zzz": 1.0}))
    with process_pool(2) as executor:
        failures = sweep_into(store, runs, [specs[0], broken, specs[1]], executor)
        assert len(failures) == 1
        assert broken.run_id in failures[0] and "no pair 'src-zzz'" in failures[0]
        assert failures[0] in capsys.readouterr().err
        assert stored(store) == {specs[0].run_id, specs[1].run_id}

        # The same workers: one is killed at work on a long run; the run before it is safe.
        long = tiny_spec(training=adamw(steps=100_000, curve_points=1))

        def kill() -> None:
            while not (runs / long.run_id / "lock").exists():
                time.sleep(0.01)
            for process in multiprocessing.active_children():
                process.kill()

        threading.Thread(target=kill).start()
        failures = sweep_into(store, runs, [specs[2], long], executor)
    assert any(long.run_id in failure for failure in failures)
    assert long.run_id not in stored(store)
    with run_lock(runs / long.run_id):  # the dead worker holds nothing
        pass
    assert sweep_into(store, runs, specs, InThisProcess()) == []
    assert stored(store) == {spec.run_id for spec in specs}


@pytest.mark.parametrize("name", ["submitit", "dask"])
def test_on_a_cluster_a_killed_worker_loses_no_run(tmp_path: Path, name: ExecutorName) -> None:
    specs, marker, done = grid(), tmp_path / "killed", []
    victim = specs[1].run_id

    def work(spec: RunSpec) -> dict[str, str]:
        if spec.run_id == victim and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"run_id": spec.run_id}

    def missing() -> list[str]:
        with executor_of(name, 1, tmp_path) as executor:
            return sweep(
                specs, is_done=lambda spec: spec.run_id in done, runs_folder=tmp_path / "runs",
                store=lambda content: done.append(content["run_id"]), executor=executor,
                progress_bar=False, work=lambda spec: partial(work, spec),
            )  # fmt: skip

    failures = missing()
    assert marker.exists()
    if name == "submitit":
        assert len(failures) == 1 and victim in failures[0] and victim not in done
        failures = missing()
    assert failures == []
    assert sorted(done) == sorted(spec.run_id for spec in specs)


def test_a_log_says_how_far_the_runs_under_way_are(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("mnmt_repro.runs.sweep.LOOK", 0.0)
    (spec, *_) = grid(steps=40)
    steps = iter(range(10))
    asked: list[dict[str, Any]] = [execute(spec, tmp_path / spec.run_id, progress_bar=False,
                                           stop=lambda: next(steps, None) is None)]  # fmt: skip
    with ThreadPoolExecutor(1) as executor:
        assert sweep([spec], is_done=lambda spec: False, store=asked.append,
                     runs_folder=tmp_path, executor=executor) == []  # fmt: skip
    assert asked[0] == {} and asked[1]["run"]["steps"] == 40
    shown = capsys.readouterr().err
    assert re.search(re.escape(spec.label) + r": 28% of its updates, .* tokens/s, .* left\n", shown)
    assert shown.count("of its updates") == 1 and "1/1 runs" in shown


def test_estimates_follow_finished_runs() -> None:
    small, large = tiny_spec(), tiny_spec(training=adamw(steps=5000, curve_points=2))
    assert seconds_per_cost_of([small], {}) == DEFAULT_SECONDS_PER_COST
    stored = {small.run_id: {"wall_seconds": 3.0}}
    pace = seconds_per_cost_of([small, large], stored)
    assert pace * small.cost == pytest.approx(3.0) and pace * large.cost > 300


@pytest.mark.parametrize("tier", ["mini", "steady"])
def test_an_estimate_without_finished_runs_is_about_what_stored_runs_took(tier: str) -> None:
    """Validations and softmax included: by tier and corpus, half of the runs within a third."""
    declared = {spec.run_id: spec for spec in catalogue.runs_of(tier)}
    ratios: dict[str, list[float]] = {}
    for content in results.load_runs():
        run = content["run"]
        if (spec := declared.get(run["run_id"])) is not None and "1 thread" in run["hardware"]:
            estimate = spec.cost * DEFAULT_SECONDS_PER_COST
            ratios.setdefault(run["corpus"], []).append(estimate / run["wall_seconds"])
    assert len(ratios) > 5
    assert all(0.6 < np.median(each) < 1.5 for each in ratios.values()), ratios


def test_the_command_lists_cohorts_and_missing_runs(tmp_path: Path, capsys) -> None:
    assert main(["sweep"]) == 0
    assert "webtech-en-dezh        72 runs" in capsys.readouterr().out
    command = ["sweep", "conlang-sim0", "--dry-run", "--results", str(tmp_path / "none")]
    assert main([*command, "--runs", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(lines) == 73
    assert f"a new folder for their rows: {tmp_path / 'none'}" in shown.err
    assert "72 of 72 runs are missing" in lines[-1]
    assert not (tmp_path / "runs").exists()
    # Two cohorts that share their eight single-pair runs.
    both = ["sweep", "webtech-en-dezh", "webtech-en-defr", "--dry-run"]
    assert main([*both, "--results", str(tmp_path / "none")]) == 0
    assert "136 of 136 runs are missing" in capsys.readouterr().out


def test_the_command_names_what_there_is(capsys) -> None:
    assert main(["sweep", "nothing"]) == 2
    error = capsys.readouterr().err
    assert "no cohort named 'nothing'; there are webtech-en-dezh" in error
    assert error.count("\n") == 1


WAITING = """\
import os, sys, time
from pathlib import Path

from mnmt_repro.runs.sweep import process_pool


def wait(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)


if __name__ == "__main__":
    with process_pool(1) as pool:
        pool.submit(wait, sys.argv[1]).result()
"""


def test_a_worker_ends_with_the_sweep_that_would_store_its_run(tmp_path: Path) -> None:
    (tmp_path / "sweeping.py").write_text(WAITING)
    command = [sys.executable, str(tmp_path / "sweeping.py"), str(tmp_path / "pid")]
    with subprocess.Popen(command) as parent:
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            assert parent.poll() is None
            time.sleep(0.05)
        parent.kill()
    state = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    end = time.monotonic() + 30
    while not (gone := _has_ended(state)) and time.monotonic() < end:
        time.sleep(0.05)
    assert gone


GRID = """\
conlang: {concepts: 8, syllables: 6}
pairs: [src-aaa]
sizes: [8, 12, 16]
training: {steps: 1000000, batch_tokens: 64}
"""


def test_a_sweep_that_is_asked_to_stop_saves_its_runs(tmp_path: Path) -> None:
    (tmp_path / "grid.yml").write_text(GRID)
    command = [sys.executable, "-m", "mnmt_repro", "sweep", "grid.yml", "--workers", "2"]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, text=True, **pipes
    ) as parent:
        while len(list(tmp_path.glob("runs/*/run.json"))) < 2:
            assert parent.poll() is None
            time.sleep(0.05)
        os.killpg(parent.pid, signal.SIGTERM)
        shown, message = parent.communicate(timeout=300)
    assert parent.returncode == 130 and "next:" not in shown
    assert "stopping after this step" in message
    assert "runs: stopped, and saved; the same command goes on from there" in message
    saved = list(tmp_path.glob("runs/*/last.safetensors"))
    assert len(saved) == 2 and all(read_progress(each).step > 0 for each in saved)
    assert not list(tmp_path.glob("runs/.stop*"))


def _has_ended(state: Path) -> bool:
    """Whether a process is no more, or only waits to be collected."""
    try:
        return state.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
