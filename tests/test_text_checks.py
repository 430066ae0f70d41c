"""Own bitexts looked over: repeats, copies, and test sentences that are trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mnmt_repro.cli import main
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.text_checks import check_own


def bitext(pair: str, *rows: tuple[str, str]) -> Bitext:
    return Bitext(pair=pair, source=[a for a, _ in rows], target=[b for _, b in rows])


GERMAN = bitext(
    "eng-deu",
    ("Page 1", "Seite 1"), ("Good morning", "Guten Morgen"), ("page 2!", "Seite 2"),
    ("Good morning", "Moin"), ("Linux", "linux."), ("...", "..."), ("!!!", "???"),
)  # fmt: skip


def test_repeats_and_copies_are_counted_with_digits_and_case_folded() -> None:
    (german,) = check_own({"eng-deu": GERMAN}, {})
    assert german == {
        "text": "eng-deu", "sentences": 7,
        "repeated": [3], "untranslated": [5, 6], "in_training": [],
    }  # fmt: skip


def test_a_test_sentence_is_seen_where_either_side_is_trained_on_in_any_pair() -> None:
    zulu = bitext("zul-eng", ("Sawubona", "Good day"))
    test = bitext(
        "eng-fra",
        ("Good day", "Bonjour"), ("good MORNING.", "Bonjour"), ("Seite 1", "Page 1"),
        ("Unseen", "Guten Morgen"),
    )  # fmt: skip
    *_, french = check_own({"eng-deu": GERMAN, "zul-eng": zulu}, {"eng-fra": test})
    # German words in an English sentence, and French ones that are English, are of no account.
    assert french["text"] == "eng-fra, test" and french["in_training"] == [1, 2]


def test_long_lists_are_cut_in_words_and_whole_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("talks.tsv").write_text("eng\tdeu\n" + "yes\tja\n" * 8)
    Path("news.tsv").write_text("eng\tdeu\nno\tnein\n")
    command = ["data", "check", "--data", "eng-deu=talks.tsv", "--test", "eng-deu=news.tsv"]
    assert main(command) == 0
    assert capsys.readouterr().out == (
        "eng-deu: 8 sentence pairs; 7 repeated (87.5%: 2, 3, 4, 5, 6, ...)\n"
        "eng-deu, test: 1 sentence pairs\n"
    )
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["repeated"] == [2, 3, 4, 5, 6, 7, 8]
    Path("news.tsv").write_text("eng\tdeu\nno\tJa!\n")
    assert main(command) == 1
    assert "1 with a side that is in training text (100.0%: 1)" in capsys.readouterr().out
