from __future__ import annotations

from pathlib import Path

import pytest
from corpus_cards import small_card

from mnmt_repro.corpora import registry
from mnmt_repro.corpora.registry import (
    data_hash,
    data_root,
    find_file,
    require_data_root,
    split_pair,
)
from mnmt_repro.errors import InputError

DEU = (
    "split\tdomain\teng\tdeu\ntrain\ttalk\tGood morning.\tGuten Morgen.\n"
    "valid\ttalk\tWhere?\tWo?\ntest\ttalk\tGood night.\tGute Nacht.\n"
)
FRA = "split\tdomain\teng\tfra\ntrain\ttalk\tThank you.\tMerci.\n"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a two-language corpus called `tiny`, the only one registered."""
    card = small_card(tmp_path, {"eng-deu": DEU, "eng-fra": FRA})
    monkeypatch.setattr(registry, "list_cards", lambda: (card,))
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any corpus."""
    monkeypatch.delenv("MNMT_REPRO_DATA", raising=False)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "ROOT", tmp_path / "checkout")


# --- cards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", ["eng", "eng-deu-fra", "eng-", "-deu", "eng-eng", "eng deu", ""])
def test_bad_pairs(pair: str) -> None:
    with pytest.raises(InputError, match="language pair"):
        split_pair(pair)


# --- places -------------------------------------------------------------------------------------


def test_data_root_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="MNMT_REPRO_DATA=.*absent: no such folder"):
        data_root()


def test_data_root_beside_the_checkout(tmp_path: Path, no_data: None) -> None:
    assert data_root() is None
    (tmp_path / "shared" / "corpora").mkdir(parents=True)
    assert data_root() == tmp_path / "shared" / "corpora"


def test_absent_data_say_what_to_set(no_data: None) -> None:
    with pytest.raises(InputError, match="set MNMT_REPRO_DATA"):
        require_data_root()


def test_a_pair_nobody_has(tiny: Path) -> None:
    with pytest.raises(
        InputError, match="no pair 'eng-pol', either .*; there are eng-deu, eng-fra"
    ):
        find_file("tiny", "eng-pol")
    with pytest.raises(InputError, match="no pair 'deu-fra'"):
        find_file("tiny", "deu-fra")


def test_test_sets_prefer_the_direction_asked_for() -> None:
    news = find_file("outofdomain", "deu-eng", "newstest21")
    assert news.stem == "newstest21.deu-eng"
    pivot = find_file("outofdomain", "fra-eng", "newstest22-pivot")
    assert pivot.stem == "newstest22-pivot.eng-fra"
    with pytest.raises(InputError, match="newstest21: no pair 'eng-fra'"):
        find_file("outofdomain", "eng-fra", "newstest21")


# --- identity -----------------------------------------------------------------------------------


def test_data_hash_ignores_order_and_direction() -> None:
    one = data_hash("webtech", ["eng-deu", "eng-zho"])
    assert one == data_hash("webtech", ["zho-eng", "deu-eng"])
    others = [
        data_hash("webtech", ["eng-deu"]),
        data_hash("webtech"),
        data_hash("software25", ["eng-deu", "eng-zho"]),
        data_hash("conlang"),
    ]
    assert len({one, *others}) == 5
    every = ["eng-deu", "eng-fra", "eng-zho"]
    assert data_hash("webtech") == data_hash("webtech", every)


def test_data_hash_follows_the_content(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = data_hash("tiny"), data_hash("tiny", ["eng-fra"])
    card = small_card(tiny, {"eng-deu": DEU + "train\ttalk\tYes\tJa\n", "eng-fra": FRA})
    monkeypatch.setattr(registry, "list_cards", lambda: (card,))
    assert data_hash("tiny") != before[0]
    assert data_hash("tiny", ["eng-fra"]) == before[1]


def test_data_hash_of_nothing() -> None:
    for pair in ("eng-pol", "deu-fra"):
        with pytest.raises(InputError, match=f"no pair '{pair}'; its languages are deu, eng"):
            data_hash("webtech", [pair])
    with pytest.raises(InputError, match="content_hash"):
        data_hash("own")
