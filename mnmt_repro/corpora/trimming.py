"""A vocabulary without the pieces and languages that a user's text does not need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.vocabulary import SPECIAL, Vocabulary, is_tag, with_settings
from mnmt_repro.errors import InputError


def trim_vocabulary(
    old: Vocabulary,
    tags: Iterable[int],
    lines: Sequence[str],
    *,
    min_count: int = 1,
    written: Iterable[int] = (),
) -> tuple[Vocabulary, NDArray[np.intp]]:
    """Keep the pieces that text is cut into, its characters, bytes and special pieces.

    With a `min_count` of 1 the text is cut as before. Other text is cut into smaller pieces; a
    character that no kept piece has becomes bytes, or `<unk>` where there are none.

    Parameters
    ----------
    tags
        Ids of the language tags that stay.
    lines
        The text.
    min_count
        Pieces that occur less often in `lines` are left out.
    written
        Ids of further pieces that stay, such as those of the model's translations.

    Returns
    -------
    vocabulary : Vocabulary
    rows : (pieces,)
        The old id of each of its pieces, ascending.

    Raises
    ------
    InputError
        When the vocabulary is a generated language's.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    if isinstance(old, SyllableVocabulary):
        raise InputError("the vocabulary is the syllables of a conlang, which cannot be trimmed")
    model = ModelProto.FromString(old.model)
    kind: Any = ModelProto.SentencePiece
    counts = np.bincount(old.encode(lines).flat, minlength=len(old)).tolist()
    at = {each.piece: i for i, each in enumerate(model.pieces) if each.type == kind.NORMAL}
    scores = {text: model.pieces[i].score for text, i in at.items()}
    characters = set("".join(text for text, i in at.items() if counts[i]))
    kept = {*tags, *written, *(i for text, i in at.items() if text in characters)}
    for i, each in enumerate(model.pieces):
        own = each.type == kind.USER_DEFINED and not is_tag(each.piece)
        special = each.type in (kind.CONTROL, kind.UNKNOWN, kind.BYTE)
        if own or special or counts[i] >= min_count:
            kept.add(i)
    if model.trainer_spec.model_type == model.trainer_spec.BPE:
        for text in [text for text, i in at.items() if i in kept]:
            kept |= {at[part] for part in _merged(text, scores) if part in at}
    elif scores:  # by which an unknown character and a piece of the user's are scored
        kept |= {at[end(scores, key=scores.__getitem__)] for end in (min, max)}
    rows = np.array(sorted(kept), dtype=np.intp)
    pieces = [model.pieces[i] for i in rows]
    del model.pieces[:]
    model.pieces.extend(pieces)
    return with_settings(model, SPECIAL[old.start]), rows


def _merged(piece: str, scores: dict[str, float]) -> list[str]:
    """What BPE merges on its way from characters to a piece, in order.

    >>> _merged("abc", {"bc": 0.0, "abc": -1.0, "ab": -2.0})
    ['bc', 'abc']
    """
    parts, merged = list(piece), []
    while len(parts) > 1:
        both = [left + right for left, right in zip(parts, parts[1:], strict=False)]
        first = max(range(len(both)), key=lambda i: scores.get(both[i], -np.inf))
        merged.append(both[first])
        parts[first : first + 2] = [both[first]]
    return merged
