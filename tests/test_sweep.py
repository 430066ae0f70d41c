"""Sweeps: many runs at once, skipped when done, stored once, not held up by one that fails."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import Executor
from pathlib import Path

import pytest
from small_runs import PAIRS, adamw
from test_experiments import tiny_spec

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.runs import sweep as sweep_module
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.sweep import (
    DEFAULT_SECONDS_PER_COST,
    Estimate,
    InThisProcess,
    process_pool,
    run_lock,
    sweep,
)


def grid() -> list[RunSpec]:
    return [tiny_spec(mixture=Mixture.two(*PAIRS, p)) for p in (0.0, 0.5, 1.0)]


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


def test_each_run_is_stored_once_and_a_done_one_is_skipped(tmp_path: Path) -> None:
    specs = grid()
    calls: list[str] = []
    done = {specs[1].run_id}

    def is_done(spec: RunSpec) -> bool:
        return spec.run_id in done

    for _ in range(2):
        failures = sweep(
            [*specs, *specs],  # cohorts share runs
            is_done=is_done,
            store=lambda content: calls.append(content["run"]["run_id"]),
            runs_folder=tmp_path,
            executor=InThisProcess(),
            progress_bar=False,
        )
        assert failures == []
        assert sorted(calls) == sorted([specs[0].run_id, specs[2].run_id])
        done.update(calls)


def test_without_a_terminal_each_run_is_a_line_of_the_log(tmp_path: Path, capsys) -> None:
    specs = grid()

    def work(spec: RunSpec, folder: Path, device: str) -> dict:
        if spec == specs[1]:
            raise InputError("no text")
        return {}

    sweep(
        specs, is_done=lambda spec: False, store=lambda content: None, runs_folder=tmp_path,
        executor=InThisProcess(), at_once=1, work=work,
    )  # fmt: skip
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("1/3 runs, about ") and first.endswith(f"left; done: {specs[0].label}")
    assert "no text" in second
    assert third == f"3/3 runs, about 00:00 left; done: {specs[2].label}"


def test_a_store_that_refuses_a_run_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    specs = grid()[:2]
    kept: list[str] = []

    def store(content: dict) -> None:
        if content["run"]["run_id"] == specs[0].run_id:
            raise InputError("the disk is full")
        kept.append(content["run"]["run_id"])

    failures = sweep(
        specs, is_done=lambda spec: False, store=store, runs_folder=tmp_path,
        executor=InThisProcess(), progress_bar=False,
    )  # fmt: skip
    assert kept == [specs[1].run_id]
    assert len(failures) == 1 and "the disk is full" in failures[0]


def test_a_run_at_work_is_not_started_twice(tmp_path: Path) -> None:
    spec = grid()[0]
    refused = pytest.raises(InputError, match="another process is at work")
    with run_lock(tmp_path / spec.run_id), refused:
        sweep_module._work(spec, tmp_path / spec.run_id, "cpu")
    with run_lock(tmp_path / spec.run_id):  # free again
        pass


def test_estimates_follow_finished_runs() -> None:
    small, large = tiny_spec(), tiny_spec(training=adamw(steps=50, curve_points=2))
    assert large.cost == pytest.approx(10 * small.cost)
    assert Estimate.from_runs([]).seconds(small) == small.cost * DEFAULT_SECONDS_PER_COST
    # 3 s for the small one, so 30 for the other; both together keep the ratio.
    assert Estimate.from_runs([(small, 3.0)]).seconds(large) == pytest.approx(30.0)
    assert Estimate.from_runs([(small, 3.0), (large, 30.0)]).seconds(small) == pytest.approx(3.0)


def test_the_command_lists_cohorts_and_missing_runs(tmp_path: Path, capsys) -> None:
    assert main(["sweep"]) == 0
    assert "webtech-en-dezh        72 runs" in capsys.readouterr().out
    command = ["sweep", "conlang-sim0", "--dry-run", "--results", str(tmp_path / "none")]
    assert main([*command, "--runs", str(tmp_path / "runs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 73
    assert "72 of 72 runs are missing" in lines[-1]
    assert not (tmp_path / "runs").exists()
    # Two cohorts that share their eight single-pair runs.
    both = ["sweep", "webtech-en-dezh", "webtech-en-defr", "--dry-run"]
    assert main([*both, "--results", str(tmp_path / "none")]) == 0
    assert "136 of 136 runs are missing" in capsys.readouterr().out


def test_the_command_names_what_there_is(tmp_path: Path, capsys) -> None:
    assert main(["sweep", "nothing"]) == 2
    error = capsys.readouterr().err
    assert "no cohort named 'nothing'; there are webtech-en-dezh" in error
    assert error.count("\n") == 1
    assert main(["sweep", "conlang-sim0", "--dry-run", "--only-seed", "9"]) == 2
    assert "the seeds there are [1]" in capsys.readouterr().err
    assert main(["sweep", "conlang-sim0", "--workers", "0"]) == 2
    assert "--workers 0" in capsys.readouterr().err
