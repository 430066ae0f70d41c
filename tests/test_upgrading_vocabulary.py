"""Old pieces in a new vocabulary: matched by meaning, and rows for those that are new."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from sentencepiece import SentencePieceTrainer
from small_text import small_bitext

from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.vocabulary import (
    Piece,
    PieceMap,
    check_new_rows,
    map_rows,
    match_meanings,
    match_pieces,
)

BITEXT = small_bitext()
CZECH = [line.replace("the ", "kočka ").replace("and", "žlutý") for line in BITEXT.source]


@pytest.fixture(scope="module")
def old() -> Vocabulary:
    text = {"eng-deu": (BITEXT.source, BITEXT.target)}
    return train_vocabulary(VocabularyConfig(pieces=330, languages=("deu", "eng")), text)


@pytest.fixture(scope="module")
def new() -> Vocabulary:
    text = {"eng-deu": (BITEXT.source, BITEXT.target), "eng-ces": (BITEXT.source, CZECH)}
    return train_vocabulary(VocabularyConfig(pieces=360, languages=("ces", "deu", "eng")), text)


def foreign(kind: str, **ids: int) -> Vocabulary:
    """A model not made by this package, with ids of its own and no bytes."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(CZECH + BITEXT.target),
        model_writer=model,
        model_type=kind,
        vocab_size=110,
        user_defined_symbols=["<2eng>", "<2ces>"],
        num_threads=1,
        minloglevel=2,
        **ids,
    )
    return Vocabulary(model.getvalue())


def name(vocabulary: Vocabulary, index: int) -> str:
    return vocabulary.processor.id_to_piece(int(index))


def test_pieces_are_matched_by_what_they_are(old: Vocabulary, new: Vocabulary) -> None:
    pieces = match_pieces(old, new)
    # The tag of Czech comes first, so that those of German and English move on by one.
    assert [old.tag("deu"), old.tag("eng")] == [4, 5]
    assert [new.tag("deu"), new.tag("eng")] == [5, 6]
    assert pieces.source[:7].tolist() == [0, 1, 2, 3, -1, 4, 5]
    known = {name(old, i) for i in range(len(old))}
    for i, source in enumerate(pieces.source):
        if source >= 0:
            assert name(old, source) == name(new, i)
        else:
            assert name(new, i) not in known


def test_the_overlap_adds_up(old: Vocabulary, new: Vocabulary) -> None:
    overlap = match_pieces(old, new).overlap
    before = {name(old, i) for i in range(len(old))}
    after = {name(new, i) for i in range(len(new))}
    assert len(overlap.kept) == len(before & after)
    assert {piece.text for piece in overlap.added} == after - before
    assert {piece.text for piece in overlap.dropped} == before - after
    assert overlap.share == len(before & after) / 360
    rows = {row["kind"]: row for row in overlap.rows()}
    assert rows["special"] == {
        "kind": "special", "kept": 4, "added": 0, "dropped": 0, "share": 1.0,
    }  # fmt: skip
    assert (rows["tag"]["kept"], rows["tag"]["added"], rows["byte"]["kept"]) == (2, 1, 256)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_any_two_models_match_by_meaning_not_position(old: Vocabulary, kind: str) -> None:
    other = foreign(kind, pad_id=3, eos_id=0, unk_id=1, bos_id=2, unk_piece="<unknown>")
    pieces = match_pieces(other, old)
    # old: pad 0, eos 1, unk 2, bos 3, <2deu>, <2eng>
    assert pieces.source[:4].tolist() == [3, 0, 1, 2]
    assert pieces.source[4] == -1
    assert pieces.source[5] == other.processor.piece_to_id("<2eng>")
    assert (pieces.unknown, pieces.source[6:262].max()) == (1, -1)  # it has no bytes
    back = match_pieces(old, other)
    assert back.source[other.processor.pad_id()] == 0


@pytest.mark.parametrize(("kind", "prefix"), [("unigram", False), ("bpe", True)])
def test_new_pieces_split_into_old_ones_that_spell_them(
    new: Vocabulary, kind: str, prefix: bool
) -> None:
    other = foreign(kind, pad_id=3, eos_id=0, unk_id=1, bos_id=2, add_dummy_prefix=prefix)
    pieces = match_pieces(other, new)
    known = set("".join(name(other, i) for i in range(4, len(other))))
    spelled = 0
    for index, split in pieces.splits.items():
        text = name(new, index)
        if pieces.new[index].kind == "text" and set(text) <= known:
            assert "".join(name(other, i) for i in split) == text
            spelled += 1
    assert spelled > 10
    # A new tag is made of all old tags.
    tags = {other.processor.piece_to_id("<2eng>"), other.processor.piece_to_id("<2ces>")}
    assert set(pieces.splits[new.tag("deu")]) == tags


def hand_made() -> PieceMap:
    special = [Piece(kind="special", text=role) for role in ("pad", "eos", "unk", "bos")]
    a, b, c, ab = (Piece(kind="text", text=text) for text in ("a", "b", "c", "ab"))
    d = Piece(kind="text", text="d")
    pieces = match_meanings([*special, a, b, c], [*special, ab, b, d, a])
    return replace(pieces, splits={4: (4, 5), 6: ()})


@pytest.mark.parametrize(
    ("kind", "expected", "check"),
    [
        # rows of pad, eos, unk, bos, ab, b, d, a; the old row i is (i, 10 i), a fresh one -1
        ("unk", [0, 1, 2, 3, 2, 5, 2, 4], (2, 2, 0, 0)),
        ("mean", [0, 1, 2, 3, 4.5, 5, 2, 4], (2, 1, 0, 0)),
        ("random", [0, 1, 2, 3, -1, 5, -0.1, 4], (2, 0, 0, 2)),
        ("centroid", [0, 1, 2, 3, 3, 5, 3, 4], (2, 0, 2, 0)),
    ],
)
def test_rows_by_hand(kind: str, expected: list[float], check: tuple[int, ...]) -> None:
    table = torch.arange(7.0)[:, None] * torch.tensor([1.0, 10.0])
    made = torch.full((8, 2), -1.0)
    made[6] = -0.1
    map_rows(table, made, hand_made(), kind)
    assert made[:, 0].tolist() == pytest.approx(expected)
    old_rows = [0, 1, 2, 3, 5, 7]
    assert torch.equal(made[old_rows, 1], 10 * made[old_rows, 0])
    assert table[6, 1] == 60  # the old table is left alone
    assert tuple(check_new_rows(made, hand_made()).values()) == check
    made[6] = made[4]
    assert check_new_rows(made, hand_made())["equal"] == (0 if kind == "unk" else 2)
    unused = [replace(hand_made().new[0], kind="text", text=f"<unused {i}>") for i in (8, 9)]
    spare = replace(hand_made(), new=(*hand_made().new, *unused), source=np.arange(10))
    made = torch.cat([made.abs(), torch.tensor([[40.0, 0], [400, 0]])])
    assert check_new_rows(made, spare)["far"] == 1  # a row that no piece has


def test_what_cannot_be_matched_is_refused(old: Vocabulary) -> None:
    with pytest.raises(InputError, match=r"the new vocabulary has no <pad>; `mnmt-repro data"):
        match_pieces(old, foreign("unigram"))  # SentencePiece makes no padding by default
    with pytest.raises(InputError, match=r"the old vocabulary has no <pad>; `mnmt-repro"):
        match_pieces(foreign("unigram"), old)
    with pytest.raises(InputError, match="the old vocabulary is not a SentencePiece model$"):
        match_pieces(Vocabulary(b"nothing of the sort"), old)
