"""webtech-shared: the English sentences that all languages of a corpus translate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corpus_cards import small_card

from mnmt_repro.corpora import registry
from mnmt_repro.corpora.bitext import load_split
from mnmt_repro.corpora.registry import Card, data_hash, get_card

# split, domain, English, translation. In all three training sets: "Save", "Close" (twice in
# German) and "Open"; "Print" is in two of them; "save" is another string than "Save".
TEXTS = {
    "deu": [
        ("train", "gnome", "Save", "Sichern"),
        ("train", "odoo", "Close", "Schließen"),
        ("train", "gnome", "Close", "Zumachen"),
        ("train", "gnome", "Print", "Drucken"),
        ("train", "aosp", "Open", "Öffnen"),
        ("valid", "gnome", "Undo", "Rückgängig"),
        ("test", "gnome", "Redo", "Wiederholen"),
    ],
    "fra": [
        ("train", "gnome", "Open", "Ouvrir"),
        ("train", "gnome", "Print", "Imprimer"),
        ("train", "gnome", "Save", "Enregistrer"),
        ("train", "gnome", "Close", "Fermer"),
        ("test", "gnome", "Redo", "Refaire"),
    ],
    "zho": [
        ("train", "gnome", "Close", "关闭"),
        ("train", "gnome", "Open", "打开"),
        ("train", "gnome", "Save", "保存"),
        ("train", "gnome", "save", "存"),
        ("test", "gnome", "Save all", "全部保存"),
    ],
}


def card_of(folder: Path, texts: dict[str, list[tuple[str, ...]]]) -> Card:
    tables = {
        f"eng-{language}": "".join(
            "\t".join(row) + "\n" for row in (("split", "domain", "eng", language), *rows)
        )
        for language, rows in texts.items()
    }
    return small_card(folder, tables, "three")


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus `three` of three languages and a selection `common` of it, the only ones."""
    base = card_of(tmp_path, TEXTS)
    cards = (base, replace(base, name="common", base="three"))
    monkeypatch.setattr(registry, "list_cards", lambda: cards)
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path))
    return tmp_path


def test_sentences_in_all_languages_once_and_in_one_order(three: Path) -> None:
    german = load_split("common", "eng-deu", "train")
    assert german.source == ["Close", "Open", "Save"]
    assert german.target == ["Schließen", "Öffnen", "Sichern"]  # the first of two translations
    assert german.domain == ["odoo", "aosp", "gnome"]
    assert load_split("common", "eng-zho", "train").target == ["关闭", "打开", "保存"]
    back = load_split("common", "fra-eng", "train")
    assert (back.source, back.target) == (["Fermer", "Ouvrir", "Enregistrer"], german.source)


def test_other_splits_and_the_corpus_itself_are_left_alone(three: Path) -> None:
    assert load_split("common", "eng-zho", "test").source == ["Save all"]
    assert load_split("common", "eng-deu", "valid").target == ["Rückgängig"]
    assert len(load_split("three", "eng-deu", "train")) == 5


def test_the_selection_follows_the_text(
    three: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = data_hash("common")
    assert len(load_split("common", "eng-deu", "train")) == 3
    base = card_of(tmp_path, TEXTS | {"fra": TEXTS["fra"][:3]})  # no "Close" in French
    cards = (base, replace(base, name="common", base="three"))
    monkeypatch.setattr(registry, "list_cards", lambda: cards)
    assert load_split("common", "eng-deu", "train").source == ["Open", "Save"]
    assert data_hash("common") != before


def test_the_card_of_the_real_selection_is_true(
    corpora_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNMT_REPRO_DATA", str(corpora_dir))
    card, base = get_card("webtech-shared"), get_card("webtech")
    texts = {file.stem: load_split("webtech-shared", file.stem, "train") for file in card.files}
    english = texts["eng-deu"].source
    for file in card.files:
        text = texts[file.stem]
        assert text.source == english
        assert file.sentences == {"train": len(text), "valid": 1_000, "test": 2_000}
    # The translations are ones that the file gives to that English.
    chinese, own = texts["eng-zho"], load_split("webtech", "eng-zho", "train")
    given = set(zip(own.source, own.target, strict=True))
    assert given.issuperset(zip(chinese.source, chinese.target, strict=True))
    assert len(set(english)) == len(english) == 73_145
    assert data_hash("webtech-shared") != data_hash("webtech")
    assert [file.path for file in card.files] == [file.path for file in base.files]
