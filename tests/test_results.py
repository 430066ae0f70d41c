"""The store of results: whole files only, checked fields, runs shared by cohorts."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mnmt_repro import results
from mnmt_repro.errors import InputError
from mnmt_repro.results import files, frames
from mnmt_repro.runs.spec import digest

MEMBERSHIP = {
    digest({"seed": 1}): ("webtech-en-dezh", "webtech-en-defr"),
    digest({"seed": 2}): ("webtech-en-dezh",),
}


def content(run_id: str = "run-a", **run: Any) -> dict[str, Any]:
    """The three parts of a well-formed file."""
    config = run.get("config", {"seed": 1})
    return {
        "run": {
            "run_id": run_id,
            "config_hash": digest(config),
            "data_hash": "data-1",
            "commit": "0123456789abcdef",
            "code_version": "corpora1-model1-training1-evaluation1",
            "tier": "mini",
            "corpus": "webtech",
            "mixture": {"eng-deu": 0.3, "eng-zho": 0.7},
            "size": "d16x1",
            "n_non_embedding": 9_000,
            "n_total": 140_000,
            "steps": 1_000,
            "target_tokens": 6_000_000,
            "batch_tokens": 6_000,
            "seed": 1,
            "learning_rate": 0.01,
            "wall_seconds": 90.5,
            "hardware": "2 CPU cores",
            "flops": 1.5e12,
            "torch": "2.13.0",
            "vocabulary_hash": "voc-1",
            "started": "2026-01-01T00:00:00+00:00",
            "config": config,
            **run,
        },
        "rows": [
            {
                "pair": pair,
                "p": p,
                "token_share": p,
                "pair_target_tokens": int(6e6 * p),
                "passes": 1.25,
                "test_set": "indomain",
                "domain": "all",
                "cross_entropy": loss,
                "test_tokens": 30_000,
                "sentences": 2_000,
            }
            for pair, p, loss in (("eng-deu", 0.3, 4.5), ("eng-zho", 0.7, 4.25))
        ],
        "curve": [
            {
                "step": step,
                "target_tokens": 6_000 * step,
                "pair": "eng-deu",
                "cross_entropy": 6.0 - step / 1_000,
                "train_loss": 6.5,
                "seconds": 0.5,
                "learning_rate": 0.002,
            }
            for step in (500, 1_000)
        ],
    }


def write(root: Path, parts: dict[str, Any]) -> Path:
    return results.write_run(parts["run"], parts["rows"], parts["curve"], root=root)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    parts = content()
    path = write(tmp_path, parts)
    assert path == tmp_path / "webtech" / "run-a.json"
    assert results.read_run(path) == {"schema": 1, **parts}
    assert results.load_runs(tmp_path) == [{"schema": 1, **parts}]
    assert [p.name for p in path.parent.iterdir()] == ["run-a.json"]  # no temporary file is left


def test_a_run_is_never_replaced(tmp_path: Path) -> None:
    parts = content()
    path = write(tmp_path, parts)
    before = path.stat().st_mtime_ns, path.read_bytes()
    write(tmp_path, parts)  # the same again: nothing happens
    changed = content(wall_seconds=91.0)
    with pytest.raises(InputError, match="run-a.*another content"):
        write(tmp_path, changed)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert len(list(path.parent.iterdir())) == 1


def _write_many(root: Path, writer: int, start: Any, outcome: Any) -> None:
    start.wait()
    for k in range(20):
        parts = content(f"run-{k:02d}", hardware=f"writer {writer}" + "x" * 50_000)
        try:
            write(root, parts)
            outcome.put((k, writer))
        except InputError:
            pass


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_concurrent_writers_neither_tear_nor_replace(tmp_path: Path) -> None:
    # A forked writer starts at once; a spawned one imports everything first.
    forks = "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    start, outcome = context.Barrier(4), context.Queue()
    writers = [
        context.Process(target=_write_many, args=(tmp_path, w, start, outcome)) for w in range(4)
    ]
    for process in writers:
        process.start()
    won = sorted(outcome.get(timeout=120) for _ in range(20))
    for process in writers:
        process.join(timeout=120)
        assert process.exitcode == 0
    assert outcome.empty()  # of four different contents for a run, one was stored
    assert [k for k, _ in won] == list(range(20))
    stored = {run["run"]["run_id"]: run["run"]["hardware"] for run in results.load_runs(tmp_path)}
    assert {k: int(stored[f"run-{k:02d}"].split()[1].rstrip("x")) for k, _ in won} == dict(won)
    assert not list(tmp_path.glob("*/.*"))


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, content())
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match=r"run-a\.json: not whole JSON"):
        results.load(root=tmp_path)


def _without(part: str, field: str) -> Callable[[dict[str, Any]], None]:
    return lambda c: (c[part] if part == "run" else c[part][1]).pop(field)


def _with(part: str, field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda c: (c[part] if part == "run" else c[part][1]).update({field: value})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("run", "seed"), r"run\.seed is missing"),
        (_without("rows", "passes"), r"rows\[1\]\.passes is missing"),
        (_with("run", "loss", 1.0), r"run\.loss is not a field of schema 1"),
        (_with("run", "steps", "many"), r"run\.steps must be a valid integer, got 'many'"),
        (_with("rows", "cross_entropy", math.nan), r"rows\[1\]\.cross_entropy must be a finite"),
        (_with("rows", "pair", "eng-deu"), r"rows\[1\] repeats eng-deu, indomain, all"),
        (
            _with("run", "tier", "huge"),
            r"run\.tier must be 'own', 'smoke', 'mini', 'steady'",
        ),
        (_with("run", "mixture", {"eng": 1.0}), r"run\.mixture\.eng.* must match pattern"),
        (_with("run", "run_id", "../x"), r"run\.run_id must match pattern"),
        (lambda c: c.update(schema=2), r"schema must be 1, got 2"),
        (lambda c: c.pop("curve"), r"curve is missing"),
    ],
)
def test_a_broken_field_is_named_on_reading_and_writing(
    tmp_path: Path, damage: Callable[[dict[str, Any]], None], message: str
) -> None:
    path = write(tmp_path, content())
    broken = {"schema": 1, **content()}
    damage(broken)
    path.write_text(json.dumps(broken))
    with pytest.raises(InputError, match=f"{path.name}.*{message}"):
        results.load(root=tmp_path)
    if broken.get("schema") == 1 and isinstance(broken.get("curve"), list):
        path.unlink()
        with pytest.raises(InputError, match=message):
            write(tmp_path, broken)
        assert not list(path.parent.iterdir())


def test_a_changed_config_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, content())
    changed = json.loads(path.read_text("utf-8"))
    changed["run"]["config"]["seed"] = 2
    path.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(InputError, match=r"run-a\.json: run\.config_hash is .*restore the file"):
        results.load_runs(tmp_path)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cohorts of the two runs of `MEMBERSHIP`."""
    from mnmt_repro.papers.cohorts import catalogue

    monkeypatch.setattr(catalogue, "membership", lambda tier: MEMBERSHIP)


def test_a_shared_run_stands_in_each_of_its_cohorts(declared: None, tmp_path: Path) -> None:
    write(tmp_path, content("run-a"))
    write(tmp_path, content("run-b", config={"seed": 2}))
    write(tmp_path, content("run-c", config={"seed": "of nobody"}))
    frame = results.load(root=tmp_path)
    found = set(zip(frame["run_id"], frame["cohort"], strict=True))
    assert found == {
        ("run-a", "webtech-en-dezh"),
        ("run-a", "webtech-en-defr"),
        ("run-b", "webtech-en-dezh"),
        ("run-c", ""),
    }
    assert len(frame) == 8  # two pairs each
    assert set(frame["mixture"]) == {"eng-deu:0.3,eng-zho:0.7"}
    assert "config" not in frame and frame["bleu"].isna().all()
    one = results.load(root=tmp_path, cohort="webtech-en-defr", p=[0.7, 0.9])
    assert list(one["pair"]) == ["eng-zho"] and one["cross_entropy"].item() == 4.25
    with pytest.raises(InputError, match="no such column to filter by: weight"):
        results.load(root=tmp_path, weight=0.5)
    for load in (results.load, results.load_curves):  # a name misspelt is no empty store
        with pytest.raises(InputError, match="reslts: no such folder of results"):
            load(root=tmp_path / "reslts")


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of two runs whose frames are in the cache."""
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(frames, "_SMALL", 0)
    store = tmp_path / "store"
    for run_id in ("run-a", "run-b"):
        write(store, content(run_id))
    results.load(root=store)
    results.load_curves(root=store)
    assert len(list((tmp_path / "cache" / "kept").iterdir())) == 2
    return store


def test_an_unchanged_store_is_read_from_the_cache(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = results.load(root=cached), results.load_curves(root=cached)
    monkeypatch.setattr(frames, "each_run", lambda root: pytest.fail("read again"))
    pd.testing.assert_frame_equal(results.load(root=cached), loaded[0])
    pd.testing.assert_frame_equal(results.load_curves(root=cached), loaded[1])


def test_without_cohorts_no_frame_is_kept(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "find_cohorts_module", lambda name: None)
    monkeypatch.setattr(frames, "kept_values", lambda *args, **given: pytest.fail("from the cache"))
    assert set(results.load(root=cached)["cohort"]) == {""}


def test_a_changed_file_is_read_again_even_with_its_old_size_and_time(cached: Path) -> None:
    path = cached / "webtech" / "run-a.json"
    before, text = path.stat(), path.read_text(encoding="utf-8")
    assert text.count('"commit": "0123') == 1
    path.write_text(text.replace('"commit": "0123', '"commit": "9876'), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    for load in (results.load, results.load_curves):
        assert set(load(root=cached, run_id="run-a")["commit"]) == {"9876456789abcdef"}


def test_added_removed_and_renamed_files_are_seen(cached: Path) -> None:
    write(cached, content("run-c"))
    assert set(results.load(root=cached)["run_id"]) == {"run-a", "run-b", "run-c"}
    (cached / "webtech" / "run-a.json").unlink()
    assert set(results.load(root=cached)["run_id"]) == {"run-b", "run-c"}
    (cached / "webtech" / "run-b.json").rename(cached / "webtech" / "run-d.json")
    with pytest.raises(InputError, match=r"run-d\.json: holds webtech/run-b\.json"):
        results.load(root=cached)


def test_curves_carry_the_pair_weight_and_both_budgets(declared: None, tmp_path: Path) -> None:
    write(tmp_path, content())
    curves = results.load_curves(root=tmp_path, cohort="webtech-en-dezh")
    assert list(curves["step"]) == [500, 1_000]
    assert list(curves["p"]) == [0.3, 0.3]
    assert list(curves["target_tokens"]) == [3_000_000, 6_000_000]
    assert set(curves["run_target_tokens"]) == {6_000_000}
    assert set(curves["run_learning_rate"]) == {0.01}


def test_the_root_is_argument_then_environment_then_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(tmp_path / "named"))
    assert results.results_root(tmp_path) == tmp_path
    assert results.results_root() == tmp_path / "named"
    monkeypatch.delenv("MNMT_REPRO_RESULTS")
    monkeypatch.setattr(files, "ROOT", tmp_path)
    assert results.results_root() == tmp_path / "data" / "results"
    with pytest.raises(InputError, match="set MNMT_REPRO_RESULTS"):
        results.load()
