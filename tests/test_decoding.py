"""Scores of translations: made from checkpoints, stored apart, joined to the runs' rows."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from small_runs import EASY, PAIRS, VARIED, adamw, sentences
from test_experiments import tiny_spec

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation import learned_metrics
from mnmt_repro.evaluation.search import translate
from mnmt_repro.papers.cohorts import catalogue
from mnmt_repro.results import decodings
from mnmt_repro.runs import decoding
from mnmt_repro.runs.data import CONLANG_TEST_SENTENCES, TestSet
from mnmt_repro.runs.decoding import decode, settings_of
from mnmt_repro.runs.execute import execute
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.checkpoint import copy_checkpoint, load_checkpoint
from mnmt_repro.training.config import BEST, LAST

SENTENCES = 30
CHOSEN = [round(i * (CONLANG_TEST_SENTENCES - 1) / (SENTENCES - 1)) for i in range(SENTENCES)]


class Trained:
    """A run of a second, with its folder of checkpoints and what the store holds of it."""

    def __init__(self, runs: Path, spec: RunSpec) -> None:
        self.runs, self.spec, self.folder = runs, spec, runs / spec.run_id
        self.done = execute(spec, self.folder, progress_bar=False)

    @property
    def run(self) -> dict[str, Any]:
        return self.done["run"]

    def store(self, root: Path) -> None:
        results.write_run(**self.done, root=root)

    def copy_to(self, runs: Path) -> Path:
        """Its folder as training left it."""
        new = runs / self.spec.run_id
        shutil.copytree(self.folder, new, ignore=shutil.ignore_patterns("translations-*"))
        return new


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    spec = tiny_spec(training=adamw(steps=20, curve_points=2))
    return Trained(tmp_path_factory.mktemp("runs"), spec)


@pytest.fixture(scope="module")
def other(trained: Trained) -> Trained:
    """Another run of the same cohort, of one pair."""
    spec = tiny_spec(mixture=Mixture.of({PAIRS[0]: 1.0}), training=trained.spec.training)
    return Trained(trained.runs, spec)


@pytest.fixture(scope="module")
def content(trained: Trained) -> dict[str, Any]:
    return decode(trained.spec, trained.folder, trained.run, SENTENCES)


def no_search(*arguments: object, **options: object) -> None:
    raise AssertionError("translated again")


# --- what is scored -----------------------------------------------------------------------------


def test_scores_are_those_of_the_translations_of_evenly_spread_test_sentences(
    trained: Trained, content: dict[str, Any]
) -> None:
    """Another way to the same numbers: text in, text out, and sacrebleu's own functions."""
    spec = trained.spec
    assert spec.conlang is not None
    model = load_checkpoint(trained.folder / "last.safetensors").model()
    syllables = SyllableVocabulary(spec.conlang)
    assert [row["pair"] for row in content["rows"]] == list(PAIRS)
    for row in content["rows"]:
        text = Conlang(spec.conlang).text(row["pair"], 0, CONLANG_TEST_SENTENCES, split="test")
        sources, references = zip(*[text[i] for i in CHOSEN], strict=True)
        found = translate(model, syllables, sources, row["pair"], spec.tags)
        assert len(set(found)) > 1
        expected = sacrebleu.corpus_chrf(found, [list(references)]).score
        assert row["chrf"] == pytest.approx(expected, rel=1e-9)
        expected = sacrebleu.corpus_bleu(found, [list(references)]).score
        assert row["bleu"] == pytest.approx(expected, rel=1e-9)
        assert (row["test_set"], row["domain"], row["sentences"]) == ("indomain", "all", SENTENCES)


def test_a_test_set_is_scored_whole_and_in_its_named_parts() -> None:
    text = sentences(VARIED, PAIRS[0], 6)
    test = TestSet(
        name="indomain",
        text=text,
        domains=("b", "a", "b", "c", "a", "c"),
        shared=("a", "c"),
        parts={"long": np.array([1, 0, 0, 1, 0, 0], dtype=bool), "none": np.zeros(6, dtype=bool)},
        references=tuple("012345"),
    )
    seen = []

    def score(found: list[str], wanted: list[str], language: str) -> dict[str, float | str]:
        seen.append((found, wanted, language))
        return {"chrf": float(len(found)), "chrf_signature": f"for {language}"}

    texts = {PAIRS[0]: {"indomain": list("ABC")}}
    rows, signatures = decoding.score_tests({PAIRS[0]: [test]}, texts, 3, score)
    # Of six sentences the first, the third (2.5, rounded to the even) and the last are decoded.
    assert seen == [
        (["A", "B", "C"], ["0", "2", "5"], "aaa"),
        (["C"], ["5"], "aaa"),
        (["A"], ["0"], "aaa"),
    ]
    assert [(r["test_set"], r["domain"], r["sentences"], r["chrf"]) for r in rows] == [
        ("indomain", "all", 3, 3.0), ("shared", "all", 1, 1.0), ("long", "all", 1, 1.0),
    ]  # fmt: skip
    assert signatures == {"aaa": {"chrf": "for aaa"}}


def test_ids_that_are_no_text_are_never_put_out() -> None:
    pieces = SyllableVocabulary(EASY)
    # Specials but the end (1), three tags; 12 syllables follow, of which all are used.
    assert pieces.never == (0, 2, 3, 4, 5, 6)
    first = Conlang(EASY).pieces
    assert pieces.decode([[7, 8], [18, 7]]) == [first[0] + first[1], first[11] + first[0]]
    # Two languages of the same syllables leave four ids of the same vocabulary unused.
    related = dataclasses.replace(EASY, similarity=1.0)
    pieces = SyllableVocabulary(related)
    assert pieces.never == (0, 2, 3, 4, 5, 6, 15, 16, 17, 18)


# --- store and join -----------------------------------------------------------------------------


def test_what_is_decoded_is_joined_to_its_rows(
    trained: Trained, other: Trained, content: dict[str, Any], tmp_path: Path
) -> None:
    for each in (trained, other):
        each.store(tmp_path)
    before = results.load(root=tmp_path)
    assert before["chrf"].isna().all() and before["decoding"].isna().all()
    path = results.write_decoding(content, root=tmp_path)
    assert path == tmp_path / "conlang-test" / "decoded" / f"{trained.spec.run_id}.json"
    assert results.load_decodings(tmp_path) == [{"schema": 1, **content}]
    frame = results.load(root=tmp_path)
    assert len(frame) == len(before) == 3
    for column in ("cross_entropy", "run_id", "p"):
        assert (frame[column] == before[column]).all()
    mine = frame[frame["run_id"] == trained.spec.run_id].set_index("pair")
    for row in content["rows"]:
        for metric in ("bleu", "chrf", "chrfpp"):
            assert mine.loc[row["pair"], metric] == row[metric]
    assert set(mine["decoded_sentences"]) == {SENTENCES}
    assert set(mine["decoding"]) == {decodings.in_words(settings_of(SENTENCES))}
    assert mine["chrf_signature"].str.startswith("nrefs:1|case:mixed").all()
    assert mine["bleurt"].isna().all()
    rest = frame[frame["run_id"] != trained.spec.run_id]
    assert rest["chrf"].isna().all() and rest["decoded_sentences"].isna().all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: c["decoding"].pop("commit"), r"decoding\.commit is missing"),
        (lambda c: c["rows"][0].update(chrf=math.nan), r"rows\[0\]\.chrf must be a finite number"),
    ],
)
def test_a_broken_field_is_named_on_reading_and_writing(content, tmp_path, damage, message) -> None:
    path = results.write_decoding(content, root=tmp_path)
    broken = copy.deepcopy(content)
    damage(broken)
    with pytest.raises(InputError, match=message):
        results.write_decoding(broken, root=tmp_path / "elsewhere")
    path.write_text(json.dumps({"schema": 1, **broken}))
    with pytest.raises(InputError, match=f"{path.name}.*{message}"):
        results.load(root=tmp_path)


# --- from checkpoints ---------------------------------------------------------------------------


def test_translations_are_kept_and_read_again(
    trained: Trained, content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = trained.folder.glob("translations-*.json")
    texts = json.loads(kept.read_text())
    assert {pair: len(texts[pair]["indomain"]) for pair in PAIRS} == dict.fromkeys(PAIRS, SENTENCES)
    monkeypatch.setattr(decoding, "search_all", no_search)
    assert decode(trained.spec, trained.folder, trained.run, SENTENCES)["rows"] == content["rows"]
    with pytest.raises(AssertionError, match="translated again"):  # other settings, other text
        decode(trained.spec, trained.folder, trained.run, 5)


def test_a_checkpoint_that_does_not_serve_is_told(
    trained: Trained, other: Trained, tmp_path: Path
) -> None:
    spec = trained.spec
    with pytest.raises(InputError, match=r"last\.safetensors: no checkpoint of conlang-test d8x1"):
        decode(spec, tmp_path, trained.run, SENTENCES)
    with pytest.raises(InputError, match=f"belongs to run {other.spec.run_id}"):
        decode(spec, other.folder, trained.run, SENTENCES)
    with pytest.raises(InputError, match="stands at step 20, but the stored run has 40 steps"):
        decode(spec, trained.folder, {**trained.run, "steps": 40}, SENTENCES)
    # A run that is trained again for its weights, and was killed: its best ones are not the best.
    best = dataclasses.replace(spec, training=dataclasses.replace(spec.training, keep="best"))
    assert best.run_id != spec.run_id
    copied = tmp_path / "copied"
    copied.mkdir()
    for kept in (LAST, BEST):
        copy_checkpoint(trained.folder / LAST, copied / kept, identity=best.run_id)
    with pytest.raises(InputError, match="stands at step 20, but the stored run has 40 steps"):
        decode(best, copied, {**trained.run, "steps": 40}, SENTENCES)
    with pytest.raises(InputError, match="trained with voc-0"):
        decode(spec, trained.folder, {**trained.run, "vocabulary_hash": "voc-0"}, SENTENCES)


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def command(
    trained: Trained, other: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """`sweep mine --decode` over the two runs, both stored, in this process."""
    for each in (trained, other):
        each.store(tmp_path / "store")
    both = (trained.spec, other.spec)
    cohort = types.SimpleNamespace(runs=lambda: iter(both), decoded=lambda: iter(both))
    monkeypatch.setattr(catalogue, "find_cohort", lambda name, tier: cohort)

    def run(*options: str, runs: Path = trained.runs) -> int:
        folders = ["--runs", str(runs), "--results", str(tmp_path / "store")]
        here = ["--sentences", "30", "--workers", "1", *folders]
        return main(["sweep", "mine", "--decode", *here, *options])

    return run


def test_the_command_decodes_what_is_not_decoded(
    command, trained, content, tmp_path, monkeypatch, capsys
) -> None:
    results.write_decoding(content, root=tmp_path / "store")
    assert command("--dry-run") == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 trained, 1 decoded before, 1 to decode, 0 without a checkpoint" in out
    assert len(results.load_decodings(tmp_path / "store")) == 1
    assert command() == 0
    assert results.load(root=tmp_path / "store")["chrf"].notna().all()
    monkeypatch.setattr(decoding, "search_all", no_search)
    assert command() == 0  # nothing is left to do
    monkeypatch.setitem(sys.modules, "submitit", None)  # as if not installed
    assert command("--executor", "submitit") == 2
    assert "needs the extra submitit" in capsys.readouterr().err
    assert command("--sentences", "20") == 2
    message = capsys.readouterr().err
    assert "up to 30 sentences a test set, not with" in message and "--sentences" in message


def test_the_command_tells_which_checkpoints_are_missing(
    command, trained, other, tmp_path, capsys
) -> None:
    assert command(runs=tmp_path / "none") == 2
    captured = capsys.readouterr()
    assert "no run to decode has its checkpoints here" in captured.err.splitlines()[-1]
    trained.copy_to(tmp_path / "some")
    assert command(runs=tmp_path / "some") == 1
    captured = capsys.readouterr()
    assert "1 to decode, 1 without a checkpoint" in captured.out
    assert other.spec.run_id in captured.err and trained.spec.run_id not in captured.err
    assert "train them again with `mnmt-repro sweep " in captured.err
    decoded = results.load(root=tmp_path / "store").dropna(subset="chrf")
    assert set(decoded["run_id"]) == {trained.spec.run_id}


# --- BLEURT -------------------------------------------------------------------------------------


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "BLEURT-x"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"abc")
    return folder


class Inputs(list):
    def to(self, device: str) -> dict[str, list]:
        return {"pairs": list(self)}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of `bleurt_pytorch`: a sentence's score is hypothesis less reference, in letters."""

    class Tokenizer:
        @classmethod
        def from_pretrained(cls, folder: str) -> Tokenizer:
            return cls()

        def __call__(self, references: list[str], hypotheses: list[str], **options: Any) -> Inputs:
            assert options["max_length"] == 512 and options["truncation"]
            return Inputs(zip(references, hypotheses, strict=True))

    class Model(torch.nn.Module):
        @classmethod
        def from_pretrained(cls, folder: str) -> Model:
            return cls()

        def forward(self, pairs: list[tuple[str, str]]) -> types.SimpleNamespace:
            scores = [[float(len(h) - len(r))] for r, h in pairs]
            return types.SimpleNamespace(logits=torch.tensor(scores))

    module: Any = types.ModuleType("bleurt_pytorch")
    module.BleurtTokenizer, module.BleurtForSequenceClassification = Tokenizer, Model
    monkeypatch.setitem(sys.modules, "bleurt_pytorch", module)
    monkeypatch.setattr(learned_metrics, "version", lambda name: "0")
    learned_metrics._load.cache_clear()


def test_bleurt_is_a_mean_over_sentences_in_points(weights: Path, package: None) -> None:
    hypotheses, references = ["abcd", "a", "", "abc"], ["ab", "a", "a", "abcde"]
    found = learned_metrics.bleurt(hypotheses, references, weights, batch_sentences=3)
    assert found["bleurt"] == pytest.approx(100 * (2 + 0 - 1 - 2) / 4)
    # SHA-256 of "abc", from the standard that defines it.
    assert found["bleurt_signature"] == (
        "nrefs:1|checkpoint:BLEURT-x|sha256:ba7816bf8f01cfea|package:bleurt-pytorch-0"
    )


def test_bleurt_has_a_file_of_its_own_and_joins_the_rest(
    trained, content, weights, package, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(decoding, "search_all", no_search)  # reads the translations that are kept
    scored = decode(trained.spec, trained.folder, trained.run, SENTENCES, bleurt=weights)
    assert scored["decoding"]["scorer"] == "bleurt"
    store = tmp_path / "store"
    trained.store(store)
    results.write_decoding(content, root=store)
    path = results.write_decoding(scored, root=store)
    assert path.name == f"{trained.spec.run_id}.bleurt.json"
    frame = results.load(root=store)
    assert frame["bleurt"].notna().all() and frame["chrf"].notna().all()
    assert frame["bleurt_signature"].str.contains("BLEURT-x").all()
    trained.store(tmp_path / "lost")
    scored["rows"][0]["test_set"] = "elsewhere"
    results.write_decoding(scored, root=tmp_path / "lost")
    with pytest.raises(InputError, match="no run has a row of: .*elsewhere"):
        results.load(root=tmp_path / "lost")


def test_without_bleurt_it_is_said_what_is_needed(
    command, weights, tmp_path, monkeypatch, capsys
) -> None:
    with pytest.raises(InputError, match=r"holds no BLEURT weights .*lucadiliello/BLEURT-20"):
        learned_metrics.bleurt(["a"], ["a"], tmp_path)
    monkeypatch.setitem(sys.modules, "bleurt_pytorch", None)  # as if not installed
    learned_metrics._load.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'mnmt-repro\[bleurt\]'"):
        learned_metrics.bleurt(["a"], ["a"], weights)
    assert command("--bleurt", str(tmp_path / "none")) == 2
    assert "holds no BLEURT weights" in capsys.readouterr().err
    assert main(["sweep", "mine", "--bleurt", str(weights)]) == 2
    assert "--bleurt: goes with --decode" in capsys.readouterr().err
