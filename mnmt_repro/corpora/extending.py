"""A vocabulary with more pieces and languages, as the command `data extend` makes it.

Old pieces keep their ids, and the new vocabulary is of the same kind, unigram or BPE.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.vocabulary import UNK, Vocabulary, check_codes, learn_pieces, tag
from mnmt_repro.errors import InputError

NUMBERS = (250, 500, 1000, 2000, 4000)
"""Numbers of new pieces that are tried where none is named."""
WORTH = 1.05
"""Twice as many pieces are worth it where they make tokens longer by this factor."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """An extended vocabulary, and its new pieces.

    Attributes
    ----------
    asked
        How many new pieces were asked for.
    occurrences
        New piece -> how often the new text has it, cut by the extended vocabulary.
    rare
        Number of pieces left out because they are rarer than asked for.
    recutting
        Number of pieces left out because they would cut the kept text otherwise.
    """

    old: Vocabulary
    vocabulary: Vocabulary
    asked: int
    occurrences: dict[str, int]
    rare: int = 0
    recutting: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether the text gives fewer pieces than were asked for."""
        return len(self.occurrences) + self.rare + self.recutting < self.asked

    def recut(self, lines: Sequence[str]) -> float:
        """Share of lines that the old vocabulary cuts otherwise."""
        pair = self.old, self.vocabulary
        both = (each.processor.encode(list(lines), out_type=int) for each in pair)
        return float(np.mean([before != after for before, after in zip(*both, strict=True)]))

    def fit(self, lines: Sequence[str]) -> tuple[float, float]:
        """Characters per token, and the share of tokens that are `<unk>` or a byte."""
        ids, counts = np.unique(self.vocabulary.encode(lines).flat, return_counts=True)
        vague = [i == UNK or self.vocabulary.processor.is_byte(int(i)) for i in ids]
        return sum(map(len, lines)) / counts.sum(), counts[vague].sum() / counts.sum()


def extend_vocabulary(
    old: Vocabulary,
    languages: Iterable[str],
    lines: Sequence[str],
    pieces: int,
    *,
    min_count: int = 2,
    keep: Sequence[str] = (),
) -> Extension:
    """Add tags for new languages, and pieces of new text, behind all pieces of a vocabulary.

    Parameters
    ----------
    languages
        Each gets a tag, unless it has one.
    lines
        Text that new pieces are learnt from.
    pieces
        Most new pieces: those that the vocabulary has are not counted. Characters that it lacks
        come first.
    min_count
        Pieces that occur less often in `lines` are left out; without byte fallback, a character
        counts wherever it is.
    keep
        Old text that is cut as before: pieces that would cut it otherwise are left out.

    Raises
    ------
    InputError
        When the vocabulary is a generated language's, or two codes differ by case only.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    if isinstance(old, SyllableVocabulary):
        raise InputError("the vocabulary is the syllables of a conlang, which cannot be extended")
    model = ModelProto.FromString(old.model)
    kind: Any = ModelProto.SentencePiece
    bpe = model.trainer_spec.model_type == model.trainer_spec.BPE
    known = {each.piece for each in model.pieces}
    characters = Counter(chain.from_iterable(unicodedata.normalize("NFKC", each) for each in lines))
    size = pieces + len(characters) + 4  # SentencePiece's own special pieces, and its space
    how = {"model_type": "bpe" if bpe else "unigram", "character_coverage": 1.0}
    if model.trainer_spec.byte_fallback:  # so that a rare character is not lost without a piece
        characters.clear()
        del how["character_coverage"]
    learnt = _learn(lines, pieces, size, known, **how) if pieces else {}
    languages = sorted(set(languages))
    check_codes(languages, old.languages)
    # A merge of BPE comes after all old ones; the scores of unigram pieces are of one scale.
    last = min(each.score for each in model.pieces) - 1 if bpe else 0.0
    for name in languages:
        if tag(name) not in known:
            model.pieces.append(kind(piece=tag(name), type=kind.USER_DEFINED))
    first, left_out = len(model.pieces), Counter[str]()
    before = old.processor.encode(list(keep), out_type=int)
    while True:  # to leave a piece out changes how often others occur
        del model.pieces[first:]
        model.pieces.extend(kind(piece=text, score=last + score) for text, score in learnt.items())
        model.trainer_spec.vocab_size = len(model.pieces)
        made = Vocabulary(model.SerializeToString(deterministic=True))
        counts = np.bincount(made.encode(lines).flat, minlength=len(made))[first:].tolist()
        occurrences = dict(zip(learnt, counts, strict=True))
        after = made.processor.encode(list(keep), out_type=int)
        changed = {i for a, b in zip(before, after, strict=True) if a != b for i in b}
        cuts = [(text[:i], text[i:]) for text in learnt for i in range(1, len(text))]
        parts = set(chain.from_iterable(cuts)) if bpe else ()  # BPE may merge a piece from them
        why = {
            text: "recutting" if at in changed else "rare"
            for at, (text, count) in enumerate(occurrences.items(), start=first)
            if at in changed or (max(count, characters[text]) < min_count and text not in parts)
        }
        if not why:
            break
        left_out.update(why.values())
        learnt = {text: score for text, score in learnt.items() if text not in why}
    return Extension(
        old=old, vocabulary=made, asked=pieces, occurrences=occurrences, **left_out
    )  # fmt: skip


def _learn(
    lines: Sequence[str], pieces: int, size: int, known: Collection[str], **how: Any
) -> dict[str, float]:
    """At most so many pieces that are not known, with their scores; characters come first."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    while True:
        learnt = learn_pieces(lines, size, hard_vocab_limit=False, **how)
        model = ModelProto.FromString(learnt)
        normal = (each for each in model.pieces if each.type == each.NORMAL)
        new = {each.piece: each.score for each in normal if each.piece not in known}
        if len(new) >= pieces or len(model.pieces) < size:
            return dict(sorted(new.items(), key=lambda item: len(item[0]) > 1)[:pieces])
        size += pieces - len(new)


def propose(extensions: Sequence[Extension], lines: Sequence[str]) -> Extension:
    """The first extension after which twice as many pieces hardly shorten the text.

    Parameters
    ----------
    extensions
        By rising numbers of pieces.
    lines
        The new text.
    """
    lengths = [each.fit(lines)[0] for each in extensions]
    doubled = zip(extensions, lengths, lengths[1:], strict=False)
    return next((each for each, now, more in doubled if more < WORTH * now), extensions[-1])
