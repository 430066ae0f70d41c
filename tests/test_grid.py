"""A user's grid: from a file or from Python, to losses, a law, a figure and weights."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest
from command_line import fails
from small_runs import VARIED
from small_text import small_bitext

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.laws import convergence
from mnmt_repro.runs.grid import Grid, GridRuns, Size
from mnmt_repro.training.config import TrainingConfig, usual_training

TEXTS = {"eng-deu": "talks", "eng-fra": "news", "eng-ces": "books"}
OWN = """\
data:
  eng-deu: talks.tsv
  eng-fra: news.tsv
  eng-ces: books.tsv
pieces: 380
sizes: [4, 8, 16]
weights: [1, {eng-fra: 1}, {eng-ces: 1}, {}, 0.6, {eng-fra: 0.6}, {eng-ces: 0.6}]
training:
  steps: 60
  warmup_steps: 10
  batch_tokens: 256
  curve_points: 3
"""
SHORT = usual_training(steps=3, curve_points=2)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("mnmt_repro.runs.data.CONLANG_TEST_SENTENCES", 50)


def write_texts() -> None:
    for seed, (pair, name) in enumerate(TEXTS.items()):
        text = small_bitext(pair, 120, seed)
        letters = str.maketrans({chr(97 + i): chr(97 + (i + 7 * seed) % 26) for i in range(26)})
        targets = [sentence.translate(letters) for sentence in text.target]  # of three languages
        lines = [f"{a}\t{b}" for a, b in zip(text.source, targets, strict=True)]
        for file, part in ((f"{name}.tsv", lines[:100]), (f"{name}.test.tsv", lines[100:])):
            Path(file).write_text("\n".join(["source\ttarget", *part]) + "\n", encoding="utf-8")


def write_grid(text: str) -> list[str]:
    Path("grid.yml").write_text(text, encoding="utf-8")
    return ["sweep", "grid.yml"]


def conlang_grid(**fields) -> Grid:
    usual = {"conlang": VARIED, "sizes": (4, 8), "weights": (0.5, 1.0), "training": SHORT}
    return Grid(**usual | fields)


# --- what a grid stands for --------------------------------------------------------------------


def test_a_grid_has_a_run_for_each_size_weight_and_seed() -> None:
    grid = conlang_grid(seeds=(1, 2), sizes=(4, Size(d_model=8, layers=2, target_tokens=900)))
    found = [
        (run.seed, run.size, run.mixture.weights["src-aaa"], run.training) for run in grid.runs
    ]
    longer = TrainingConfig(**{**SHORT.settings(), "steps": None, "target_tokens": 900})
    assert found == [
        (seed, size, p, training)
        for seed in (1, 2)
        for size, training in (("d4x1", SHORT), ("d8x2", longer))
        for p in (0.5, 1.0)
    ]
    assert {run.tags for run in grid.runs} == {"source"}  # of a single pair, too


def test_a_grid_is_checked_where_it_is_declared() -> None:
    assert conlang_grid(training={"steps": 3, "curve_points": 2}).training == SHORT
    with pytest.raises(InputError, match="training.step: unknown key; did you mean steps"):
        conlang_grid(training={"step": 3})
    with pytest.raises(InputError, match="arch must be one of t5, fairseq"):
        conlang_grid(arch="t6")


def test_pairs_without_a_weight_share_the_rest_evenly() -> None:
    three = ConlangConfig(**{**vars(VARIED), "languages": ("src", "a", "b", "c"),
                             "families": None, "orders": None})  # fmt: skip
    weights = (0.5, {"src-b": 0.2}, {}, {"src-a": 0.3, "src-c": 0.7})
    grid = conlang_grid(conlang=three, weights=weights)
    first, second, third, last = grid.mixtures
    assert first.weights == {"src-a": 0.5, "src-b": 0.25, "src-c": 0.25}
    assert second.weights == {"src-a": 0.4, "src-b": 0.2, "src-c": 0.4}
    assert third.weights == pytest.approx(dict.fromkeys(first.pairs, 1 / 3))
    assert last == Mixture.of({"src-a": 0.3, "src-c": 0.7})


def test_a_run_of_a_grid_is_that_of_train() -> None:
    write_texts()
    write_grid(OWN)
    text = Grid.read("grid.yml").text
    assert text.hashes is text.hashes  # all sentences are read for them
    data = [part for pair, name in TEXTS.items() for part in ("--data", f"{pair}={name}.tsv")]
    settings = {
        "pieces": 380, "d-model": 8, "heads": 2, "steps": 60, "warmup-steps": 10,
        "batch-tokens": 256, "curve-points": 3, "tags": "source", "weights": "0,1,0",
        "out": "run", "results": "store",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    assert main(["train", *data, *options]) == 0
    (content,) = results.load_runs("store")
    (same,) = [
        run for run in Grid.read("grid.yml").runs
        if run.size == "d8x1" and run.mixture.pairs == ("eng-fra",)
    ]  # fmt: skip
    assert content["run"]["run_id"] == same.run_id
    assert json.loads(Path("run/run.json").read_text("utf-8"))["identity"] == same.identity


@pytest.mark.parametrize(
    "wrong, parts",
    [
        (("sizes: [4", "size: [4"), ("line 6", "size: unknown key; did you mean sizes?")),
        (("sizes: [4, 8", "sizes: [4, 5"), ("line 6", "sizes[1]", "2: must divide d_model 5")),
        (("sizes: [4, 8, 16]\n", ""), ("line 1", "sizes: is missing")),
        (("{eng-fra: 1}", "{eng-xho: 1}"), ("line 7", "weights[1].eng-xho", "eng-deu, eng-fra")),
        (("{eng-fra: 1}", "{eng-deu: 0.6, eng-fra: 0.3}"),
         ("line 7", "weights[1]: sum to 0.9; name eng-ces, too")),
        (("  steps: 60", "  step: 20"), ("line 9", "training.step", "did you mean steps?")),
        (("pieces: 380", "vocabulary: 380"), ("cannot read the vocabulary", "380")),
        (("  steps: 60", "  steps: -1"), ("line 9", "training.steps", "must be at least 1")),
        (("talks.tsv", "gone.tsv"), ("grid.yml", "gone.tsv")),
        (("pieces: 380", "conlang: {}"), ("in one of data, corpus and conlang",)),
        (("pieces: 380", "pieces: 3800"), ("pieces 3800: ", "this text gives at most")),
        (("eng-fra: news", "eng-deu: news"), ("line 3", "eng-deu is there twice")),
        (("pieces: 380", "pieces: 6:20"), ("pieces: must be a whole number, got '6:20'",)),
        (("pieces: 380", "vocabulary_temperature: 0.01"), ("line 5", "must be at least 0.05")),
        ((OWN, ""), ("line 1", "must have the keys data")),
        ((OWN, "sizes: [4]\ncorpus: conlang\n"), ("line 2", "write conlang: {concepts: 64}")),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_told_with_its_line(wrong, parts, capsys) -> None:
    write_texts()
    assert wrong[0] in OWN
    fails([*write_grid(OWN.replace(*wrong)), "--dry-run"], capsys, "grid.yml", *parts)


def test_a_grid_file_is_swept_alone_and_without_options_of_cohorts(capsys) -> None:
    write_texts()
    command = write_grid(OWN)
    fails([*command, "conlang-sim0"], capsys, "conlang-sim0: a file of a grid is swept alone")
    fails([*command, "--decode"], capsys, "--decode and --analyse are of cohorts")
    fails(["sweep", "absent.yml"], capsys, "absent.yml: cannot be read")


def test_the_help_shows_a_grid(capsys) -> None:
    write_texts()
    Path("news.tsv").rename("xhosa.tsv")
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    example = capsys.readouterr().out.partition("grid.yml:\n")[2].partition("\n\n")[0]
    write_grid(textwrap.dedent(example))
    assert len(Grid.read("grid.yml").runs) == 4 * 5 * 2


WEIGHTED = """\
conlang: {concepts: 64, syllables: 24, min_concepts: 3, max_concepts: 8}
sizes: [4]
weights: [0.5]
training: {steps: 3, loss_weights: {src-aaa: 0.1, src-bbb: 0.9}}
"""


def test_a_grid_may_weight_the_loss(capsys) -> None:
    assert main([*write_grid(WEIGHTED), "--workers", "1"]) == 0
    (run,) = Grid.read("grid.yml").runs
    assert run.mixture.weights == {"src-aaa": 0.5, "src-bbb": 0.5}
    assert run.weights == run.training.loss_weights == {"src-aaa": 0.1, "src-bbb": 0.9}
    losses = results.load(root="runs/results")
    assert losses.set_index("pair")["p"].to_dict() == run.weights
    write_grid(WEIGHTED.replace("loss_weights", "first_share: 0.25, first_weights"))
    (run,) = Grid.read("grid.yml").runs
    assert (run.training.first_share, run.weights["src-aaa"]) == (0.25, 0.5)


def test_numbers_may_be_written_as_yaml_does_not_read_them() -> None:
    Path("grid.yml").write_text(
        "conlang: {concepts: 64, syllables: 24, min_concepts: 3, max_concepts: 8}\n"
        "sizes: [04]\ntraining: {learning_rate: 3e-1, target_tokens: 6e4}\n", encoding="utf-8"
    )  # fmt: skip
    training = Grid.read("grid.yml").training
    assert (training.learning_rate, training.target_tokens) == (0.3, 60_000)
    assert Grid.read("grid.yml").conlang == VARIED


def test_what_runs_leave_out_of_the_text_is_noted_once(capsys) -> None:
    write_texts()
    with Path("news.tsv").open("a", encoding="utf-8") as file:
        file.write("the file " * 60 + "\t" + "le fichier " * 60 + "\n")
    write_grid(OWN)
    Grid.read("grid.yml").prepare()
    left_out = "note: eng-fra: 1 of 97 sentences left out, longer than --max-length 64"
    assert capsys.readouterr().err.count(left_out) == 1


# --- what is run -------------------------------------------------------------------------------


def test_three_bitexts_lead_to_recommended_weights(capsys) -> None:
    write_texts()
    command = write_grid(OWN)
    assert main([*command, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" s ") == 22 and shown.count(" MiB  ") == 21
    assert re.search(
        r"21 of 21 runs are missing: about [1-9]\S* s of training on 2 worker\(s\)", shown
    )
    assert not Path("runs").exists()

    assert main([*command, "--workers", "1"]) == 0
    assert "next: mnmt-repro fit runs/results" in capsys.readouterr().out
    assert main(["fit", "runs/results", "--json"]) in (0, 1)  # too short for a law to be sure of
    shown = capsys.readouterr()
    assert re.search("these runs still fall by .*: train longer first", shown.err)
    laws = {law["pair"]: law for law in json.loads(shown.out)}
    done = GridRuns(grid=Grid.read("grid.yml"), folder=Path("runs"))
    assert all(law["params"] == done.fit(pair).params for pair, law in laws.items())
    assert {pair: law["observations"] for pair, law in laws.items()} == dict.fromkeys(TEXTS, 15)

    wish = ["recommend", "runs/results", "--n", "1000", "--force"]
    assert main([*wish, "--json"]) == 0
    weights = json.loads(capsys.readouterr().out)["weights"]
    assert weights.keys() == TEXTS.keys() and sum(weights.values()) == pytest.approx(1)

    assert main(command) == 0  # nothing is left
    assert "0 of 21 runs are missing" in capsys.readouterr().out
    a, b = (f"runs/{run.run_id}" for run in Grid.read("grid.yml").runs[:8:7])
    assert main(["compare", a, b, "--data", "eng-deu=talks.test.tsv"]) == 0


def test_one_object_declares_runs_fits_and_recommends(capsys, monkeypatch) -> None:
    grid = conlang_grid(sizes=(4, 6, 8))
    done = grid.run("runs")
    assert len(done.losses) == 3 * (2 + 1)
    law = done.fit("src-aaa")
    assert law.observations == 6 and law.label == "src-aaa"
    with pytest.raises(InputError, match="src-aaa: its law is not identified"):
        done.recommend(1000)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(convergence, "last_fall", lambda curves: 0.07)
    done.fit("src-aaa")
    assert "these runs still fall by 7%" in capsys.readouterr().err
    with pytest.raises(InputError, match="no losses of src-bbb-x; there are those of src-aaa"):
        done.fit("src-bbb-x")


def test_a_run_that_fails_is_told_after_the_others() -> None:
    training = usual_training(steps=3, optimiser="adamw")
    sizes = (4, Size(d_model=4, layers=2, learning_rate=1e30))
    grid = conlang_grid(sizes=sizes, weights=(1.0,), training=training)
    with pytest.raises(InputError, match="1 of 2 runs failed; the first: .*became nan"):
        grid.run("runs")
    assert set(GridRuns(grid=grid, folder=Path("runs")).losses["size"]) == {"d4x1"}
    with pytest.raises(InputError, match="workers 0"):
        grid.run("runs", workers=0)
