"""`train` and what goes with it: nothing is lost, left out or overwritten without a word."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import fails
from safetensors.torch import load_file
from scipy import stats
from small_text import small_bitext, write_tsv

from mnmt_repro import results
from mnmt_repro.architecture import memory_limits
from mnmt_repro.cli import main
from mnmt_repro.cli import train as train_module
from mnmt_repro.cli.options import check_device
from mnmt_repro.cli.stopping import asked_to_stop
from mnmt_repro.corpora.bitext import read_bitext
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.repository import ROOT
from mnmt_repro.runs import data as data_module
from mnmt_repro.runs.lock import run_lock
from mnmt_repro.runs.trained import check_free
from mnmt_repro.training import loop
from mnmt_repro.training.checkpoint import load_checkpoint, read_progress

SMALL = ["train", "--d-model", "8", "--heads", "2", "--curve-points", "3"]
OWN = [*SMALL, "--data", "eng-deu=talks.tsv", "--pieces", "330", "--steps", "3"]


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """As on a terminal; tests may run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(data_module, "CONLANG_TEST_SENTENCES", 50)
    text = small_bitext("eng-deu", 120)
    write_tsv(Path("talks.tsv"), "eng-deu", text.source, text.target)


def stop_at(step: int, monkeypatch) -> None:
    """Ctrl-C in the midst of that step of the next run."""
    plain, calls = Transformer.loss, []

    def interrupted(self: Transformer, *arguments) -> torch.Tensor:
        calls.append(1)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *arguments)

    monkeypatch.setattr(Transformer, "loss", interrupted)


# --- what is left out, and what is there already -----------------------------------------------


def test_sentences_that_are_left_out_are_counted(capsys) -> None:
    frame = pd.read_csv("talks.tsv", sep="\t")
    frame.loc[len(frame)] = ["the file " * 60, "die Datei " * 60]
    frame.to_csv("talks.tsv", sep="\t", index=False)
    frame[:9].to_csv("valid.tsv", sep="\t", index=False)
    assert main([*OWN, "--valid", "eng-deu=valid.tsv", "--out", "run"]) == 0
    shown = capsys.readouterr().err
    assert "eng-deu: 1 of 121 sentences left out, longer than --max-length 64\n" in shown


def test_bad_lines_of_validation_text_are_skipped_too(capsys) -> None:
    Path("valid.tsv").write_text("eng\tdeu\nYes\tJa\nNo\n", encoding="utf-8")
    options = [*OWN, "--valid", "eng-deu=valid.tsv", "--out", "run"]
    fails(options, capsys, "valid.tsv: line 3", "skip_bad=yes")
    assert main([*options, "--skip-bad"]) == 0


@pytest.mark.parametrize("name", ["log.jsonl", "vocabulary.model", "notes.txt"])
def test_other_peoples_files_are_not_overwritten(capsys, name: str) -> None:
    Path("mine").mkdir()
    Path("mine", name).write_text("mine\n", encoding="utf-8")
    fails([*OWN, "--out", "mine"], capsys, "mine", "choose another")
    assert Path("mine", name).read_text(encoding="utf-8") == "mine\n"
    with pytest.raises(InputError, match="is not empty"):
        check_free(Path("mine"))
    check_free(Path("mine"), ours=(name, "lock"))
    check_free(Path("absent"))


def test_a_folder_that_cannot_be_is_told(capsys) -> None:
    fails([*SMALL, "--steps", "2", "--out", "talks.tsv"], capsys, "--out talks.tsv: is a file")
    fails([*SMALL, "--steps", "2", "--out", "talks.tsv/x"], capsys, "cannot be written")
    for command in ([*SMALL, "--steps", "2"], ["sweep", "conlang-sim0"]):
        fails([*command, "--results", "talks.tsv"], capsys, "--results talks.tsv: is a file")
    vocabulary = ["data", "vocabulary", "--data", "eng-deu=talks.tsv", "--pieces", "330", "--out"]
    fails([*vocabulary, "talks.tsv/x.model"], capsys, "talks.tsv/x.model: cannot be written")
    Path("folder").mkdir()
    fails([*vocabulary, "folder"], capsys, "folder: cannot be written")
    fails([*vocabulary, "talks.tsv"], capsys, "talks.tsv: is there already")
    assert main([*vocabulary, "x.model"]) == main([*vocabulary, "x.model"]) == 0  # the same


def test_another_run_in_the_folder_is_compared(capsys) -> None:
    assert main([*OWN, "--out", "run"]) == 0
    capsys.readouterr()
    fails([*OWN, "--out", "run", "--d-model", "16"], capsys, "(d_ff: 32 there, 64 here; d_model: 8")
    fails([*OWN, "--out", "run", "--seed", "2"], capsys, "(seed: 1 there, 2 here);")
    frame = pd.read_csv("talks.tsv", sep="\t")
    frame[::-1].to_csv("talks.tsv", sep="\t", index=False)
    fails([*OWN, "--out", "run"], capsys, "(its text, vocabulary or program version differ)")


def test_a_larger_budget_goes_on_from_where_the_decay_began(capsys) -> None:
    decayed = [*OWN, "--decay-share", "0.5"]
    assert main([*decayed, "--out", "once", "--steps", "20"]) == 0
    assert main([*decayed, "--out", "run", "--steps", "12"]) == 0
    capsys.readouterr()
    fails(
        [*decayed, "--out", "run", "--steps", "10"],
        capsys,
        "--out run: its run has gone beyond that (step 7 of 10)",
    )
    assert main([*decayed, "--out", "run", "--steps", "20"]) == 0
    weights = [load_checkpoint(f"{name}/last.safetensors").weights for name in ("once", "run")]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    about = [json.loads(Path(name, "run.json").read_text("utf-8")) for name in ("once", "run")]
    assert about[0] == about[1] and about[1]["training"]["decay_share"] == 0.5


def test_a_run_that_another_process_began_meanwhile_is_left_alone(capsys, monkeypatch) -> None:
    load = data_module.load_run_data

    def slowly(*arguments):
        monkeypatch.setattr(data_module, "load_run_data", load)
        assert main([*OWN, "--out", "run", "--seed", "2"]) == 0
        capsys.readouterr()
        return load(*arguments)

    monkeypatch.setattr(data_module, "load_run_data", slowly)
    assert main([*OWN, "--out", "run"]) == 2
    assert "--out run: holds another run (seed: 2 there, 1 here)" in capsys.readouterr().err
    assert main(["evaluate", "run", "--data", "eng-deu=talks.tsv", "--limit", "5"]) == 0


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asked_to_stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop()


def test_a_torn_file_of_ours_does_not_take_the_folder(capsys) -> None:
    Path("run").mkdir()
    Path("run/.run.json.ab12").touch()
    assert main([*OWN, "--out", "run"]) == 0


def test_a_run_under_way_is_left_alone(capsys) -> None:
    with run_lock(Path("run")):
        fails([*OWN, "--out", "run"], capsys, "run: another process is at work on this run")
    assert main([*OWN, "--out", "run"]) == 0


# --- stopping and going on ---------------------------------------------------------------------


def test_ctrl_c_saves_and_the_run_goes_on_to_the_same_weights(capsys, monkeypatch) -> None:
    command = [*SMALL, "--steps", "6", "--dropout", "0.1", "--keep", "best", "--out"]
    assert main([*command, "whole"]) == 0
    with monkeypatch.context() as patch:
        stop_at(4, patch)
        assert main([*command, "run"]) == 130
    shown = capsys.readouterr().err
    assert "run: stopped at step 4 of 6, and saved; the same command goes on" in shown
    assert read_progress(Path("run/last.safetensors")).step == 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    assert main(["evaluate", "run", "--limit", "5"]) == 0
    assert "run: unfinished, stopped at step 4 of 6" in capsys.readouterr().err
    Path("run/best.safetensors").rename("kept")
    fails(["evaluate", "run"], capsys, "best.safetensors: is missing, and has the weights that the")
    Path("kept").rename("run/best.safetensors")
    assert main(["upgrade", "--from", "run", "--out", "start"]) == 0
    assert "run: unfinished, stopped at step 4 of 6" in capsys.readouterr().err

    # A log that a power cut has damaged is written again.
    lines = Path("run/log.jsonl").read_text(encoding="utf-8")
    Path("run/log.jsonl").write_text(lines + "\0" * 40 + "\n", encoding="utf-8")
    assert main([*command, "run"]) == 0
    shown = capsys.readouterr().err
    assert "run: going on at step 4 of 6\nrun: step 6 of 6: training loss " in shown
    whole, torn = (load_file(f"{name}/last.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(value, torn[name]) for name, value in whole.items())
    logs = [
        pd.read_json(f"{name}/log.jsonl", lines=True).drop(columns="seconds")
        for name in ("whole", "run")
    ]
    assert logs[0].equals(logs[1])
    assert main(["evaluate", "run", "--limit", "5"]) == 0
    assert capsys.readouterr().err == ""


def test_a_second_signal_interrupts_at_once() -> None:
    with asked_to_stop() as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_full_disk_is_told_and_the_run_goes_on(capsys, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "full/last.safetensors")

    with monkeypatch.context() as disk:
        disk.setattr(loop, "save_checkpoint", full)
        assert main([*OWN, "--out", "full"]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("mnmt-repro: full/last.safetensors: No space left on device; the same")
    assert main([*OWN, "--out", "full"]) == 0


def test_a_model_without_a_checkpoint_yet(capsys) -> None:
    assert main([*OWN, "--out", "run"]) == 0
    capsys.readouterr()
    Path("run/last.safetensors").unlink()
    fails(["evaluate", "run", "--data", "eng-deu=talks.tsv"], capsys, "run: no checkpoint yet")
    fails(["upgrade", "--from", "run", "--out", "new"], capsys, "run: no checkpoint yet")


# --- options -----------------------------------------------------------------------------------


def test_devices_that_are_not_here(capsys) -> None:
    for name in ("foo", "cuda:77", "mps", "cpu:0"):
        with pytest.raises(InputError, match=f"--device {name}: "):
            check_device(name)
        fails([*OWN, "--data", "eng-fra=absent.tsv", "--device", name], capsys, f"--device {name}")
        fails(["evaluate", "absent", "--device", name], capsys, f"--device {name}")
    check_device("cpu")


def test_weights_of_the_loss_and_first_weights_are_those_of_the_run(capsys) -> None:
    command = [*SMALL, "--steps", "4", "--results", "store", "--out"]
    loss, first = {"src-aaa": 0.1, "src-bbb": 0.9}, {"src-aaa": 0.7, "src-bbb": 0.3}
    assert main([*command, "loss", "--loss-weights", "src-aaa=0.1, src-bbb=0.9"]) == 0
    assert main([*command, "first", "--first-weights", "src-aaa=0.7,src-bbb=0.3"]) == 0
    assert main([*command, "plain"]) == 0
    runs = {name: json.loads(Path(name, "run.json").read_text("utf-8")) for name in
            ("loss", "first", "plain")}  # fmt: skip
    assert runs["loss"]["training"]["loss_weights"] == loss
    assert runs["first"]["training"]["first_weights"] == first
    assert len({json.dumps(run["identity"]) for run in runs.values()}) == 3
    stored = results.load(root="store", seed=1).groupby("run_id")["p"].agg(set).tolist()
    assert sorted(map(sorted, stored)) == [[0.1, 0.9], [0.5], [0.5]]  # weights in the objective


@pytest.mark.parametrize(
    ("option", "weights", "message"),
    [
        ("--loss-weights", "eng-deu=0.1,eng-fra=0.9", "to each of src-aaa, src-bbb"),
        ("--loss-weights", "src-aaa=0,src-bbb=1", "a weight above 0"),
        ("--loss-weights", "src-aaa=nan,src-bbb=1", "src-aaa must be a number, got nan"),
        ("--first-weights", "src-aaa=0.1,src-bbb=0.1", "must sum to one"),
        ("--first-weights", "src-aaa=x,src-bbb=0.9", "value: 'src-aaa=x,src-bbb=0.9'"),
        ("--first-weights", "src-aaa=0.5,src-bbb=0.5,src-aaa=0.5", "value: "),
        ("--first-share", "0.3", "--first-share goes with --first-weights"),
        ("--first-share", "1.5", "must be at least 0 and below 1, got 1.5"),
    ],
)
def test_weights_by_pair_that_cannot_be(capsys, option: str, weights: str, message: str) -> None:
    fails([*SMALL, "--steps", "2", option, weights, "--out", "run"], capsys, option, message)


def test_a_run_with_first_weights_does_not_grow(capsys) -> None:
    command = [*SMALL, "--first-weights", "src-aaa=0.7,src-bbb=0.3", "--out", "run", "--steps"]
    assert main([*command, "3"]) == 0
    assert main([*command, "3"]) == 0  # it is done
    capsys.readouterr()
    fails([*command, "6"], capsys, "--out run: the weights of its run change at a share of the")


def test_the_next_command_can_be_pasted(capsys) -> None:
    assert main([*OWN, "--out", "my run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    following = shlex.split(lines[-2].removeprefix("next: mnmt-repro "))
    assert following == ["evaluate", "my run", "--data", "eng-deu=FILE"]
    shutil.copy("talks.tsv", "FILE.tsv")
    assert main([*following[:-1], "eng-deu=FILE.tsv"]) == 0
    assert main(["upgrade", "--from", "my run", "--out", "my start"]) == 0
    assert "--continue-from 'my start' --data PAIR=FILE" in capsys.readouterr().out


def test_too_many_pieces_for_the_text(capsys) -> None:
    fails([*OWN, "--pieces", "9000"], capsys, "--pieces 9000: this text gives at most ")
    most = "330"
    assert main([*OWN, "--pieces", most, "--out", "run"]) == 0
    assert len(Vocabulary.load("run/vocabulary.model")) == int(most)
    assert load_checkpoint("run/last.safetensors").config.vocab_size == int(most)


def test_bitexts_in_other_forms_are_told_what_to_change() -> None:
    lines = Path("talks.tsv").read_text(encoding="utf-8").splitlines()
    Path("bare.tsv").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="sentence, add a header line eng<TAB>deu"):
        read_bitext("eng-deu=bare.tsv")
    Path("mac.tsv").write_bytes("\r".join(lines).encode())
    with pytest.raises(InputError, match="carriage return alone"):
        read_bitext("eng-deu=mac.tsv")
    Path("wide.tsv").write_text("\t".join(map(str, range(50_000))) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="neither") as caught:
        read_bitext("eng-deu=wide.tsv")
    assert len(str(caught.value)) < 500
    with pytest.raises(InputError, match="CSV is not read; convert it to TSV"):
        read_bitext("eng-deu=talks.csv")


# --- what it takes -----------------------------------------------------------------------------


def test_log_lines_tell_the_speed_and_the_time_left(capsys) -> None:
    assert main([*OWN, "--out", "run"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "training loss" in line]
    assert lines and all(re.search(r"; [\d,]+ tokens/s, \d\d:\d\d left$", x) for x in lines), lines
    assert lines[-1].endswith("00:00 left")


def test_the_limit_of_a_container_is_seen(tmp_path: Path) -> None:
    """The groups around a process's own bound it, too."""
    groups, tree = tmp_path / "groups", tmp_path / "tree"
    (tree / "job/step").mkdir(parents=True)
    (tree / "job/memory.max").write_text("3000\n")
    (tree / "job/step/memory.max").write_text("max\n")
    groups.write_text("0::/job/step\n")
    assert list(memory_limits(groups, tree)) == [3000]
    assert list(memory_limits(tmp_path / "absent", tree)) == []


def test_a_model_that_memory_cannot_hold_is_refused_before_it_is_made(capsys, monkeypatch) -> None:
    fits = 2 * 2**20
    monkeypatch.setattr(train_module, "machine_memory", lambda: fits)
    command = [*SMALL, "--steps", "2", "--batch-tokens", "4096", "--out", "run"]
    fails(command, capsys, "training takes some", "cpu has", "use --accumulate")
    assert main([*command, "--accumulate", "16"]) == 0


def test_training_is_compiled_where_a_table_says_that_it_pays(capsys, monkeypatch) -> None:
    monkeypatch.setattr("mnmt_repro.training.compiled.can_compile", lambda device: True)
    lower = [False]
    monkeypatch.setattr("mnmt_repro.training.compiled.has_bfloat16", lambda: lower[0])
    monkeypatch.setattr(train_module, "COMPILE_PAYS", {8: 1000})
    trained: list[bool] = []
    precisions: list[str] = []
    real = loop.train

    def train(*args: object, **given: object) -> object:  # the same run, never compiled
        trained.append(args[1].compile)  # type: ignore[attr-defined]
        precisions.append(args[1].precision)  # type: ignore[attr-defined]
        plain = dataclasses.replace(args[1], compile=False)  # type: ignore[type-var]
        return real(*args[:1], plain, *args[2:], **given)

    monkeypatch.setattr("mnmt_repro.runs.execute.train", train)
    few, many = (["--target-tokens", n] for n in ("600", "1200"))
    assert main([*SMALL, *few, "--out", "begun"]) == 0
    assert "not compiled: compiling pays from 1,000 target tokens" in capsys.readouterr().err
    assert main([*SMALL, *many, "--out", "begun"]) == 0  # the choice is kept
    assert main([*SMALL, *many, "--out", "fast"]) == 0
    assert "training is compiled in float32, which pays from 1,000" in capsys.readouterr().err
    assert main([*SMALL, *many, "--out", "fast"]) == 0
    assert main([*SMALL, *many, "--exact", "--out", "exact"]) == 0
    assert trained == [False, False, True, True, False]
    lower[0] = True  # a processor with bfloat16
    assert main([*SMALL, *many, "--out", "fast"]) == 0  # begun in float32
    assert set(precisions) == {"float32"}
    for given in (["--out", "low"], ["--out", "low"], ["--precision", "float32", "--out", "high"]):
        assert main([*SMALL, *many, *given]) == 0
    assert "training is compiled in bfloat16, which pays" in capsys.readouterr().err
    lower[0] = False
    assert main([*SMALL, *many, "--out", "low"]) == 0  # begun in bfloat16
    assert precisions[-4:] == ["bfloat16", "bfloat16", "float32", "bfloat16"]
    capsys.readouterr()
    for more in (["--compile"], ["--precision", "bfloat16"]):
        fails([*SMALL, *few, "--exact", *more], capsys, "--exact: ", more[0])


def test_losses_in_bfloat16_differ_by_less_than_seeds_do() -> None:
    """The rule of `benchmarks/precision.py`, on which the default of `train` rests."""
    stored = json.loads((ROOT / "data" / "benchmarks" / "precision.json").read_text())
    rows = pd.DataFrame(stored["rows"])
    logs = np.log(rows.groupby(["precision", "width", "seed"])["loss"].mean())
    higher = (logs["bfloat16"] - logs["float32"]).unstack("seed")
    half = stats.t.ppf(0.975, higher.shape[1] - 1) * higher.sem(axis=1)
    of_seeds = logs.groupby(["precision", "width"]).std().groupby("width").mean()
    assert higher.shape == (2, 4)
    holds_zero = higher.mean(axis=1).abs() <= half
    assert (holds_zero | (higher.mean(axis=1).abs() + half < of_seeds)).all()


def test_names_that_are_not_utf8(monkeypatch) -> None:
    name, out, err = os.fsdecode(b"\xff"), io.BytesIO(), io.BytesIO()
    for stream, file in (("stdout", out), ("stderr", err)):  # those of pytest are of text
        errors = "strict" if stream == "stdout" else "backslashreplace"
        file = io.TextIOWrapper(file, "utf-8", errors, write_through=True)
        monkeypatch.setattr(sys, stream, file)
    Path("talks.tsv").rename(f"{name}.tsv")
    data = ["--data", f"eng-deu={name}.tsv"]
    assert main([*SMALL, *data, "--pieces", "330", "--steps", "2", "--out", name]) == 0
    assert b"evaluate '\xff' --data" in out.getvalue()
    assert main(["evaluate", name]) == 0  # its text is found again
    for status in (0, 2):
        assert main(["evaluate", name, *data, "--add-to", "losses.csv"]) == status
    assert rb"has eng-deu, \udcff.tsv of \udcff already" in err.getvalue()
    pytest.importorskip("ctranslate2")
    export = ["export", name, "--to", "ct2", "--out"]
    assert main([*export, f"{name}2"]) == 2
    assert main([*export, "fast"]) == 0
    Path("fast").rename(f"{name}2")
    assert main(["translate", f"{name}2", "--to", "deu", "--engine", "ct2"]) == 2
    assert err.getvalue().count(rb"'\udcff' cannot be written in utf-8: rename the file") == 2


def test_without_a_compiler_training_is_plain_and_says_so(capsys, monkeypatch) -> None:
    monkeypatch.setattr("mnmt_repro.training.compiled.can_compile", lambda device: False)
    command = [*SMALL, "--steps", "2", "--out"]
    assert main([*command, "compiled", "--compile"]) == 0
    note = "mnmt-repro: note: --compile needs a C++ compiler, and there is none: training is not"
    assert note in capsys.readouterr().err
    assert main([*command, "plain"]) == 0
    about = [json.loads(Path(name, "run.json").read_text()) for name in ("compiled", "plain")]
    assert about[0]["identity"] == about[1]["identity"]
