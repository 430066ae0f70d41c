"""Analyses of finished runs: what is made of which, by other ways to the same numbers, and kept."""

from __future__ import annotations

import json
import shutil
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import PAIRS, t5
from test_sweep import InThisProcess, sweep_into
from test_upgrade_sweep import PARENT, child_of, generated

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.papers.cohorts import analysed as analysed_module
from mnmt_repro.papers.cohorts import catalogue
from mnmt_repro.papers.cohorts.analysed import analyses_of
from mnmt_repro.results import sentences
from mnmt_repro.results.sentences import SentenceLosses
from mnmt_repro.runs import analysing
from mnmt_repro.runs import data as data_module
from mnmt_repro.runs import sweep as sweep_module
from mnmt_repro.runs.analysing import analyse, score_by_sentence
from mnmt_repro.runs.data import load_test_sets
from mnmt_repro.runs.spec import RunSpec, Upgrade
from mnmt_repro.training.checkpoint import load_checkpoint
from mnmt_repro.training.config import LAST
from mnmt_repro.upgrading.config import UpgradeConfig, WidthConfig

QUIET = UpgradeConfig(wider=2.0, width=WidthConfig(noise=0.0), gamma_old=0.5)
SHARE = 0.25
WIDE = child_of(PARENT, QUIET, upgrade=Upgrade(parent=PARENT, config=QUIET, fisher_share=SHARE))
GATED = generated(model=t5(), mixture=Mixture.two(*PAIRS, 0.5))
WIDENED = frozenset({PARENT.run_id, GATED.run_id})
SENTENCES = 50


@pytest.fixture(autouse=True, scope="module")
def quick():
    """One thread, few test sentences, and what is declared of the runs here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_module, "CONLANG_TEST_SENTENCES", SENTENCES)
        patch.setattr(analysed_module, "widened_runs", lambda tier: WIDENED)
        patch.setattr(analysed_module, "named_runs", lambda tier: {PARENT.run_id, WIDE.run_id})
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(before)


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
    return analyse(spec, trained / "runs" / spec.run_id, run, analyses_of(spec))


@pytest.fixture(scope="module")
def of_wide(trained: Path) -> dict[str, Any]:
    return analysed(trained, WIDE)


def values(content: dict[str, Any], analysis: str) -> dict[tuple[str, ...], float]:
    rows = [row for row in content["rows"] if row["analysis"] == analysis]
    keys = [name for name in ("layer", "block", "pair") if any(row[name] for row in rows)]
    return {tuple(row[name] for name in keys): row["value"] for row in rows}


def last(trained: Path, spec: RunSpec) -> Transformer:
    return load_checkpoint(trained / "runs" / spec.run_id / LAST).model().eval()


@torch.no_grad()
def nats_of(model: Transformer, text: EncodedPair, row: int) -> tuple[float, int]:
    """Of one sentence, by a softmax over all pieces; and its number of target tokens."""
    source, target = (torch.from_numpy(s.flat).long() for s in text.take(np.array([row])))
    scores = model(source[None], target[None, :-1]).log_softmax(-1)[0]
    return -float(scores[torch.arange(len(target) - 1), target[1:]].sum()), len(target) - 1


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


def test_losses_of_single_sentences_add_up_to_the_stored_loss(trained: Path) -> None:
    done = stored(trained, WIDE)
    folder = trained / "runs" / WIDE.run_id
    losses = score_by_sentence(WIDE, folder, done["run"])
    assert (losses.test_set, losses.most, list(losses.nats)) == ("indomain", 500, list(PAIRS))
    for row in done["rows"]:
        nats, tokens = losses.nats[row["pair"]], losses.tokens[row["pair"]]
        assert len(nats) == row["sentences"] == SENTENCES
        assert tokens.sum() == row["test_tokens"]
        assert nats.sum() / tokens.sum() == pytest.approx(row["cross_entropy"], rel=1e-6)
    few = score_by_sentence(WIDE, folder, done["run"], most=3)
    text, model = load_test_sets(WIDE, PAIRS[1])[0].text, last(trained, WIDE)
    for i, row in enumerate((0, 24, 49)):  # of fifty: 24.5, rounded to the even
        nats, tokens = nats_of(model, text, row)
        assert few.nats[PAIRS[1]][i] == pytest.approx(nats, rel=1e-5)
        assert few.tokens[PAIRS[1]][i] == tokens


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


def losses(run_id: str = "run-a", **changes: Any) -> SentenceLosses:
    fields: dict[str, Any] = {
        "run_id": run_id,
        "commit": "c0ffee",
        "test_set": "indomain",
        "most": 500,
        "nats": {
            "eng-xho": np.array([1.0, 2.5, 400.125], np.float32),
            "xho-eng": np.array([0.1], np.float32),
        },
        "tokens": {"eng-xho": np.array([1, 2, 300]), "xho-eng": np.array([4])},
    }
    return SentenceLosses(**{**fields, **changes})


def test_sentence_losses_are_written_once_and_read_again(tmp_path: Path) -> None:
    path = results.write_sentence_losses(losses(), corpus="software25", root=tmp_path)
    assert path == tmp_path / "software25" / "sentences" / "run-a.npz"
    found = results.load_sentence_losses(["run-a", "run-c"], root=tmp_path)["run-a"]
    assert (found.run_id, found.commit, found.test_set, found.most) == (
        "run-a", "c0ffee", "indomain", 500,
    )  # fmt: skip
    assert list(found.nats) == list(found.tokens) == ["eng-xho", "xho-eng"]
    assert found.nats["eng-xho"].tolist() == [1.0, 2.5, 400.125]  # multiples of 1 / 1024 are exact
    assert found.nats["xho-eng"].tolist() == [102 / 1024]
    assert found.nats["xho-eng"].dtype == np.float32
    assert found.tokens["eng-xho"].dtype == np.int16
    assert found.tokens["eng-xho"].tolist() == [1, 2, 300]
    before = path.read_bytes()
    results.write_sentence_losses(losses(), corpus="software25", root=tmp_path)
    with pytest.raises(InputError, match="stored already with another content"):
        results.write_sentence_losses(losses(most=499), corpus="software25", root=tmp_path)
    assert path.read_bytes() == before


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def command(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`sweep mine --analyse` over parent, child and an unnamed run, in this process."""
    shutil.copytree(trained / "store", tmp_path / "store")
    unnamed = replace(GATED, seed=9)
    specs = (PARENT, WIDE, unnamed)
    cohort = types.SimpleNamespace(runs=lambda: iter(specs), decoded=lambda: iter(specs))
    monkeypatch.setattr(catalogue, "find_cohort", lambda name, tier: cohort)
    monkeypatch.setattr(sweep_module, "process_pool", lambda workers: InThisProcess())

    def run(*options: str, runs: Path = trained / "runs") -> int:
        folders = ["--runs", str(runs), "--results", str(tmp_path / "store")]
        return main(["sweep", "mine", "--analyse", *folders, *options])

    return run


def made(store: Path) -> set[str]:
    found = [*store.glob("*/analyses/*"), *store.glob("*/sentences/*")]
    return {f"{path.parent.name}/{path.name}" for path in found}


ALL_MADE = {
    f"{folder}/{spec.run_id}.{suffix}"
    for folder, suffix in (("analyses", "json"), ("sentences", "npz"))
    for spec in (PARENT, WIDE)
}


def test_the_command_makes_what_is_missing(command, tmp_path, monkeypatch, capsys) -> None:
    store = tmp_path / "store"
    assert command("--dry-run") == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 trained, 0 analysed before, 2 to analyse, 0 without a checkpoint" in out
    assert ": overlap, substituted, moved, fisher, losses by sentence" in out and not made(store)
    assert command() == 0
    assert made(store) == ALL_MADE
    # What was lost is made again, and nothing else.
    gone = store / "conlang-test" / "sentences" / f"{WIDE.run_id}.npz"
    gone.unlink()
    monkeypatch.setattr(analysing, "ANALYSES", {})
    assert command() == 0
    assert made(store) == ALL_MADE and gone.exists()
    assert command() == 0
    assert "2 runs: 2 trained, 2 analysed before, 0 to analyse" in capsys.readouterr().out
    assert sentences.read_sentence_losses(gone).run_id == WIDE.run_id
