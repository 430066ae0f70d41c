"""`upgrade` and `train --continue-from`: from a model of one language to a larger one of two."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from command_line import fails
from small_text import small_bitext, write_tsv

from mnmt_repro.cli import build_parser, main
from mnmt_repro.cli.options import read_fields
from mnmt_repro.cli.upgrade import _as_new
from mnmt_repro.cli.upgrade_options import UpgradeOptions, upgrade_config
from mnmt_repro.corpora.bitext import read_bitexts
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.model import Transformer
from mnmt_repro.runs.training_text import hold_out
from mnmt_repro.training.checkpoint import load_checkpoint
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig
from mnmt_repro.upgrading.learning_rate import NEW, OLD
from mnmt_repro.upgrading.start import load_upgraded

CYRILLIC = str.maketrans("aeiounrst", "аеиоунрст")
OLD_STEPS, WARMUP, PEAK = 4, 8, 0.08
TRAIN_OLD = [
    "train", "--data", "eng-deu=talks.tsv", "--tags", "both", "--pieces", "330", "--out", "old",
    "--arch", "fairseq", "--optimiser", "adamw", "--learning-rate", str(PEAK), "--dropout", "0.1",
    "--warmup-steps", str(WARMUP), "--steps", str(OLD_STEPS), "--batch-tokens", "256",
    "--label-smoothing", "0.1", "--curve-points", "3", "--keep", "best", "--d-model", "8",
    "--heads", "2",
]  # fmt: skip
UPGRADE = ["upgrade", "--from", "old", "--vocab", "both.model", "-o", "start"]
TRAIN_ON = [
    "train", "--continue-from", "start", "--data", "eng-deu=talks.tsv", "--data", "eng-xho=new.tsv",
    "--upsample", "eng-xho=5", "--steps", "6", "--out", "both",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with bitext, a vocabulary of two languages, and a model of one: `old`."""
    folder = tmp_path_factory.mktemp("trained")
    text = small_bitext(count=120)
    write_tsv(folder / "talks.tsv", "eng-deu", text.source, text.target)
    other = [line.translate(CYRILLIC) for line in text.target[:60]]
    write_tsv(folder / "new.tsv", "eng-xho", text.source[:60], other)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MNMT_REPRO_CACHE", str(folder / "cache"))
        assert main(TRAIN_OLD) == 0
        assert main([
            "data", "vocabulary", "--data", "eng-deu=talks.tsv", "--data", "eng-xho=new.tsv",
            "--pieces", "350", "--out", "both.model",
        ]) == 0  # fmt: skip
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch, capsys) -> Path:
    """A copy of that folder, to work in."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    capsys.readouterr()
    return tmp_path


def about(folder: str) -> dict:
    return json.loads(Path(folder, "run.json").read_text(encoding="utf-8"))


def rates(folder: str) -> dict[int, float]:
    lines = Path(folder, "log.jsonl").read_text(encoding="utf-8").splitlines()
    return {point["step"]: point["learning_rate"] for point in map(json.loads, lines)}


def loss_of(folder: str, capsys) -> float:
    assert main(["evaluate", folder, "--data", "eng-deu=talks.tsv", "--json"]) == 0
    return json.loads(capsys.readouterr().out)[0]["cross_entropy"]


# --- from one language to two ---------------------------------------------------------------------


def test_old_parameters_stay_as_they_are_but_for_named_ones(here: Path, capsys) -> None:
    fails([*UPGRADE, "--as-new", "decoder.9"], capsys, "--as-new decoder.9", "mean decoder.0")
    fails([*UPGRADE, "--as-new", "decoder_nor"], capsys, "did you mean decoder_norm")
    layers = {f"decoder.{i}.a": torch.full((1,), OLD) for i in (1, 10)}
    assert [int(group) for group in _as_new(layers, ["decoder.1"]).values()] == [NEW, OLD]
    assert main([*UPGRADE, "--gamma", "0,1", "--as-new", "decoder_norm"]) == 0
    assert main(TRAIN_ON) == 0
    start, new = load_upgraded(Path("start/start.safetensors")), Path("both/last.safetensors")
    moved = set()
    for name, after in load_checkpoint(new).weights.items():
        before = start.model.state_dict()[name]
        old = (start.groups[name] == OLD).expand_as(before)
        assert torch.equal(before[old], after[old])
        moved |= {name} if not torch.equal(before[~old], after[~old]) else set()
    assert {"embedding.weight", "decoder_norm.weight"} <= moved


def test_upgrade_and_train_on_from_end_to_end(here: Path, capsys, monkeypatch) -> None:
    old_files = {p: p.read_bytes() for p in Path("old").iterdir()}
    command = [*UPGRADE, "--wider", "2", "--deeper", "1", "--gamma", "0.5,2"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    for part in (
        "330 -> 350",
        "feed forward:      32 -> 64",
        "1 -> 2",
        "pieces kept",
        "next: mnmt-repro train --continue-from start --data PAIR=FILE",
    ):
        assert part in shown
    assert {p.name for p in Path("start").iterdir()} == {
        "run.json", "start.safetensors", "vocabulary.model",
    }  # fmt: skip
    assert Path("start/vocabulary.model").read_bytes() == Path("both.model").read_bytes()
    assert {p: p.read_bytes() for p in Path("old").iterdir()} == old_files
    fails(command, capsys, "--out start: is not empty")
    assert loss_of("start", capsys) > 0  # it can be scored before it is trained on

    assert main(TRAIN_ON) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^eng-xho: \d\.\d+ nats a token on \d+ validation sentences$", shown, re.M)
    run = about("both")
    assert run["pairs"] == ["eng-deu", "eng-xho"] and run["tags"] == "both"
    assert run["languages"] == ["deu", "eng", "xho"]
    text, _ = hold_out(read_bitexts(["eng-deu=talks.tsv", "eng-xho=new.tsv"]))
    old, new = (len(text[pair]) for pair in run["pairs"])
    assert run["mixture"]["eng-xho"] == pytest.approx(5 * new / (old + 5 * new))
    assert run["training"] == {**about("old")["training"], "steps": 6}
    assert (run["seed"], about("old")["seed"]) == (2, 1)
    shape = run["model"]
    assert (shape["d_ff"], shape["encoder_layers"], shape["decoder_layers"]) == (64, 2, 2)
    assert shape["dropout"] == 0.1
    assert load_checkpoint("both/last.safetensors").progress.behind == OLD_STEPS
    # The warm-up goes on: step t is step 4 + t of the old run's.
    log = rates("both")
    assert log == {
        step: pytest.approx(PEAK * min(1, (4 + step) / 8, (8 / (4 + step)) ** 0.5)) for step in log
    }
    assert max(log) == 6

    before = Path("both/last.safetensors").read_bytes()
    assert main(TRAIN_ON) == 0  # the same command finds its run again
    assert capsys.readouterr().out == shown
    assert Path("both/last.safetensors").read_bytes() == before

    for target in ("deu", "xho"):
        lines = io.TextIOWrapper(io.BytesIO(b"open the file\n"), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", lines)
        assert main(["translate", "both", "--to", target, "--beam", "2"]) == 0
        assert capsys.readouterr().out.count("\n") == 1

    # And once more, from there: the steps of both runs lie behind.
    assert main(["upgrade", "--from", "both", "--deeper", "0,1", "-o", "again"]) == 0
    assert about("again")["upgrade"]["steps"] == OLD_STEPS + 6
    assert load_upgraded("again/start.safetensors").schedule_start == OLD_STEPS + 6


def test_without_noise_the_wide_model_scores_as_the_old_one(here: Path, capsys) -> None:
    command = ["upgrade", "--from", "old", "--checkpoint", "best", "--optimiser", "reset"]
    command += ["--noise", "0"]
    assert main([*command, "--wider", "2", "-o", "double"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("double: old, upgraded\n") and "dropped" not in shown
    assert "normalisation:     frobenius: as published" in shown
    # Of part multiples the published normalisation would not be true.
    assert main([*command, "--wider", "2.5", "-o", "more"]) == 0
    shown = capsys.readouterr().out
    assert "normalisation:     function: x2.5 copies some units only, and the norm" in shown
    old = loss_of("old", capsys)
    for folder in ("double", "more"):
        assert loss_of(folder, capsys) == pytest.approx(old, abs=1e-5)


@pytest.mark.parametrize(
    ("schedule", "expected"), [("reset", [0.01, 0.02]), ("constant", [0.03, 0.03])]
)
def test_the_schedule_can_be_reset_or_constant(
    here: Path, capsys, schedule: str, expected: list[float]
) -> None:
    """Footnote 7. After a reset, steps 1 and 2 of 8 to the peak of 0.08."""
    assert main([*UPGRADE, "--schedule", schedule]) == 0
    capsys.readouterr()
    rate = []
    if schedule == "constant":  # at which rate, nobody but the user knows
        fails(TRAIN_ON, capsys, "--continue-from start", "give --learning-rate", "0.08")
        rate = ["--learning-rate", "0.03"]
    command = [*TRAIN_ON, *rate, "--steps", "2", "--curve-points", "9"]
    assert main(command) == 0
    assert [rates("both")[step] for step in (1, 2)] == pytest.approx(expected)


def test_settings_that_are_given_win_over_the_old_runs(here: Path, capsys) -> None:
    assert main([*UPGRADE, "--optimiser", "reset"]) == 0
    command = [*TRAIN_ON, "--optimiser", "adafactor", "--batch-tokens", "200", "--seed", "9"]
    assert main([*command, "--steps", "1", "--keep", "last"]) == 0
    run = about("both")
    assert run["seed"] == 9
    training = run["training"]
    assert (training["optimiser"], training["batch_tokens"]) == ("adafactor", 200)
    assert (training["keep"], training["label_smoothing"]) == ("last", 0.1)
    assert training["learning_rate"] == 0.3  # not the one that suited the other optimiser

    # Left out of the text, the old pair is told, and can still be asked for.
    capsys.readouterr()
    alone = ["train", "--continue-from", "start", "--data", "eng-xho=new.tsv", "--steps", "1"]
    assert main([*alone, "--out", "alone"]) == 0
    assert "soon forgotten: eng-deu" in capsys.readouterr().err
    assert about("alone")["pairs"] == ["eng-xho", "eng-deu"]


def test_a_conlangs_model_can_be_widened(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    short = ["--steps", "2", "--d-model", "8", "--heads", "2", "--curve-points", "1"]
    assert main(["train", "--similarity", "0.5", "--concepts", "32", *short, "--out", "old"]) == 0
    upgrade = ["upgrade", "--from", "old", "--wider", "2"]
    capsys.readouterr()
    assert main([*upgrade, "--noise", "0", "--out", "start"]) == 0
    printed = capsys.readouterr().out  # losses, as the validation text of the pairs is generated
    for pair in ("src-aaa", "src-bbb"):
        was, now = re.findall(rf"^{pair}: (\S+) -> (\S+) nats a token", printed, re.M)[0]
        assert float(was) == pytest.approx(float(now), abs=2e-4)
    # The layer is gated: its function is kept where nothing else is asked for.
    assert load_upgraded("start/start.safetensors").config.width.normalisation == "function"
    assert main([*upgrade, "--normalisation", "frobenius", "--out", "published"]) == 0
    config = load_upgraded("published/start.safetensors").config
    assert config.width.normalisation == "frobenius"
    assert main(["train", "--continue-from", "start", "--steps", "2", "--out", "on"]) == 0
    assert about("on")["conlang"] == about("old")["conlang"]
    assert about("on")["pairs"] == ["src-aaa", "src-bbb"]
    capsys.readouterr()
    on = ["train", "--continue-from", "start", "--steps", "2"]
    fails([*on, "--concepts", "40"], capsys, "the same --concepts")
    text = small_bitext(count=40)
    write_tsv(tmp_path / "talks.tsv", "eng-deu", text.source, text.target)
    fails([*on, "--data", "eng-deu=talks.tsv"], capsys, "was trained on other text")
    fails([*upgrade, "--vocab", "talks.tsv", "-o", "no"], capsys, "is not a SentencePiece model")


def test_text_that_is_no_longer_there_can_be_named(here: Path, capsys) -> None:
    run = about("old")
    run["files"]["data"] = ["eng-deu=gone.tsv"]
    Path("old/run.json").write_text(json.dumps(run), encoding="utf-8")
    assert main(UPGRADE) == 0
    shown = capsys.readouterr()
    assert "note: no loss is shown: " in shown.err and "--loss-on PAIR=FILE" in shown.err
    assert "nats a token" not in shown.out
    assert main([*UPGRADE[:-1], "named", "--loss-on", "eng-deu=talks.tsv"]) == 0
    assert "eng-deu: " in capsys.readouterr().out


def test_no_vocabulary_is_new_to_a_conlangs_model(here: Path, capsys) -> None:
    short = ["--steps", "2", "--d-model", "8", "--heads", "2", "--curve-points", "1"]
    assert main(["train", *short, "--out", "conlang"]) == 0
    capsys.readouterr()
    new = ["upgrade", "--from", "conlang", "--vocab", "both.model", "--out", "no"]
    fails(new, capsys, "a row for each syllable of its conlang from the start")


# --- refusals: one line, and nothing written ------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--wider", "0.5"], ["upgrade: argument --wider: must be from 1 to 1000, got 0.5"]),
        (["--wider", "1.01"], ["32.32 units of 32, which is no whole number"]),
        (["--deeper", "1,2,3"], ["--deeper 1,2,3: give one for both stacks"]),
        (["--deeper", ",1"], ["--deeper ,1: part 1 is empty"]),
        (["--at", "left"], ["--at left: must be one of bottom, middle, top, spread"]),
        (["--wider", "1.5", "--width-init", "interpolation"], ["whole multiple of the old 32"]),
        (["--gamma", "-0.5"], ["--gamma -0.5: must be at least 0, got -0.5"]),
        (["--gamma", "1,2,3"], ["write OLD or OLD,NEW"]),
        (["--gamma", "0:1"], ["say --steps, over which the factor rises"]),
        (["--preset", "deep"], ["say --steps, over which the factor rises"]),
        (["--checkpoint", "best"], ["holds no optimiser state", "(--optimiser reset)"]),
        (["--vocab", "talks.tsv"], ["talks.tsv is not a SentencePiece model"]),
        (
            ["--vocab", "other.model"],
            ["no tag <2deu>; there are eng, xho", "model was trained on eng-deu"],
        ),
        (["--from", "upgraded"], ["--from upgraded: upgraded, and not trained on since"]),
        (["--out", "."], ["--out .: name a new folder"]),
        (["--out", "talks.tsv/start"], ["--out talks.tsv/start: cannot be written"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_impossible_is_told_before_anything_is_written(
    broken: Path, monkeypatch, capsys, options: list[str], parts: list[str]
) -> None:
    monkeypatch.chdir(broken)
    fails([*UPGRADE, *options], capsys, *parts)


@pytest.fixture(scope="module")
def broken(trained: Path, tmp_path_factory) -> Path:
    """The folder again, with runs and vocabularies that nothing can be made of."""
    folder = tmp_path_factory.mktemp("broken") / "all"
    shutil.copytree(trained, folder)
    shutil.copytree(folder / "old", folder / "upgraded")
    run = json.loads((folder / "old" / "run.json").read_text(encoding="utf-8"))
    upgraded = json.dumps({**run, "upgrade": {}})
    (folder / "upgraded" / "run.json").write_text(upgraded, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([
            "data", "vocabulary", "--data", "eng-xho=new.tsv", "--pieces", "320",
            "--out", "other.model",
        ]) == 0  # fmt: skip
    return folder


def test_options_that_an_upgraded_model_has_settled_are_refused(here: Path, capsys) -> None:
    assert main(UPGRADE) == 0
    capsys.readouterr()
    Path("start/config.json").touch()  # as a Hugging Face model has; `run.json` goes first
    on = TRAIN_ON[:-2]
    for options in (["--d-model", "32"], ["--vocabulary", "both.model"], ["--arch", "t5"]):
        fails([*on, *options], capsys, f"{options[0]}: the upgraded model's own stays")
    fails([*on, "--optimiser", "adafactor"], capsys, "the old model's state is that of adamw")
    fails(["train", "--continue-from", "old"], capsys, "not an upgraded one", "--from old")
    fails(["train", "--continue-from", "start"], capsys, "your own text (eng-deu)", "--data")
    fails(["train", "--continue-from", "start", "--corpus", "conlang"], capsys, "give --data")
    shutil.copy("new.tsv", "zho.tsv")
    fails([*on, "--data", "eng-zho=zho.tsv?source=eng&target=xho"], capsys,
          "eng-zho: the vocabulary has no tag <2zho>", "--vocab")  # fmt: skip
    Path("start/vocabulary.model").write_bytes(Path("old/vocabulary.model").read_bytes())
    fails(on, capsys, "the model was trained with", "restore the file")


# --- options to settings --------------------------------------------------------------------------


def config_of(*options: str) -> UpgradeConfig:
    command = ["upgrade", "--from", "a", "--out", "b", *options]
    return upgrade_config(read_fields(build_parser().parse_args(command), UpgradeOptions))


def test_presets_are_the_published_settings_and_options_win() -> None:
    assert config_of() == UpgradeConfig()
    assert config_of("--preset", "same") == UpgradeConfig(gamma_old=0.5)
    assert config_of("--preset", "wide") == UpgradeConfig(wider=2, gamma_old=0.5)
    assert config_of("--preset", "wide", "--wider", "3", "--gamma", "1,5") == UpgradeConfig(
        wider=3, gamma_old=1, gamma_new=5
    )
    ramp = Ramp(start=0.05, end=0.5, steps=50)
    deep = config_of("--preset", "deep", "--steps", "50")
    assert deep == UpgradeConfig(deeper=DepthConfig(encoder=6, decoder=6), gamma_old=ramp)
    deep = config_of("--preset", "deep", "--gamma", "0.05:0.5:50", "--deeper", "1,2")
    assert deep == UpgradeConfig(deeper=DepthConfig(encoder=1, decoder=2), gamma_old=ramp)


def test_other_text_is_told(here: Path, capsys) -> None:
    """What the old model learnt from may be held out now."""
    lines = Path("talks.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("more.tsv").write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    assert main([*UPGRADE]) == 0
    text = ["--data", "eng-deu=more.tsv", "--data", "eng-xho=new.tsv"]
    train = ["train", "--continue-from", "start", "--steps", "2", *text]
    capsys.readouterr()
    assert main([*train, "--out", "other"]) == 0
    notes = capsys.readouterr().err
    assert "note: validation text of eng-deu is not the old model's" in notes
    assert main([*train, "--valid", "eng-xho=new.tsv", "--out", "few"]) == 0
    assert "note: no validation text of eng-deu" in capsys.readouterr().err


def test_no_two_upgrades_in_a_row_draw_alike(here: Path, capsys) -> None:
    assert main([*UPGRADE, "--init", "random"]) == 0
    first = load_upgraded("start/start.safetensors").config.seed
    assert first not in (0, about("old")["seed"])
    assert main(TRAIN_ON) == 0
    again = ["upgrade", "--from", "both", "--deeper", "1", "--depth-init", "random", "-o", "second"]
    assert main(again) == 0
    assert load_upgraded("second/start.safetensors").config.seed != first


def test_embeddings_that_were_never_trained_are_told(here: Path, capsys) -> None:
    assert main(UPGRADE) == 0
    assert "note:" not in capsys.readouterr().err  # one table for all, and tags from the start
    old = ["train", "--data", "eng-deu=talks.tsv", "--pieces", "330", "--out", "plain"]
    assert main([*old, "--steps", "2", "--d-model", "8", "--heads", "2"]) == 0
    capsys.readouterr()
    command = ["upgrade", "--from", "plain", "--vocab", "both.model"]
    assert main([*command, "--init", "unk", "-o", "copied"]) == 0
    notes = capsys.readouterr().err
    assert "note: the old model was trained without language tags" in notes
    assert main([*command, "-o", "split"]) == 0
    assert load_upgraded("split/start.safetensors").config.embeddings == "mean"
    # Its rows are just what they began as.
    began = Transformer(load_checkpoint("plain/last.safetensors").config, seed=1).state_dict()
    rows = load_upgraded("copied/start.safetensors").model.state_dict()["embedding.weight"]
    xho = Vocabulary.load("both.model").tag("xho")
    assert torch.equal(rows[xho], began["embedding.weight"][2])


def test_what_of_the_training_does_not_fit_the_upgrade_is_noted(here: Path, capsys) -> None:
    rising = ["--deeper", "1", "--gamma", "0.05:0.5", "--steps", "3"]
    assert main([*UPGRADE, *rising]) == 0
    assert main([*TRAIN_ON, "--steps", "3"]) == 0
    assert "note:" not in capsys.readouterr().err
    assert main([*TRAIN_ON, "--steps", "2", "--tags", "none", "--out", "short"]) == 0
    notes = capsys.readouterr().err
    assert "note: a learning-rate factor rises over 3 steps, and this run takes about 2" in notes
    assert "note: language tags: both in the old model's text, none from here on" in notes


def test_an_upgraded_model_is_trained_longer_by_the_same_command(here: Path, capsys) -> None:
    """The rising factor goes on where it was, and the new half stays new."""
    command = [*UPGRADE, "--wider", "2", "--gamma", "0:0.6:6,2"]
    assert main(command) == 0
    assert main(TRAIN_ON) == 0
    Path("both").rename("once")
    shorter = [*TRAIN_ON, "--steps", "4"]
    assert main(shorter) == 0 and main(TRAIN_ON) == 0
    once, twice = (load_checkpoint(f"{name}/last.safetensors").weights for name in ("once", "both"))
    assert all(torch.equal(once[name], twice[name]) for name in once)
    capsys.readouterr()
    shutil.rmtree("start")
    assert main([*command, "--deeper", "1"]) == 0
    capsys.readouterr()
    fails(TRAIN_ON, capsys, "holds another run (it goes on from another upgraded model)")
