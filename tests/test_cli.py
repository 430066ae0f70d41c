"""The command line: every command does what its help says, and tells mistakes on one line."""

from __future__ import annotations

import errno
import html
import io
import itertools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import fails
from small_text import small_bitext

from mnmt_repro import results
from mnmt_repro.__main__ import build_parser, main
from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.cli import losses_table
from mnmt_repro.cli.losses_table import LABELS
from mnmt_repro.cli.options import write_table
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import OF_ONE
from mnmt_repro.runs.training_text import hold_out

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    ["data"], ["data", "list"], ["data", "check"], ["data", "vocabulary"], ["train"], ["upgrade"],
    ["translate"], ["evaluate"], ["compare"], ["fit"], ["recommend"], ["sweep"], ["verify"],
    ["report"], ["dataset"], ["book"],
)  # fmt: skip
SHORT = ["--steps", "3", "--d-model", "8", "--heads", "2", "--curve-points", "2"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))


def write_tsv(path: Path, pair: str = "eng-deu", count: int = 200, domains: bool = False) -> Path:
    text = small_bitext(pair, count)
    columns = {
        name: side for name, side in zip(pair.split("-"), (text.source, text.target), strict=True)
    }
    if domains:
        columns["topic"] = ["even" if i % 2 == 0 else "odd" for i in range(count)]
    pd.DataFrame(columns).to_csv(path, sep="\t", index=False)
    return path


# --- help -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_teaches_by_examples_that_can_be_parsed(command: list[str], capsys) -> None:
    """Options drift; an example that no longer parses would mislead."""
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    examples = capsys.readouterr().out.partition("example")[2].replace("\\\n", " ")
    assert f"mnmt-repro {' '.join(command)}" in examples
    for line in examples.splitlines():
        _, prompt, rest = line.partition("mnmt-repro ")
        if prompt:
            try:
                build_parser().parse_args(shlex.split(re.split(" [<>]", rest)[0], comments=True))
            except InputError as error:  # whose defaults are those of a run that is not here
                assert "runs/talks-start: no model of" in str(error)


def test_the_list_of_commands_is_quicker_than_importing_pandas() -> None:
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['pandas'] = None; "
        "from mnmt_repro.__main__ import main; main(['--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    parts = vars(build_parser())["_subparsers"]._group_actions[0].choices
    assert re.findall(r"^    (\w+)", done.stdout, re.M) == list(parts)


def test_help_and_lists_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from mnmt_repro.__main__ import main; "
        "main(['data', 'list']); main(['sweep']); sys.exit(main(['train']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert "conlang" in done.stdout and "webtech-en-dezh" in done.stdout
    assert done.stderr == (
        "mnmt-repro: `train` needs the extra train (import of torch halted; None in sys.modules): "
        "pip install 'mnmt-repro[train]'\n"
    )


# --- data -------------------------------------------------------------------------------------


def test_data_list(capsys) -> None:
    assert main(["data", "list", "--json"]) == 0
    cards = {card["name"]: card for card in json.loads(capsys.readouterr().out)}
    assert {"conlang", "webtech", "software25", "multi30k", "own"} <= cards.keys()
    assert "eng-deu" in cards["webtech"]["pairs"]
    assert main(["data", "list"]) == 0
    assert "Your own bitext" in capsys.readouterr().out


def test_data_vocabulary(capsys) -> None:
    write_tsv(Path("talks.tsv"))
    command = ["data", "vocabulary", "--data", "eng-deu=talks.tsv", "--out", "talks.model"]
    assert main([*command, "--pieces", "320"]) == 0
    hashed = Vocabulary.load("talks.model").hash
    told = f"talks.model: 320 pieces, new tags: deu, eng, hash {hashed}"
    assert told in capsys.readouterr().out
    fails([*command, "--pieces", "100"], capsys, "pieces = 100 is too small")
    fails([*command, "--data", "eng-deu=talks.tsv"], capsys, "--data eng-deu: given twice")


# --- train, translate, evaluate ---------------------------------------------------------------


def type_lines(monkeypatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))


def test_a_first_run_on_a_conlang(capsys, monkeypatch) -> None:
    assert main(["train", *SHORT]) == 0
    shown = capsys.readouterr().out
    (folder,) = Path("runs").glob("conlang-*")
    assert folder.name.startswith("conlang-d8x1-")
    assert f"{folder}: 3 steps" in shown
    assert "no model can go below 0.22" in shown
    assert f"mnmt-repro translate {folder} --to aaa" in shown
    assert {path.name for path in folder.iterdir()} >= {"run.json", "last.safetensors", "log.jsonl"}
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert about["pairs"] == ["src-aaa", "src-bbb"] and about["tags"] == "source"
    assert about["mixture"] == {"src-aaa": 0.5, "src-bbb": 0.5}

    before = (folder / "last.safetensors").read_bytes()
    assert main(["train", *SHORT]) == 0  # the same command finds its run again
    assert capsys.readouterr().out == shown
    assert (folder / "last.safetensors").read_bytes() == before
    fails(["train", *SHORT, "--seed", "2", "--out", str(folder)], capsys, "holds another run")

    assert main(["evaluate", str(folder), "--limit", "20", "--decode", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["pair"], row["test_set"], row["sentences"]) for row in rows] == [
        ("src-aaa", "indomain", 20), ("src-bbb", "indomain", 20),
    ]  # fmt: skip
    assert all(3 < row["cross_entropy"] < 6 for row in rows)  # ln 79 = 4.37, hardly trained
    assert all(0 <= row["bleu"] <= 100 and "nrefs:1" in row["bleu_signature"] for row in rows)

    from mnmt_repro.corpora.conlang import Conlang, ConlangConfig

    conlang = Conlang(ConlangConfig(concepts=64, syllables=24, min_concepts=4))
    line = conlang.text("src-aaa", 0, 1, split="test")[0][0]
    type_lines(monkeypatch, f"{line}\n\n{line}\n".encode())
    assert main(["translate", str(folder), "--to", "bbb", "--beam", "2"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == "" and lines[0] == lines[2]
    type_lines(monkeypatch, b"this is English\n")
    fails(["translate", str(folder), "--to", "bbb"], capsys, "line 1 is not conlang")
    fails(["translate", str(folder), "--to", "deu"], capsys, "on src-aaa, src-bbb")
    fails(["evaluate", str(folder), "--test", "newstest21"], capsys, "there are indomain")
    fails(["evaluate", str(folder), "--pairs", "aaa-src"], capsys, "on src-aaa, src-bbb")


def test_a_direction_without_training_text_is_zero_shot(capsys, monkeypatch) -> None:
    for name, pair in (("a", "eng-deu"), ("b", "deu-eng"), ("c", "eng-fra")):
        write_tsv(Path(f"{name}.tsv"), pair, 60)
    data = ["--data", "eng-deu=a.tsv", "--data", "deu-eng=b.tsv", "--data", "eng-fra=c.tsv"]
    assert main(["train", *data, "--tags", "both", "--pieces", "330", "--out", "own", *SHORT]) == 0
    capsys.readouterr()
    zero = ["--data", "deu-fra=a.tsv?source=deu&target=eng"]
    assert main(["evaluate", "own", *zero, "--add-to", "losses.csv", "--json"]) == 0
    shown = capsys.readouterr()
    assert "deu-fra: not trained on, so zero-shot" in shown.err
    assert [row["pair"] for row in json.loads(shown.out)] == ["deu-fra"]
    assert pd.read_csv("losses.csv")[["pair", "p"]].to_numpy().tolist() == [["deu-fra", 0.0]]
    type_lines(monkeypatch, b"Guten Tag\n")
    assert main(["translate", "own", "--from", "deu", "--to", "fra", "--beam", "1"]) == 0
    assert "zero-shot" in capsys.readouterr().err
    # French was never a source, and Xhosa is unknown.
    back = "fra-deu=c.tsv?source=fra&target=eng"
    fails(["evaluate", "own", "--data", back], capsys, "--data fra-deu", "on deu-eng, eng-deu")
    fails(["translate", "own", "--to", "xho", "--from", "eng"], capsys, "--to xho")
    # Trained on with German alone, the model can still be asked what it forgot of French.
    assert main(["export", "own", "--to", "hf", "--out", "own-hf"]) == 0
    assert main(["upgrade", "--from", "own-hf", "--out", "start"]) == 0
    new = ["--steps", "3", "--curve-points", "2", "--out", "on"]
    assert main(["train", "--continue-from", "start", "--data", "eng-deu=a.tsv", *new]) == 0
    capsys.readouterr()
    old = ["evaluate", "on", "--data", "eng-fra=c.tsv", "--json"]
    assert main(old) == 0
    assert "eng-fra: not among the pairs of its last training" in capsys.readouterr().err


def test_your_own_bitext_from_end_to_end(capsys, monkeypatch) -> None:
    write_tsv(Path("talks.tsv"))
    write_tsv(Path("test.tsv"), count=30, domains=True)
    text = small_bitext("deu-eng", 150)
    Path("back.de").write_text("\n".join(text.source) + "\n", encoding="utf-8")
    Path("back.en").write_text("\n".join(text.target) + "\n", encoding="utf-8")
    command = [
        "train", "--data", "eng-deu=talks.tsv", "--data", "deu-eng=back.de,back.en",
        "--tags", "both", "--weights", "deu-eng=0.75,eng-deu=0.25", "--pieces", "330",
        "--arch", "fairseq", "--optimiser", "adamw", "--keep", "best", "--out", "own", *SHORT,
    ]  # fmt: skip
    assert main(command) == 0
    trained = capsys.readouterr().out
    about = json.loads(Path("own/run.json").read_text(encoding="utf-8"))
    assert about["mixture"] == {"deu-eng": 0.75, "eng-deu": 0.25}
    assert about["vocabulary"] == Vocabulary.load("own/vocabulary.model").hash
    test = "eng-deu=test.tsv?source=eng&target=deu&domain=topic"
    assert main(["evaluate", "own", "--data", test, "--decode", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["domain"], row["sentences"]) for row in rows] == [
        ("all", 30), ("even", 15), ("odd", 15),
    ]  # fmt: skip
    assert {row["test_set"] for row in rows} == {"test.tsv"}
    assert {"chrf", "chrfpp", "piece_bleu"} <= rows[0].keys()
    assert main(["evaluate", "own", "--data", test, "--add-to", "losses.csv"]) == 0
    assert "cross_entropy" in capsys.readouterr().out
    (added,) = pd.read_csv("losses.csv").to_dict("records")
    n = parameter_counts(ModelConfig(**about["model"]))["non_embedding"]
    assert (added["n"], added["p"], added["pair"], added["run_id"]) == (n, 0.25, "eng-deu", "own")
    assert added["loss"] == rows[0]["cross_entropy"] and added["test_set"] == "test.tsv"
    fails(["fit", "."], capsys, "holds runs; their losses are in results")
    again = ["evaluate", "own", "--data", test, "--add-to"]
    fails([*again, "losses.csv"], capsys, "has eng-deu, test.tsv of own already")
    fails([*again, "talks.tsv"], capsys, "name another file")
    fails([*again, "talks.tsv/l.csv"], capsys, "--add-to talks.tsv: is a file")
    Path(".l.csv.lock").symlink_to("talks.tsv")  # seen only once the table is written
    assert main([*again, "l.csv"]) == 1
    assert "cross_entropy" in capsys.readouterr().out
    Path("loop.csv").symlink_to("loop.csv")
    assert main([*again, "loop.csv"]) == 0
    assert "cross_entropy" in capsys.readouterr().out
    assert main(["evaluate", "own", "--json"]) == 0  # what was held out, as in the stored row
    held = {row["pair"]: row["cross_entropy"] for row in json.loads(capsys.readouterr().out)}
    stored = results.load(root="results").query("test_set == 'indomain'").set_index("pair")
    assert held == pytest.approx(stored["cross_entropy"].to_dict())
    for pair, row in stored.iterrows():  # on all of it, though the curve is on a sample
        loss = f"{row['cross_entropy']:.4f} nats a token on {row['sentences']} validation sentences"
        assert f"{pair}: {loss}" in trained
    Path("back.de").write_text("\n".join(text.source[1:]) + "\nEnde\n", encoding="utf-8")
    fails(["evaluate", "own"], capsys, "text of deu-eng has changed", "name text with --data PAIR=")

    type_lines(monkeypatch, "öffne den Ordner\n".encode())
    assert main(["translate", "own", "--to", "eng", "--from", "deu"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    type_lines(monkeypatch, b"\xff\xfe\n")
    fails(["translate", "own", "--to", "eng"], capsys, "standard input: line 1: not UTF-8")

    # Another vocabulary in the folder would give other ids: refused, not used.
    Path("own/vocabulary.model").rename("kept.model")
    write_tsv(Path("more.tsv"), count=300)
    other = ["data", "vocabulary", "--data", "eng-deu=more.tsv", "--pieces", "330", "--out"]
    assert main([*other, "own/vocabulary.model"]) == 0
    capsys.readouterr()
    fails(["evaluate", "own", "--data", test], capsys, "the model was trained with")
    # And a vocabulary can be given.
    again = ["train", "--data", "eng-deu=talks.tsv", "--vocabulary", "kept.model", *SHORT]
    assert main([*again, "--out", "given"]) == 0
    assert Path("given/vocabulary.model").read_bytes() == Path("kept.model").read_bytes()


def test_mistakes_in_training_options_are_told(capsys) -> None:
    write_tsv(Path("talks.tsv"))
    own = ["train", "--data", "eng-deu=talks.tsv"]
    for options, *parts in (
        ("--pairs src-zzz", "--pairs src-zzz", "src-aaa", "bbb-src"),
        ("--weights 0.33,0.66", "must sum to one"),
        ("--corpus nothing", "there are conlang, webtech"),
        ("--corpus webtech --pairs eng-xho", "there are deu-eng"),
        ("--corpus outofdomain", "not to train on"),
        ("--weights 1", "--weights 1: give one weight to each of src-aaa, src-bbb"),
        ("--weights src-aaa=0.5,src-zzz=0.5", "give one weight to each of src-aaa, src-bbb"),
        ("--weights src-aaa=0.5,0.5", "--weights 0.5: write PAIR=NUMBER"),
        ("--weights 1,", "--weights 1,: part 2 is empty"),
        ("--weights 1,0 --temperature 2", "--weights: leave out"),
        ("--upsample src-zzz=2", "src-zzz, which is not in the mixture"),
        ("--heads 5", "--heads 5: must divide --d-model 32"),
        ("--attention-dropout 0.1", "goes with --arch fairseq"),
        ("--valid eng-deu=talks.tsv", "--valid goes with --data"),
        ("--data eng-deu=absent.tsv", "absent.tsv"),
        ("--dmodel 3", "--dmodel is no option; did you mean --d-model?"),
        ("--steps 5 --target-tokens 100", "either as --target-tokens or as --steps, not both"),
        ("--shard", "--shard: adafactor cannot be split; add --optimiser adamw"),
        ("--arch rnn", "train: argument --arch: invalid choice: 'rnn'"),
    ):
        fails(["train", *options.split()], capsys, *parts)
    fails([*own, "--corpus", "webtech"], capsys, "leave out --corpus")
    fails([*own, "--pieces", "200"], capsys, "too small")
    fails([*own, "--pieces", "330", "--max-length", "2", "--steps", "1"], capsys, "--max-length 2")
    fails(["evaluate", "absent"], capsys, "absent: no model of `mnmt-repro train` here")
    Path("last.safetensors").write_bytes(b"weights")
    wrong = ["upgrade", "-o", "new", "--from", "last.safetensors"]
    fails(wrong, capsys, "last.safetensors: is a file; give the model's folder, .")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--steps", "0", "must be at least 1, got 0"),
        ("--steps", "99999999999999999999999", "must be at most 9223372036854775807"),
        ("--learning-rate", "0", "must be above 0, got 0.0"),
        ("--label-smoothing", "nan", "must be a number, got 'nan'"),
    ],
)
def test_numbers_that_no_run_could_have_are_refused(
    option: str, value: str, words: str, capsys
) -> None:
    """By the rule that reads a stored run; else it would be trained, and never be read again."""
    fails(["train", option, value], capsys, f"train: argument {option}: {words}")


def test_a_loss_that_diverges_ends_with_one_line(capsys) -> None:
    command = ["train", *SHORT, "--optimiser", "adamw", "--warmup-steps", "0"]
    assert main([*command, "--steps", "9", "--learning-rate", "1e36"]) == 1
    error = capsys.readouterr().err
    path, line = error.splitlines()
    assert "not compiled" in path
    assert "became nan at step 1" in line and "lower learning_rate" in line


def test_a_twentieth_is_held_out_the_same_each_time() -> None:
    texts = {pair: small_bitext(pair, 300) for pair in ("eng-deu", "deu-eng")}
    train, valid = hold_out(texts)
    for pair, text in train.items():
        assert len(text) + len(valid[pair]) <= 300 and 5 <= len(valid[pair]) <= 40
    assert hold_out(texts) == (train, valid)
    with pytest.raises(InputError, match="too few different sentences"):
        hold_out({"eng-deu": small_bitext(count=1)})


@pytest.mark.parametrize("pair", ["eng-deu", "en-de", "eng_Latn-deu_Latn", "deu-fra"])
def test_neither_direction_is_trained_on_what_the_other_validates(pair: str) -> None:
    there = small_bitext("eng-deu", 300)
    source, target = pair.split("-")
    texts = {
        pair: Bitext(pair=pair, source=there.source, target=there.target),
        f"{target}-{source}": Bitext(
            pair=f"{target}-{source}", source=there.target, target=there.source
        ),
    }
    train, valid = hold_out(texts)
    held = {
        frozenset(both)
        for each in valid.values()
        for both in zip(each.source, each.target, strict=True)
    }
    assert len(held) >= 5
    for each in train.values():
        assert len(each) > 200
        assert not held & set(map(frozenset, zip(each.source, each.target, strict=True)))


# --- fit and recommend ------------------------------------------------------------------------

SIZES = [4e3, 1e4, 3e4, 6e4, 1.2e5]
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
SIZE = ["--n", "3e4"]


def law_table(*pairs: str) -> pd.DataFrame:
    """Losses that follow Eq. 11 exactly, with f(p) = p ** 0.5, beta 60, alpha 0.3, l_inf 1."""
    rows = [
        {"pair": pair, "p": p, "n": n, "loss": 60 * (p**0.5 * n) ** -0.3 + 1.0}
        for pair in pairs or ("eng-deu", "eng-zho")
        for p in WEIGHTS
        for n in SIZES
    ]
    table = pd.DataFrame(rows)
    table.to_csv("l.csv", index=False)
    return table


def noisy_table(seed: int = 0, **columns: Any) -> pd.DataFrame:
    """The same with 0.3 % of noise."""
    table = law_table().assign(**columns)
    table["loss"] *= 1 + 0.003 * np.random.default_rng(seed).standard_normal(len(table))
    table.to_csv("l.csv", index=False)
    return table


def fitted(capsys, *options: str) -> list[dict[str, Any]]:
    assert main(["fit", "l.csv", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


LAWS = {
    "power": (lambda p, n: 60 * n**-0.3 + 1, {"alpha": 0.3, "l_inf": 1.0, "beta": 60.0}),
    "joint": (lambda p, n: 60 * (p**0.5 * n) ** -0.3 + 1, {"beta[0.1]": 60 * 0.1**-0.15}),
    "eq12": (
        lambda p, n: 60 * ((p + 0.4 * p**0.5 * (1 - p) ** 1.5) * n) ** -0.3 + 1,
        {"c1": 0.4, "c2": 0.5, "c3": 1.5},
    ),
    "eq13": (lambda p, n: 60 * ((0.8 * p + 0.2) * n) ** -0.3 + 1, {"c1": 0.8}),
}


@pytest.mark.parametrize("law", LAWS)
def test_fit_finds_the_law_that_made_a_table(law: str, capsys) -> None:
    loss, true = LAWS[law]
    rows = [
        {"p": p, "n": n, "loss": loss(p, n)}
        for p in (WEIGHTS if law != "power" else (1.0,))
        for n in SIZES
    ]
    pd.DataFrame(rows).to_csv("l.csv", index=False)
    options = ["--law", law] if law in ("eq12", "eq13") else []
    (fit,) = fitted(capsys, *options)
    assert fit["law"] == law and fit["identified"]
    assert {name: fit["params"][name] for name in true} == pytest.approx(true, rel=1e-3)
    assert main(["fit", "l.csv", *options]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("all rows: loss = ")
    if law in ("joint", "eq12", "eq13"):
        mine = {float(p): each["f"] for p, each in fit["fraction"].items()}
        expected = {p: (loss(p, 1e4) - 1) ** (-1 / 0.3) / 59 ** (-1 / 0.3) for p in WEIGHTS}
        ones = {p: each / mine[1.0] for p, each in mine.items()}
        assert ones == pytest.approx({p: f / expected[1.0] for p, f in expected.items()}, rel=1e-3)
        assert "effective fraction f(p), with its 95 % interval" in shown
        fails(["fit", "l.csv", *options, "--column", "p=x"], capsys, "no column 'x'", "p=NAME")


def add_model(width: int, p: float, known: bool = True) -> None:
    """What `evaluate --add-to l.csv` does with a model of two pairs whose losses follow a law."""
    config = ModelConfig.t5(vocab_size=50, d_model=width, layers=1, heads=2, d_ff=4 * width)
    trained: Any = SimpleNamespace(
        model=SimpleNamespace(config=config),
        folder=Path(f"{width}-{p}"),
        weights={"eng-deu": p, "eng-zho": 1 - p} if known else {},
        vocabulary=SimpleNamespace(hash="v"),
        any_pair=not known,
    )
    n = parameter_counts(config)["non_embedding"]
    scores = [
        {"pair": pair, "test_set": f"{pair}.tsv", "domain": "all",
         "cross_entropy": LAWS["eq12"][0](q, n)}
        for pair, q in {"eng-deu": p, "eng-zho": 1 - p}.items() if q
    ]  # fmt: skip
    losses_table.add_losses(Path("l.csv"), scores, trained)


def test_what_evaluate_adds_feeds_the_laws(capsys) -> None:
    for width in (8, 16, 32, 64):
        for p in (0.0, 0.2, 0.5, 0.8, 1.0):
            add_model(width, p)
    for law in fitted(capsys, "--law", "eq12"):
        assert law["identified"] and law["params"]["alpha"] == pytest.approx(0.3, rel=1e-3)
    assert main(["recommend", "l.csv", "--n", "20000", "--json"]) == 0
    weights = json.loads(capsys.readouterr().out)["weights"]
    assert weights == pytest.approx({"eng-deu": 0.5, "eng-zho": 0.5}, abs=0.01)
    # Of models of other programs no weight is known.
    Path("l.csv").unlink()
    for width in (8, 16, 32, 64):
        add_model(width, 1.0, known=False)
    (law,) = fitted(capsys)
    assert law["law"] == "power" and law["params"]["beta"] == pytest.approx(60, rel=1e-3)
    wish = ["recommend", "l.csv", "--n", "20000"]
    fails(wish, capsys, "l.csv line 2, column p: not a number")


def test_each_pair_has_its_law(capsys) -> None:
    table = law_table()
    assert [each["pair"] for each in fitted(capsys)] == ["eng-deu", "eng-zho"]
    # Each may have a test set of its own.
    table.assign(test_set=table["pair"] + ".tsv").to_csv("l.csv", index=False)
    assert {each["law"] for each in fitted(capsys)} == {"joint"}


def test_a_law_of_mixtures_of_three_pairs(capsys) -> None:
    pairs, worth = (
        ["eng-deu", "eng-fra", "eng-zho"],
        np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 1]]),
    )
    steps = [p for p in itertools.product((0.1, 0.2, 0.4, 0.6), repeat=3) if np.isclose(sum(p), 1)]
    steps += [(0.5, 0.5, 0.0), (0.0, 0.5, 0.5)]
    table = pd.DataFrame(
        {"run_id": f"{n:g} {p}", "pair": pair, "p": p[i], "n": n,
         "loss": (1 + 60 * n**-0.3) * (worth[i] @ p) ** -0.2}
        for p in steps for n in SIZES for i, pair in enumerate(pairs) if p[i]
    )  # fmt: skip
    table.to_csv("l.csv", index=False)
    wish = ["--mixture-column", "run_id"]
    german, _, chinese = fitted(capsys, *wish)
    assert german["law"] == "mixture" and german["observations"] == 5 * (len(steps) - 1)
    assert german["params"]["t[eng-fra]"] == pytest.approx(0.3, rel=1e-3)
    assert chinese["params"]["t[eng-deu]"] == pytest.approx(0, abs=1e-3)
    assert german["left_out"]["predicted"] < 1e-4 < 0.05 < german["left_out"]["naive"]
    assert main(["fit", "l.csv", *wish]) == 0
    assert "error on mixtures left out: " in capsys.readouterr().out
    fails(["fit", "l.csv", *wish, "--law", "eq12"], capsys, "leave out --law")
    noise = np.exp(0.003 * np.random.default_rng(0).standard_normal(len(table)))
    table.assign(loss=table["loss"] * noise).to_csv("l.csv", index=False)
    assert main(["recommend", "l.csv", *wish, *SIZE, "--json"]) == 0
    weights = json.loads(capsys.readouterr().out)["weights"]
    # German and French help each other. With x for each, 2 (1.3 x)^-0.2 + (1 - 2 x)^-0.2 is least.
    x = 1 / (2 + 1.3 ** (1 / 6))
    assert list(weights.values()) == pytest.approx([x, x, 1 - 2 * x], abs=0.02)
    table[1:].to_csv("l.csv", index=False)
    fails(["fit", "l.csv", *wish], capsys, "run_id 4000 (", "add up to", "a row for each")


@pytest.mark.parametrize(
    "command, option",
    [("train --data", "--data"), ("data check --data eng-deu=a.tsv --test", "--test")],
)
def test_a_bitext_that_is_written_wrongly_is_told_with_its_option(command, option, capsys) -> None:
    Path("a.tsv").write_text("source\ttarget\nx\ty\n", encoding="utf-8")
    told = f"{option}: bitext 'talks.tsv': write it PAIR=FILE.tsv"
    fails([*command.split(), "talks.tsv"], capsys, told)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no rows below a header line"),
        ("n,loss\n10,a\n20,b\n", "line 2, column loss: not a number (write a decimal point"),
        ("n,loss\n1,3,\n2,2,\n", "line 2: has 3 values, and the header 2"),
        ("n|loss\n1|2\n", "columns are told apart by comma, semicolon or tab"),
        ("n,loss,loss\n1,3,4\n", "line 1: two columns are called 'loss'"),
        ("# made today\nn,loss\n1,3\n", "a comment above the header?"),
        ("n,bleu\n1,3\n", "name yours with --column loss=NAME; there are n, bleu"),
        ("n,loss,größe\n1,2,3\n", "is not in UTF-8"),
        ("n,loss,pair\n1,2,a\x1b\n", "line 2: holds the character U+001B"),
        ("n,loss,seed\n10,3.25,1\n20,2.", "line 3: has 2 values, and the header 3"),
    ],
)
def test_a_table_that_cannot_be_read_is_told(content: str, words: str, capsys) -> None:
    Path("l.csv").write_bytes(content.encode("latin-1"))
    fails(["fit", "l.csv"], capsys, "l.csv", words)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("pair", "", "no pair is named: it is empty"),
        ("p", "", "leave out a row that has none): it is empty"),
        ("p", 10, "weights lie from 0 to 1 (divide per cents by 100): '10'"),
        ("n", "100,000", "not a number (write a decimal point, or leave"),
        ("n", 0, "sizes must be above 0: '0'"),
        ("loss", "inf", "leave out a row that has none): 'inf'"),
        ("loss", -1.5, "losses must be above 0 (log-probabilities: change the sign; a quality"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_by_its_line(
    column: str, value: object, words: str, capsys
) -> None:
    table = law_table().astype(object)
    table.loc[50, column] = value
    table.to_csv("l.csv", index=False)
    blank = Path("l.csv").read_text(encoding="utf-8").replace("\n", "\n\n", 1)
    Path("l.csv").write_text(blank, encoding="utf-8")
    fails(["fit", "l.csv"], capsys, f"l.csv line 53, column {column}: ", words)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_of_a_table_is_told_from_its_header(separator: str, capsys) -> None:
    table = law_table().rename(columns={"loss": " loss "})
    table["pair"] += [" " * (i % 2) for i in range(len(table))]
    table.to_csv("l.csv.gz", sep=separator, index=False)
    assert main(["fit", "l.csv.gz", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_what_a_law_is_not_of_is_left_out_or_asked_for(capsys) -> None:
    table = law_table().assign(test_set="indomain")
    expected = fitted(capsys)
    both = pd.concat([table, table.assign(test_set="newstest", loss=table["loss"] + 1)])
    both.to_csv("l.csv", index=False)
    told = "column test_set has indomain, newstest, and a law is of one: add --where test_set="
    for command in ("fit", "recommend"):
        fails([command, "l.csv", *SIZE[: 3 * (command != "fit")]], capsys, told)
    assert fitted(capsys, "--where", "test_set=indomain") == expected
    fails(["fit", "l.csv", "--where", "test_set=x"], capsys, "no such row", "newstest")
    fails(["fit", "l.csv", "--where", "tests=x"], capsys, "write COLUMN=VALUE", "test_set")
    # Zero-shot rows are left out and counted.
    unseen = table[table["p"] == 1].assign(p=0.0, loss=9.0)
    pd.concat([table, unseen]).to_csv("l.csv", index=False)
    main(["fit", "l.csv"])
    assert "10 zero-shot rows (p = 0) are left out" in capsys.readouterr().err
    unseen.to_csv("l.csv", index=False)
    fails(["fit", "l.csv"], capsys, "l.csv: all rows are zero-shot")


def notes(table: pd.DataFrame, capsys) -> str:
    table.to_csv("l.csv", index=False)
    main(["fit", "l.csv"])
    return capsys.readouterr().err


def test_losses_that_look_like_perplexities_are_told(capsys) -> None:
    table = law_table("eng-deu")
    assert notes(table, capsys) == ""
    assert "perplexities?" in notes(table.assign(loss=np.exp(table["loss"])), capsys)
    assert "are they logarithms" in notes(table.assign(n=np.log10(table["n"])), capsys)


def test_what_would_be_a_traceback_is_one_line(monkeypatch, capsys) -> None:
    Path("grid.yml").write_text("sizes: " + 3000 * "[" + 3000 * "]")
    fails(["sweep", "grid.yml", "--dry-run"], capsys, "nested too deeply, or contains itself")
    fails(["fit", "/dev/zero"], capsys, "/dev/zero: cannot be read (it is a device)")
    fails(["train", "--max-length", "5"], capsys, "generated sentences have up to 13 tokens")
    fails(["fit", "\x1b[2J\u202e.csv"], capsys, r"\x1b[2J\u202e.csv: no such file")
    law_table("eng-deu").assign(pair="a\u202eb").to_csv("l.csv", index=False)
    main(["fit", "l.csv"])
    assert "a\\u202eb: loss" in capsys.readouterr().out
    fails(["fit", "l.csv", "--mixture-column", "loss"], capsys, "column loss has two uses")
    law_table("eng-deu").assign(pair="größe").to_csv("l.csv", index=False)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        assert main(["fit", "l.csv"]) == 2
    assert "'\\xf6' cannot be written in ascii" in capsys.readouterr().err


def test_no_cell_of_a_table_becomes_a_formula(capsys) -> None:
    table = pd.DataFrame({"pair": ["-1.5e-3", '=HYPERLINK("x")'], "loss": [-1.0, 2.0]})
    with pytest.raises(InputError, match="would run '=HYPERLINK"):
        write_table(Path("new.csv"), "--add-to", table)
    write_table(Path("new.csv"), "--add-to", table[:1])
    assert pd.read_csv("new.csv")["loss"].tolist() == [-1.0]


def test_rows_of_one_cell_that_are_no_seeds_are_told(capsys) -> None:
    table = law_table("eng-deu")
    other = table.assign(loss=table["loss"] + 0.8)
    assert notes(pd.concat([table.assign(seed=1), other.assign(seed=2)]), capsys) == ""
    told = notes(pd.concat([table.assign(split="a"), other.assign(split="b")]), capsys)
    assert f"{2 * len(table)} rows share p, pair, n with others" in told
    assert "but differ in split: keep one value with --where" in told
    assert "70 rows are exact copies of others" in notes(pd.concat([table] * 3), capsys)
    # A second metric is no setting.
    scores = [table.assign(chrf=k + np.arange(len(table)) / 9) for k in (20, 30)]
    assert "chrf" not in notes(pd.concat(scores), capsys)
    kinds = pd.concat([table.assign(vocabulary_hash="a"), other.assign(vocabulary_hash="b")])
    assert "models of several vocabularies" in notes(kinds, capsys)


def test_the_weight_of_another_pair_is_suspected(capsys) -> None:
    table = law_table()
    wrong = table["pair"] == "eng-zho"
    table.loc[wrong, "p"] = (1.05 - table.loc[wrong, "p"]).round(6)
    told = notes(table, capsys)
    assert "eng-zho: does worse at p = " in told and "eng-deu: does worse" not in told


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("x.so: failed to map segment"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_too_little_memory_is_told(error: Exception, monkeypatch, capsys) -> None:
    def read(*_: object) -> None:
        raise error

    monkeypatch.setattr(losses_table, "_read", read)
    assert main(["fit", "losses.csv"]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_columns_of_one_value_are_the_same_for_laws_and_tables() -> None:
    assert {"pair", *LABELS} == set(OF_ONE)


def test_columns_may_have_other_names(capsys) -> None:
    names = {"pair": "Language pair", "p": "weight"}
    law_table().rename(columns=names).to_csv("other.csv", index=False)
    renamed = ["other.csv", "--column", "pair=Language pair", "--column", "p=weight"]
    for command in (["fit", "--json"], ["recommend", *SIZE]):
        assert main([*command, "l.csv"]) == 0
        expected = capsys.readouterr()
        assert main([*command, *renamed]) == 0
        assert capsys.readouterr() == expected and expected.err == ""
    # Unnamed, all 70 rows would be one curve: at each size 14 of them.
    main(["fit", "other.csv"])
    note = capsys.readouterr().err
    assert "70 rows share n with others and are taken as seeds of one cell, but differ in " in note
    assert "apart by --column p=NAME or --column pair=NAME" in note
    fails(["recommend", "other.csv", *SIZE], capsys, "no column 'p'", "--column p=NAME")
    fails(["fit", "l.csv", "--column", "d=tokens"], capsys, "--column d=tokens: write n, loss, p,")


def test_fit_says_how_its_intervals_are_made(capsys) -> None:
    n, noise = np.geomspace(1e3, 1e6, 40), np.random.default_rng(2).standard_normal(40)
    pd.DataFrame({"n": n, "loss": 60 * n**-0.3 * (1 + 0.05 * noise)}).to_csv("l.csv", index=False)
    assert main(["fit", "l.csv"]) == 0
    shown = capsys.readouterr()
    assert "bounds active: l_inf >= 0" in shown.out
    assert "intervals: percentiles of refits to resampled residuals" in shown.out


def test_no_weights_are_recommended_where_the_runs_leave_them_open(capsys) -> None:
    table = law_table()
    table[table["p"] < 1].to_csv("mixed.csv", index=False)
    assert main(["fit", "mixed.csv"]) == 0
    assert "not identified: no row has p = 1; add runs of eng-deu alone" in capsys.readouterr().out
    assert main(["recommend", "mixed.csv", *SIZE]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "eng-deu: no row has p = 1; add runs of eng-deu alone" in shown.err
    assert main(["recommend", "mixed.csv", *SIZE, "--force"]) == 0
    assert "--weights" in capsys.readouterr().out
    far = ["recommend", "l.csv", "--n", "1e6", "--force"]
    fails(far, capsys, "more than 4 times the largest trained size (120,000)")


def test_a_quality_has_a_direction_and_may_have_a_ceiling(capsys) -> None:
    # A slow rise whose law without a ceiling ends far above 100.
    table = law_table("eng-deu").query("p == 1")[["n"]]
    table.assign(chrf=130 - 200 * table["n"] ** -0.1).to_csv("l.csv", index=False)
    quality = ["--column", "loss=chrf", "--direction", "max"]
    for options, limit in (([], 130), (["--ceiling", "100"], 100)):
        (fit,) = fitted(capsys, *quality, *options)
        assert fit["params"]["l_inf"] == pytest.approx(limit, rel=1e-3)
    fails(["fit", "l.csv", *quality[:2], "--ceiling", "100"], capsys, "add --direction max")
    fails(["fit", "l.csv", *quality, "--ceiling", "9"], capsys, "above the best score")
    table = law_table()
    table.assign(chrf=60 - 4 * (table["loss"] - 1)).to_csv("l.csv", index=False)
    assert main(["recommend", "l.csv", *SIZE, *quality]) == 0
    heads = ["pair", "p", "p_low", "p_high", "chrf", "low", "high", "regret"]
    assert capsys.readouterr().out.splitlines()[0].split() == heads


def test_an_absurd_value_is_named_by_its_line(capsys) -> None:
    table = law_table()
    table.loc[40, "loss"] = 1e-150
    table.to_csv("l.csv", index=False)
    fails(["fit", "l.csv"], capsys, "eng-zho: loss: line 42 is 1e-150")


def test_a_law_that_is_not_identified_ends_with_status_1(capsys) -> None:
    Path("l.csv").write_text("n,loss\n1,2\n2,2\n4,2\n8,2\n16,2\n", encoding="utf-8")
    assert main(["fit", "l.csv"]) == 1
    assert "not identified" in capsys.readouterr().out
    Path("l.csv").write_text("n,loss\n1,5\n4,3\n16,2\n", encoding="utf-8")
    assert main(["fit", "l.csv"]) == 0
    assert "nothing is left to judge the law by" in capsys.readouterr().out


def test_a_report_that_cannot_be_made_loses_no_fit(capsys, monkeypatch) -> None:
    law_table()
    startup = Path("ipython/profile_default/startup")
    startup.mkdir(parents=True)
    (startup / "dies.py").write_text("import os; os._exit(1)", encoding="utf-8")
    monkeypatch.setenv("IPYTHONDIR", "ipython")
    assert main(["fit", "l.csv", "--report", "r.html"]) == 2
    shown = capsys.readouterr()
    assert "alpha" in shown.out and "--report: its notebook did not run (Kernel died" in shown.err


@pytest.mark.usefixtures("late_kernel")
def test_the_report_is_one_offline_file_with_the_rows_that_were_asked_for(capsys) -> None:
    table = noisy_table()
    name = "l\nimport pathlib; pathlib.Path('made').touch()\n.csv"
    both = pd.concat([table.assign(lr="0.10"), table.assign(lr="0.2", loss=9.0)])
    both.to_csv(name, index=False)
    command = ["fit", name, "--where", "lr=0.10", "--report", "r.html"]
    assert main([*command, "--law", "eq12"]) == 0
    printed = capsys.readouterr().out.strip()
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    assert printed in page and "(35 rows" in printed
    assert page.count("data:image/svg+xml") == 5  # curves and fraction of each pair, frontier
    assert not re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?:https?:)?//', page)
    assert "<script" not in page and not Path("made").exists()
    fails(command, capsys, "r.html: is there already")


def test_recommend(capsys) -> None:
    law_table()
    command = ["recommend", "l.csv", "--n", "3e4", "--json", "--law", "eq12"]
    # Two pairs of the same law: whatever is asked of both alike, half each is the answer.
    each = ["--prefer", "eng-deu=1", "--prefer", "eng-zho=1"]
    for wish in ([], ["--prefer", "eng-deu=1,eng-zho=1"], each):
        assert main([*command, *wish]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["weights"] == pytest.approx({"eng-deu": 0.5, "eng-zho": 0.5}, abs=0.01)
        assert {"low", "high", "regret", "weights_low"} <= answer.keys()
    assert main(["recommend", "l.csv", *SIZE]) == 0
    shown = capsys.readouterr().out
    assert "--data eng-zho=FILE --weights eng-deu=0.5000,eng-zho=0.5000" in shown


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("--prefer eng-deu", "write PAIR=NUMBER"),
        ("--prefer ,", "importance: of no pair"),
        ("--prefer eng-deu=1", "importance: of eng-deu; give each of eng-deu, eng-zho a number"),
        ("--prefer eng-deu=-1,eng-zho=2", "give numbers from 0"),
        ("--where pair=eng-deu", "rows of eng-deu alone; a trade-off needs two"),
    ],
)
def test_a_wish_that_cannot_be_is_told(wish: str, words: str, capsys) -> None:
    law_table()
    fails(["recommend", "l.csv", "--n", "3e4", *wish.split()], capsys, words)
