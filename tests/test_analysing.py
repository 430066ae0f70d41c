"""Analyses of finished runs: what is made of which, by other ways to the same numbers, and kept."""

from __future__ import annotations

import json
import shutil
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import PAIRS, t5
from test_sweep import InThisProcess, sweep_into
from test_upgrade_sweep import PARENT, child_of, generated

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts import analysed as analysed_module
from mnmt_repro.papers.cohorts import catalogue
from mnmt_repro.papers.cohorts.analysed import analyses_of
from mnmt_repro.runs import data as data_module
from mnmt_repro.runs import sweep as sweep_module
from mnmt_repro.runs.analysing import analyse
from mnmt_repro.runs.spec import RunSpec, Upgrade
from mnmt_repro.upgrading.config import UpgradeConfig, WidthConfig

QUIET = UpgradeConfig(wider=2.0, width=WidthConfig(noise=0.0), gamma_old=0.5)
SHARE = 0.25
WIDE = child_of(PARENT, QUIET, upgrade=Upgrade(parent=PARENT, config=QUIET, fisher_share=SHARE))
GATED = generated(model=t5(), mixture=Mixture.two(*PAIRS, 0.5))
WIDENED = frozenset({PARENT.run_id, GATED.run_id})


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Few test sentences, and what is declared of the runs here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_module, "CONLANG_TEST_SENTENCES", 50)
        patch.setattr(analysed_module, "widened_runs", lambda tier: WIDENED)
        yield


@pytest.fixture(scope="module")
def trained(quick, tmp_path_factory) -> Path:
    """`store` and `runs` of a parent, its wide child, and a gated model."""
    folder = tmp_path_factory.mktemp("trained")
    assert sweep_into(folder / "store", folder / "runs", [WIDE, GATED], InThisProcess()) == []
    return folder


def stored(trained: Path, spec: RunSpec) -> dict[str, Any]:
    return {c["run"]["run_id"]: c for c in results.load_runs(trained / "store")}[spec.run_id]


def analysed(trained: Path, spec: RunSpec) -> dict[str, Any]:
    run = stored(trained, spec)["run"]
    names = {spec.run_id: analyses_of(spec)}
    return analyse(spec, trained / "runs" / spec.run_id, run, names=names)


@pytest.fixture(scope="module")
def of_wide(trained: Path) -> dict[str, Any]:
    return analysed(trained, WIDE)


def values(content: dict[str, Any], analysis: str) -> dict[tuple[str, ...], float]:
    rows = [row for row in content["rows"] if row["analysis"] == analysis]
    keys = [name for name in ("layer", "block", "pair") if any(row[name] for row in rows)]
    return {tuple(row[name] for name in keys): row["value"] for row in rows}


# --- by other ways ------------------------------------------------------------------------------


def test_each_analysis_has_its_rows(trained: Path, of_wide: dict[str, Any]) -> None:
    """What their functions compute, `test_upgrading_analyses` tests."""
    assert {row["analysis"] for row in of_wide["rows"]} == {*analyses_of(WIDE), "threshold"}
    assert values(of_wide, "substituted").keys() == {(PAIRS[0],)}
    blocks = ("old", "new", "between")
    layers = {(layer, block) for layer in ("encoder.0", "decoder.0") for block in blocks}
    assert values(of_wide, "moved").keys() == layers
    bins = {float(edge): share for (edge,), share in values(of_wide, "fisher").items()}
    [(share, threshold)] = values(of_wide, "threshold").items()
    above = sum(share for edge, share in bins.items() if edge > threshold)
    around = max(edge for edge in bins if edge <= threshold)
    assert share == ("0.25",) and above <= SHARE <= above + bins[around]
    # Of a gated layer, neither the norm nor shared units keep the function.
    for spec, changed in ((PARENT, {"none"}), (GATED, {"frobenius", "none"})):
        rises = values(analysed(trained, spec), "widened")
        moved = {block for (block, _), rise in rises.items() if abs(rise) > 1e-4}
        assert moved >= {f"{name}, noise 0" for name in changed}
        kept = {block for (block, _), rise in rises.items() if abs(rise) < 1e-5}
        assert "function, noise 0" in kept and ("function-shared, noise 0" in kept) == (
            spec is PARENT
        )


# --- the store ----------------------------------------------------------------------------------


def test_analyses_are_written_once_and_read_again(
    trained: Path, of_wide: dict[str, Any], tmp_path: Path
) -> None:
    path = results.write_analyses(of_wide, corpus="conlang-test", root=tmp_path)
    assert path == tmp_path / "conlang-test" / "analyses" / f"{WIDE.run_id}.json"
    before = path.read_bytes()
    results.write_analyses(of_wide, corpus="conlang-test", root=tmp_path)  # nothing happens
    assert path.read_bytes() == before and json.loads(path.read_text()) == {"schema": 1, **of_wide}
    frame = results.load(root=trained / "store")
    found = results.load_analyses(frame, root=tmp_path)
    assert len(found) == len(of_wide["rows"])
    assert set(found["run_id"]) == {WIDE.run_id} and set(found["commit"]) == {of_wide["commit"]}
    others = {**of_wide, "rows": of_wide["rows"][:-1]}
    with pytest.raises(InputError, match="stored already with another content"):
        results.write_analyses(others, corpus="conlang-test", root=tmp_path)
    one = of_wide["rows"][0]
    for changes, message in (
        ({"run_id": "other"}, r"holds analyses/other\.json"),
        ({"rows": [one | {"value": "1"}]}, r"rows\[0\].value must be a valid number"),
    ):
        path.write_text(json.dumps({"schema": 1, **of_wide, **changes}), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            results.load_analyses(frame, root=tmp_path)


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def command(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`sweep mine --analyse` over parent, child and a run without analyses, in this process."""
    shutil.copytree(trained / "store", tmp_path / "store")
    specs = (PARENT, WIDE, replace(GATED, seed=9))
    cohort = types.SimpleNamespace(runs=lambda: iter(specs), decoded=lambda: iter(specs))
    monkeypatch.setattr(catalogue, "find_cohort", lambda name, tier: cohort)
    monkeypatch.setattr(sweep_module, "process_pool", lambda workers: InThisProcess())

    def run(*options: str, runs: Path = trained / "runs") -> int:
        folders = ["--runs", str(runs), "--results", str(tmp_path / "store")]
        return main(["sweep", "mine", "--analyse", *folders, *options])

    return run


def made(store: Path) -> set[str]:
    return {path.stem for path in store.glob("*/analyses/*.json")}


def test_the_command_makes_what_is_missing(command, tmp_path, capsys) -> None:
    store = tmp_path / "store"
    assert command("--dry-run") == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 trained, 0 analysed before, 2 to analyse, 0 without a checkpoint" in out
    assert ": overlap, substituted, moved, fisher" in out and not made(store)
    assert command() == 0
    assert made(store) == {PARENT.run_id, WIDE.run_id}
    # What was lost is made again, and nothing else.
    (store / "conlang-test" / "analyses" / f"{WIDE.run_id}.json").unlink()
    assert command() == 0
    assert "2 runs: 2 trained, 1 analysed before, 1 to analyse" in capsys.readouterr().out
    assert made(store) == {PARENT.run_id, WIDE.run_id}
