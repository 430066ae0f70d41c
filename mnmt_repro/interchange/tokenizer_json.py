"""A vocabulary of ours as the `tokenizer.json` of Hugging Face's tokenizers.

SentencePiece and that library cut text by the same rules, so this file only says them again:
normalise, put a space in front, cut into words, then the pieces. The library itself is not needed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from sentencepiece.sentencepiece_model_pb2 import ModelProto

from mnmt_repro.corpora.vocabulary import EOS, SPACE, SPECIAL, UNK, Vocabulary, is_tag


def tokenizer_json(vocabulary: Vocabulary, rows: Sequence[int]) -> dict[str, Any]:
    """What the file holds.

    Parameters
    ----------
    rows : (pieces,)
        Id there of each of our ids.
    """
    model = ModelProto.FromString(vocabulary.model)
    kind: Any = ModelProto.SentencePiece
    by_row = sorted(zip(rows, model.pieces, strict=True), key=lambda pair: pair[0])
    least = min((p.score for _, p in by_row if p.type == kind.NORMAL), default=0.0)
    scores = {p.piece: least if p.type in (kind.UNUSED, kind.BYTE) else p.score for _, p in by_row}
    ids = {p.piece: row for row, p in by_row}
    spec = model.trainer_spec
    bytewise = bool(spec.byte_fallback)
    pieces: dict[str, Any]
    if spec.model_type == spec.BPE:
        pieces = {
            "type": "BPE",
            "unk_token": SPECIAL[UNK],
            "fuse_unk": True,
            "byte_fallback": bytewise,
            "vocab": ids,
            "merges": merges({p.piece: p.score for _, p in by_row if p.type == kind.NORMAL}),
        }
    else:
        pieces = {
            "type": "Unigram",
            "unk_id": int(rows[UNK]),
            "vocab": [[text, scores[text]] for text in ids],
            "byte_fallback": bytewise,
        }
    one, other = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    name = SPECIAL[EOS]
    end = {"SpecialToken": {"id": name, "type_id": 0}}
    added = (kind.CONTROL, kind.UNKNOWN, kind.USER_DEFINED)
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": row,
                "content": p.piece,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
                "special": p.type != kind.USER_DEFINED or is_tag(p.piece),
            }
            for row, p in by_row
            if p.type in added
        ],
        "normalizer": _normalizer(model.normalizer_spec),
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": SPACE,
            "prepend_scheme": "always" if model.normalizer_spec.add_dummy_prefix else "never",
            "split": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [one, end],
            "pair": [one, other, end],
            "special_tokens": {name: {"id": name, "ids": [int(rows[EOS])], "tokens": [name]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                *([{"type": "ByteFallback"}] if bytewise else []),
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": pieces,
    }


def _normalizer(spec: Any) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if spec.precompiled_charsmap:
        charsmap = base64.b64encode(spec.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if spec.remove_extra_whitespaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return {"type": "Sequence", "normalizers": steps}


def merges(scores: Mapping[str, float]) -> list[list[str]]:
    """The merges of a BPE model of SentencePiece, which scores the pieces that they make.

    >>> merges({"a": -3.0, "b": -4.0, "c": -5.0, "ab": 0.0, "abc": -1.0, "bc": -2.0})
    [['a', 'b'], ['a', 'bc'], ['ab', 'c'], ['b', 'c']]
    """
    made = sorted(scores, key=lambda piece: -scores[piece])
    return [
        [piece[:at], piece[at:]]
        for piece in made
        for at in range(1, len(piece))
        if piece[:at] in scores and piece[at:] in scores
    ]
