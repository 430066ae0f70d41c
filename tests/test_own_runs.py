"""A user's own run goes the road of a declared one: its row, its folder and its identity."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import fails
from small_text import small_bitext, write_tsv
from test_registered_run import spec  # noqa: F401

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.runs.data import run_vocabulary
from mnmt_repro.runs.execute import execute
from mnmt_repro.runs.grid import Grid
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.trained import load_trained
from mnmt_repro.runs.training_text import hold_out
from mnmt_repro.typed_config import build
from mnmt_repro.upgrading.config import UpgradeConfig

SHORT = ["train", "--curve-points", "3", "--steps", "3"]
SMALL = [*SHORT, "--d-model", "8", "--heads", "2"]
TALKS = ["--data", "eng-deu=talks.tsv"]
OWN = [*SMALL, *TALKS, "--pieces", "330"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    text = small_bitext("eng-deu", 120)
    write_tsv(Path("talks.tsv"), "eng-deu", text.source, text.target)


def identity(folder: str) -> str:
    return json.loads(Path(folder, "run.json").read_text(encoding="utf-8"))["identity"]


def test_a_run_of_own_text_becomes_a_row() -> None:
    assert main([*OWN, "--out", "runs/talks"]) == 0
    (content,) = results.load_runs("runs/results")
    run, (row,) = content["run"], content["rows"]
    assert run["tier"] == run["corpus"] == "own" and run["steps"] == 3
    held = hold_out({"eng-deu": small_bitext("eng-deu", 120)})[1]["eng-deu"]
    assert (row["pair"], row["p"], row["test_set"]) == ("eng-deu", 1.0, "indomain")
    assert row["sentences"] == len(held)
    # The text that is held out is also what the last point of the learning curve is taken on.
    assert row["cross_entropy"] == pytest.approx(content["curve"][-1]["cross_entropy"])
    assert row["pair_target_tokens"] == run["target_tokens"] and 0 < row["passes"] < 1
    frame = results.load(root="runs/results", tier="own")
    assert frame["cross_entropy"].tolist() == [row["cross_entropy"]]
    assert results.load_curves(root="runs/results")["step"].tolist() == [1, 3]


def test_a_row_for_each_run_and_budget_and_none_twice(monkeypatch) -> None:
    for more in ([], ["--steps", "6"], ["--steps", "6"], ["--d-model", "16", "--out", "runs/b"]):
        assert main([*OWN, "--out", "runs/a", "--results", "store", *more]) == 0
    monkeypatch.setenv("MNMT_REPRO_RESULTS", "store")
    frame = results.load()
    budgets = {(row.steps, row.size) for row in frame.itertuples()}
    assert budgets == {(3, "d8x1"), (6, "d8x1"), (3, "d16x1")} and len(frame) == 3


def test_an_upgraded_run_becomes_a_row() -> None:
    assert main([*OWN, "--out", "old"]) == 0
    assert main(["upgrade", "--from", "old", "--wider", "2", "--out", "start"]) == 0
    assert main([*SHORT, *TALKS, "--continue-from", "start", "--out", "new"]) == 0
    runs = {content["run"]["size"]: content["run"] for content in results.load_runs("results")}
    assert set(runs) == {"d8x1", "d8x1ff64"}
    assert runs["d8x1ff64"]["code_version"].endswith("-upgrading1")
    origin = runs["d8x1ff64"]["config"]["own"]["continued_from"]
    assert origin["identity"] == identity("start")
    assert build(UpgradeConfig, origin["upgrade"]).wider == 2


def test_a_corpus_gives_the_pieces_and_test_set_of_a_declared_run(spec: RunSpec) -> None:  # noqa: F811
    pairs = ["--pairs", "eng-deu,deu-eng", "--weights", "0.25,0.75"]
    command = [*SMALL, "--corpus", "three", *pairs, "--pieces", "330", "--out", "run"]
    assert main(command) == 0
    (content,) = results.load_runs("results")
    assert content["run"]["vocabulary_hash"] == run_vocabulary(spec).hash
    assert content["run"]["data_hash"] == spec.data_hash
    ours = {(row["pair"], row["p"], row["test_set"]): row["sentences"] for row in content["rows"]}
    declared = execute(spec, Path("declared"), progress_bar=False)
    assert ours == {
        (row["pair"], row["p"], row["test_set"]): row["sentences"] for row in declared["rows"]
    }


def test_the_folder_of_a_declared_run_is_opened_like_a_users(spec: RunSpec, capsys) -> None:  # noqa: F811
    stored = execute(spec, Path("declared"), progress_bar=False)["rows"]
    trained = load_trained(Path("declared"))
    assert trained.weights == spec.mixture.weights and trained.tags == "both"
    assert trained.vocabulary.hash == run_vocabulary(spec).hash
    assert main(["evaluate", "declared", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == [pytest.approx({name: row[name] for name in rows[0]}) for row in stored]
    assert main(["upgrade", "--from", "declared", "--wider", "2", "--out", "start"]) == 0


def test_folders_of_earlier_versions_are_the_same_runs() -> None:
    """Identities that version 0.1.0 gave before rows were written: their runs go on as they did."""
    assert main([*SMALL, "--out", "generated"]) == 0
    assert main([*OWN, "--out", "own"]) == 0
    vocabulary = ["data", "vocabulary", *TALKS, "--pieces", "330", "--out", "v.model"]
    assert main(vocabulary) == 0
    assert main([*SMALL, *TALKS, "--vocabulary", "v.model", "--out", "given"]) == 0
    upgrade = ["upgrade", "--from", "own", "--wider", "2", "--gamma", "0.5"]
    assert main([*upgrade, "--out", "start"]) == 0
    assert main([*SHORT, *TALKS, "--continue-from", "start", "--out", "on"]) == 0
    identities = [identity(name) for name in ("generated", "own", "given", "start", "on")]
    assert identities == [
        "f71b3f7aa480",
        "17c3015cc239",
        "a9e9215f1933",
        "d1996ff12707",
        "836578684893",
    ]


def test_runs_on_generated_text_are_scored_where_declared_ones_are() -> None:
    assert main([*SMALL, "--similarity", "0.5", "--out", "run"]) == 0
    (content,) = results.load_runs("results")
    declared = ConlangConfig(concepts=64, syllables=24, min_concepts=4, similarity=0.5)
    assert content["run"]["config"]["conlang"] == json.loads(json.dumps(vars(declared)))
    assert {row["sentences"] for row in content["rows"]} == {4000}


def test_all_of_a_conlang_is_carried_to_an_upgrade(capsys) -> None:
    """Also what no option of `train` sets, such as the length of its sentences."""
    Path("grid.yml").write_text(
        "conlang: {concepts: 32, syllables: 20, min_concepts: 2, max_concepts: 3, seed: 7}\n"
        "sizes: [8]\nweights: [0.5]\ntraining: {steps: 2, curve_points: 1}\n", encoding="utf-8"
    )  # fmt: skip
    assert main(["sweep", "grid.yml", "--workers", "1"]) == 0
    (run,) = Grid.read("grid.yml").runs
    folder = f"runs/{run.run_id}"
    assert main(["upgrade", "--from", folder, "--wider", "2", "--out", "start"]) == 0
    following = capsys.readouterr().out.splitlines()[-1].removeprefix("next: mnmt-repro ")
    assert main([*shlex.split(following), "--steps", "2", "--out", "on"]) == 0
    assert load_trained(Path("on")).conlang.config == run.conlang
    capsys.readouterr()
    about = Path("on/run.json")
    about.write_text(about.read_text("utf-8").replace('"seed": 7', '"seed": 8'), "utf-8")
    fails(["evaluate", "on"], capsys, "run.json: pieces of hash", "restore the file")


def test_a_generated_language_is_added_from_the_command_line(capsys) -> None:
    four = ["--languages", "src,aaa,bbb,ccc"]
    assert main([*SMALL, *four, "--pairs", "src-aaa,src-bbb", "--out", "old"]) == 0
    assert main(["upgrade", "--from", "old", "--out", "start"]) == 0
    pairs = ["--pairs", "src-aaa,src-bbb,src-ccc"]
    assert main([*SHORT, "--continue-from", "start", *pairs, "--out", "new"]) == 0
    assert load_trained(Path("new")).pairs == ("src-aaa", "src-bbb", "src-ccc")
    assert main([*SMALL, *four, "--out", "all"]) == 0
    assert load_trained(Path("all")).pairs == ("src-aaa", "src-bbb", "src-ccc")
    capsys.readouterr()
    fails([*SMALL, "--languages", "src,src"], capsys, "languages must be distinct")
    fails([*SMALL, "--languages", "src,,aaa"], capsys, "--languages src,,aaa: part 2 is empty")
    other = ["--continue-from", "start", "--languages", "src,aaa,bbb"]
    fails([*SHORT, *other, "--pairs", "src-aaa"], capsys, "--languages", "other text")
