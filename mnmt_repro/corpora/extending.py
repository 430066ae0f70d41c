"""A vocabulary with more pieces and languages; the old pieces keep their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.vocabulary import Vocabulary, learn_pieces, tag
from mnmt_repro.errors import InputError


def extend_vocabulary(
    old: Vocabulary, languages: Iterable[str], lines: Sequence[str], pieces: int
) -> Vocabulary:
    """Add tags for new languages, and pieces of new text, behind all pieces of a vocabulary.

    Old text in which no new piece occurs is cut as before.

    Parameters
    ----------
    languages
        Each gets a tag, unless it has one.
    lines
        Text of the new languages.
    pieces
        Most pieces that are learnt from it; those that the vocabulary has are not added.

    Raises
    ------
    InputError
        When the text gives fewer pieces, or the vocabulary is a generated language's.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    if isinstance(old, SyllableVocabulary):
        raise InputError("the vocabulary is the syllables of a conlang, which cannot be extended")
    model = ModelProto.FromString(old.model)
    kind: Any = ModelProto.SentencePiece
    bpe = model.trainer_spec.model_type == model.trainer_spec.BPE
    learnt = learn_pieces(lines, pieces, model_type="bpe" if bpe else "unigram")
    known = {each.piece for each in model.pieces}
    for name in sorted(set(languages)):
        if tag(name) not in known:
            model.pieces.append(kind(piece=tag(name), type=kind.USER_DEFINED))
    # A merge of BPE comes after all old ones; the scores of unigram pieces are of one scale.
    last = min(each.score for each in model.pieces) if bpe else 0.0
    for each in ModelProto.FromString(learnt).pieces:
        if each.type == kind.NORMAL and each.piece not in known:
            model.pieces.append(kind(piece=each.piece, score=last + each.score - bpe))
    model.trainer_spec.vocab_size = len(model.pieces)
    return Vocabulary(model.SerializeToString(deterministic=True))
