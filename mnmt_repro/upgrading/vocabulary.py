"""Which piece of a new vocabulary is which piece of the old one, and rows for those that are new.

Paper B, Section 2: pieces that both vocabularies have keep their embeddings; Section 4.2 and
Table 4: the others start from `<unk>` or at random. The mean of the old pieces that a new one
splits into is a step beyond the paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from mnmt_repro.corpora.vocabulary import BOS, SPACE, SPECIAL, Vocabulary, is_tag
from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.config import NewRows

ROLES = ("pad", "eos", "unk", "bos")
_KINDS = ("special", "tag", "byte", "text")
BYTE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What an id means: a role (`pad`, `eos`, `unk`, `bos`), a language tag, a byte, or text."""

    kind: Literal["special", "tag", "byte", "text"]
    text: str  # the role, the tag, the byte's name, or the piece itself


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How much of the two vocabularies is shared.

    `kept`, `added` and `dropped` hold the pieces themselves, in the order of their ids (those kept
    and added in the new vocabulary's, those dropped in the old one's).
    """

    kept: tuple[Piece, ...]
    added: tuple[Piece, ...]
    dropped: tuple[Piece, ...]

    @property
    def share(self) -> float:
        """Share of the new vocabulary's pieces that the old one has too."""
        return len(self.kept) / (len(self.kept) + len(self.added))

    def rows(self) -> list[dict[str, str | int | float]]:
        """One row a kind of piece and one for all: kept, added, dropped, share kept.

        Special ids and the 256 bytes are nearly always shared, so the row of `text` says more
        about a small vocabulary than the row of all.
        """
        table: list[dict[str, str | int | float]] = []
        for kind in (*_KINDS, "all"):
            kept, added, dropped = (
                sum(kind in (piece.kind, "all") for piece in pieces)
                for pieces in (self.kept, self.added, self.dropped)
            )
            share = kept / (kept + added) if kept + added else float("nan")
            table.append(
                {"kind": kind, "kept": kept, "added": added, "dropped": dropped, "share": share}
            )
        return table


@dataclass(frozen=True, kw_only=True)
class PieceMap:
    """Where each new piece comes from.

    Attributes
    ----------
    old
        Meaning of each id of the old vocabulary.
    new
        Meaning of each id of the new vocabulary.
    source : (new vocabulary,) int64
        Old id of the same piece, -1 where there is none.
    splits
        New id -> old ids that it splits into, where that is known; `mean` needs it.
    """

    old: tuple[Piece, ...]
    new: tuple[Piece, ...]
    source: np.ndarray
    splits: dict[int, tuple[int, ...]]

    def at_rows(self, rows: np.ndarray) -> PieceMap:
        """The same map for old tables whose row for the old id i is `rows[i]`."""
        old = [self.old[i] for i in np.argsort(rows)]
        splits = {new: tuple(int(rows[i]) for i in ids) for new, ids in self.splits.items()}
        source = np.where(self.source < 0, -1, rows[self.source])
        return PieceMap(old=tuple(old), new=self.new, source=source, splits=splits)

    @property
    def unknown(self) -> int:
        """Old id of `<unk>`."""
        return self.old.index(Piece(kind="special", text="unk"))

    @property
    def overlap(self) -> Overlap:
        """Pieces kept, added and dropped."""
        used = set(self.source.tolist())
        return Overlap(
            kept=tuple(p for p, s in zip(self.new, self.source, strict=True) if s >= 0),
            added=tuple(p for p, s in zip(self.new, self.source, strict=True) if s < 0),
            dropped=tuple(piece for i, piece in enumerate(self.old) if i not in used),
        )


def meanings(vocabulary: Vocabulary, name: str = "the vocabulary") -> tuple[Piece, ...]:
    """Meaning of each id; errors call it by `name`.

    Raises
    ------
    InputError
        When it is no SentencePiece model or lacks padding, end, unknown or start.
    """
    try:
        processor = vocabulary.processor
    except RuntimeError as error:
        raise InputError(f"{name} is not a SentencePiece model") from error
    ids = {role: getattr(processor, f"{role}_id")() for role in ROLES}
    if vocabulary.start < BOS:  # another special piece starts the decoder
        del ids["bos"]
    lacking = [SPECIAL[i] for i, role in enumerate(ROLES) if ids.get(role, 0) < 0]
    if lacking:
        raise InputError(
            f"{name} has no {', '.join(lacking)}; `mnmt-repro data adopt` adds what is missing"
        )
    special = {index: role for role, index in ids.items()}

    def meaning(index: int) -> Piece:
        if role := special.get(index):
            return Piece(kind="special", text=role)
        text = processor.id_to_piece(index)
        if is_tag(text):
            return Piece(kind="tag", text=text)
        return Piece(kind="byte" if BYTE.fullmatch(text) else "text", text=text)

    return tuple(meaning(index) for index in range(len(vocabulary)))


def match_meanings(old: Sequence[Piece], new: Sequence[Piece]) -> PieceMap:
    """Match pieces that mean the same, wherever they stand.

    >>> special = [Piece(kind="special", text=role) for role in ROLES]
    >>> a, b = Piece(kind="text", text="a"), Piece(kind="text", text="b")
    >>> match_meanings([*special, a], [*special[::-1], b, a]).source.tolist()
    [3, 2, 1, 0, -1, 4]
    """
    index = {piece: i for i, piece in enumerate(old)}
    source = np.array([index.get(piece, -1) for piece in new], dtype=np.int64)
    return PieceMap(old=tuple(old), new=tuple(new), source=source, splits={})


def match_pieces(old: Vocabulary, new: Vocabulary) -> PieceMap:
    """Match the pieces of two vocabularies by what they mean, and split new ones into old ones.

    A new tag "splits" into all old tags; a new byte into nothing.

    Raises
    ------
    InputError
        When either lacks padding, end, unknown or start.
    """
    before = meanings(old, "the old vocabulary")
    after = meanings(new, "the new vocabulary")
    matched = match_meanings(before, after)
    start = Piece(kind="special", text=ROLES[BOS])
    if start in after and old.start < BOS:  # what started the decoder before does so again
        matched.source[after.index(start)] = old.start
    added = np.flatnonzero(matched.source < 0)
    tags = tuple(i for i, piece in enumerate(before) if piece.kind == "tag")
    splits: dict[int, tuple[int, ...]] = {int(i): tags for i in added if after[i].kind == "tag"}
    text = [int(i) for i in added if after[i].kind == "text"]
    splits.update(zip(text, _split(old, [after[i].text for i in text]), strict=True))
    return replace(matched, splits=splits)


def _split(vocabulary: Vocabulary, pieces: Sequence[str]) -> list[tuple[int, ...]]:
    """Ids of the old pieces that spell each new one exactly, `<unk>` left out.

    Most encoders put a space before what they are given. By these a piece that begins a word is
    encoded without its space. Any other one is encoded behind a character that is then taken off
    again, where the encoder keeps the two apart; else character by character.
    """
    processor = vocabulary.processor
    unknown = processor.unk_id()
    puts_space = processor.encode("a", out_type=str)[0].startswith(SPACE)
    result = []
    for piece in pieces:
        if piece.startswith(SPACE) and puts_space:
            ids = processor.encode(piece[1:].replace(SPACE, " "), out_type=int)
            if not ids:  # a space alone
                ids = [processor.piece_to_id(SPACE)]
        else:
            ids = _inside_word(vocabulary, piece)
        result.append(tuple(i for i in ids if i != unknown))
    return result


def _inside_word(vocabulary: Vocabulary, piece: str) -> list[int]:
    processor = vocabulary.processor
    for anchor in "\u2603.-/0a":  # the first is rarely in a piece
        alone = processor.encode(anchor, out_type=int)
        ids = processor.encode(anchor + piece.replace(SPACE, " "), out_type=int)
        if alone and ids[: len(alone)] == alone and len(ids) > len(alone):
            return ids[len(alone) :]
    return [processor.piece_to_id(character) for character in piece]


FAR = 10.0
"""A row is out of scale whose norm is this many times the median of old rows, or its inverse."""


def check_new_rows(table: Tensor, pieces: PieceMap) -> dict[str, int]:
    """Look at the rows of an upgraded table, (new vocabulary, d), that were not trained.

    Returns
    -------
    dict
        How many are ``new``; of them ``unknown``, copies of the row of `<unk>`, and ``equal``, like
        another row (new tags are left out: they start alike by design). ``far``: new rows, and
        spare ones without a piece, whose norm is far from those of old pieces, see `FAR`.
    """
    spare = np.array([piece.text.startswith("<unused ") for piece in pieces.new])
    new = pieces.source < 0
    keys = [hash(row.tobytes()) for row in table.numpy()]
    times, unknown = Counter(keys), keys[pieces.new.index(Piece(kind="special", text="unk"))]
    copies = np.array([key == unknown for key in keys])
    twice = np.array([times[key] > 1 for key in keys])
    tags = np.array([piece.kind == "tag" for piece in pieces.new])
    norms = table.norm(dim=1).numpy()
    usual = np.median(norms[~new & ~spare])
    far = (norms < usual / FAR) | (norms > usual * FAR)
    rows = {
        "new": new,
        "unknown": new & copies,
        "equal": new & twice & ~copies & ~tags,
        "far": (new | spare) & far,
    }
    return {name: int(each.sum()) for name, each in rows.items()}


_AT_ONCE = 2**22
"""Numbers of a table that are copied at once."""


def map_rows(table: Tensor, made: Tensor, pieces: PieceMap, new: NewRows) -> None:
    """Write the new vocabulary's rows of an embedding table or output projection.

    Parameters
    ----------
    table : (old vocabulary, d)
    made : (new vocabulary, d)
        Rows as a new model draws them. They are written in place; with `random` those of new pieces
        stay.
    new
        Rows of pieces that the old vocabulary does not have: `unk` (a copy of the old `<unk>`),
        `random`, or `mean` of the old pieces that the new one splits into (of `<unk>` where there
        are none, as for bytes), or `centroid`, the mean of all old pieces.
    """
    source = torch.from_numpy(pieces.source)
    kept = torch.nonzero(source >= 0).flatten()
    at_once = max(1, _AT_ONCE // table.shape[1])  # a copy of the whole table would be large
    for rows in kept.split(at_once):
        made[rows] = table[source[rows]]
    if new == "random":
        return
    usual = table[: len(pieces.old)].mean(0) if new == "centroid" else table[pieces.unknown]
    for index in torch.nonzero(source < 0).flatten().tolist():
        split = pieces.splits.get(index, ()) if new == "mean" else ()
        made[index] = table[list(split)].mean(0) if split else usual
