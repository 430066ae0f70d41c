"""Tokenizers of Hugging Face models as vocabularies of ours; every piece keeps its id.

A tokenizer is up to four files: SentencePiece's own model, `vocab.json` with the ids of M2M-100,
`tokenizer.json`, which newer versions write in place of both, and settings with the ids of added
tokens. They come to one SentencePiece model, with the pieces in the order of the model's tables.
Text is cut into the same pieces as before. Two things are ours:

- padding, end and unknown come first (and `<s>` fourth in M2M-100 and NLLB-200), so at most four
  pieces trade places with the ones that stood there;
- language tags are spelled as ours: `__de__` and `deu_Latn` become `<2de>` and `<2deu_Latn>`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from mnmt_repro.corpora.encoding import Tags
from mnmt_repro.corpora.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPECIAL,
    UNK,
    Vocabulary,
    tag,
    with_settings,
)
from mnmt_repro.errors import InputError, note
from mnmt_repro.interchange.weights import Family, Fields, front_rows

SENTENCEPIECE = ("spiece.model", "sentencepiece.bpe.model")
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
SPECIAL_TOKENS, M2M100_VOCABULARY = "special_tokens_map.json", "vocab.json"
M2M100_LANGUAGES = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu
ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr
ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk
ur uz vi wo xh yi yo zh zu
"""
"""Languages of M2M-100 in the order of their tags, which its files need not list."""

_TAG = re.compile(r"__(\w+)__|<2(\w+)>|([a-z]{3}_[A-Z][a-z]{3})")


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """A tokenizer, read.

    Attributes
    ----------
    vocabulary
        Its pieces, as many as the tables have rows.
    order : (pieces,) int64
        Row of the model's tables for each id.
    tags
        Where the model finds language tags.
    """

    vocabulary: Vocabulary
    order: np.ndarray
    tags: Tags


TAGS_FIELD = "language_tags"
"""Where our own exports say in their configuration how the model was trained."""


class Files:
    """Files of a model's folder, each read once: one that is replaced meanwhile is not seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, bytes | None] = {}

    def content(self, name: str) -> bytes | None:
        """What a file holds; None where it is not there."""
        if name not in self._read:
            path = self.folder / name
            try:
                self._read[name] = path.read_bytes() if path.exists() else None
            except OSError as error:
                raise _unreadable(path, error.strerror) from error
        return self._read[name]

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object that a file holds; empty where it is not there.

        Raises
        ------
        InputError
            When the file cannot be read, or holds something else.
        """
        content, path = self.content(name), self.folder / name
        try:
            value = {} if content is None else json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _unreadable(path, error) from error
        if not isinstance(value, dict):
            raise InputError(f"{path}: holds no JSON object; put a whole copy there")
        return value


def _unreadable(path: Path, why: object) -> InputError:
    return InputError(f"{path}: cannot be read ({why}); put a whole copy there")


def read_pieces(files: Files, config: Fields, family: Family) -> Pieces:
    """Read the tokenizer of a Hugging Face model.

    Parameters
    ----------
    config
        Of the model: it says how many rows the tables have, and what the decoder starts with.

    Raises
    ------
    InputError
        When a file or a field of it is missing; the message names both, and what helps.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    rows = config.count("vocab_size")
    ids = files.json(M2M100_VOCABULARY) if family == "m2m_100" else {}
    model, at = _sentencepiece(files, family, ids)
    kind: Any = ModelProto.SentencePiece
    by_row = {row: piece for row, piece in zip(at, model.pieces, strict=True) if row >= 0}
    if dropped := [p.piece for row, p in zip(at, model.pieces, strict=True) if row < 0]:
        note(
            f"{files.folder / M2M100_VOCABULARY} has no id for {len(dropped)} piece(s) "
            f"of its SentencePiece model, such as {dropped[0]}: text is cut into smaller ones"
        )
    known = {piece.piece for piece in by_row.values()}
    for text, row in ids.items():
        if text not in known and row not in by_row:
            by_row[row] = kind(piece=text, type=kind.UNUSED)
    for row, text in _added(files, family, rows, by_row).items():
        if language := _TAG.fullmatch(text):
            code = next(filter(None, language.groups()))
            by_row[row] = kind(piece=tag(code), type=kind.USER_DEFINED)
        elif row not in by_row:
            by_row[row] = kind(piece=text, type=kind.CONTROL)
    if beyond := [row for row in by_row if row >= rows]:
        raise InputError(
            f"{config.file}: the field 'vocab_size' is {rows}, and the tokenizer has a piece with "
            f"id {max(beyond)}; take the tokenizer that the model was trained with"
        )
    pieces = [
        by_row.get(row) or kind(piece=f"<unused {row}>", type=kind.UNUSED) for row in range(rows)
    ]
    special = _special_rows(config, family, pieces)
    order = front_rows(special, rows)
    start = int(np.flatnonzero(order == config.get("decoder_start_token_id", special[PAD]))[0])
    tagged = any(each.piece.startswith("<2") for each in pieces)
    published: Tags = "both-after-end" if family == "m2m_100" else "source" if tagged else "none"
    tags: Tags = config.get(TAGS_FIELD, published)
    if tags not in get_args(Tags):
        one_of = ", ".join(get_args(Tags))
        raise InputError(
            f"{config.file}: the field {TAGS_FIELD!r} is {tags!r}; use one of {one_of}"
        )
    if start >= len(special) and pieces[order[start]].piece.startswith("<2"):
        tags, start = "both", PAD  # the tag of the target starts the decoder, as in our runs
    elif tags == "both-after-end" and start != EOS:
        raise InputError(
            f"{config.file}: the field 'decoder_start_token_id' is {order[start]}; M2M-100 starts "
            f"with the end of sentence, {special[EOS]}, or with a language tag"
        )
    elif family != "m2m_100" and start >= len(special):
        raise InputError(
            f"{config.file}: the field 'decoder_start_token_id' is {order[start]}, which is no "
            f"special piece; padding, end, unknown, {SPECIAL[BOS]} and language tags can start a "
            "decoder"
        )
    return Pieces(
        vocabulary=_vocabulary(model, [pieces[row] for row in order], start, len(special)),
        order=order,
        tags=tags,
    )


def _special_rows(config: Fields, family: Family, pieces: list[Any]) -> tuple[int, ...]:
    """Rows of padding, end, unknown and, in M2M-100 and in our own exports, start."""
    unknown = [row for row, each in enumerate(pieces) if each.type == type(each).UNKNOWN]
    if len(unknown) != 1:
        raise InputError(
            f"{config.file}: its tokenizer has {len(unknown)} pieces that stand for unknown text, "
            "and one is needed; put the SentencePiece model of the original model beside it"
        )
    if family == "m2m_100":
        return (
            config.get("pad_token_id", 1),
            config.get("eos_token_id", 2),
            unknown[0],
            config.get("bos_token_id", 0),
        )
    special = (config.get("pad_token_id", 0), config.get("eos_token_id", 1), unknown[0])
    start = config.get("decoder_start_token_id", special[PAD])
    own = start not in special and start < len(pieces) and pieces[start].piece == SPECIAL[BOS]
    return (*special, start) if own else special


def _vocabulary(model: Any, pieces: list[Any], start: int, special: int) -> Vocabulary:
    """A vocabulary of pieces in the order of our ids, which cuts text as `model` does."""
    kind: Any = type(pieces[0])
    made = type(model)()
    made.trainer_spec.CopyFrom(model.trainer_spec)
    made.normalizer_spec.CopyFrom(model.normalizer_spec)
    names: dict[str, int] = {}
    for index, each in enumerate(pieces):
        text, score, type_ = each.piece, each.score, each.type
        if index < special:
            text, score = SPECIAL[index], 0.0
            type_ = kind.UNKNOWN if index == UNK else kind.CONTROL
        elif text in SPECIAL or text in names:
            text, type_ = f"<unused {index}>", kind.UNUSED
        names[text] = index
        made.pieces.append(kind(piece=text, score=score, type=type_))
    return with_settings(made, SPECIAL[BOS if special > BOS else start])


def _sentencepiece(files: Files, family: Family, ids: Mapping[str, int]) -> tuple[Any, list[int]]:
    """The SentencePiece model, and the row of each of its pieces; -1 where one has none."""
    from google.protobuf.message import DecodeError
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    name = next((name for name in SENTENCEPIECE if files.content(name) is not None), None)
    if name is None:
        if files.content(TOKENIZER) is not None:
            return _from_tokenizer(files)
        raise InputError(
            f"{files.folder}: no tokenizer here; put {' or '.join(SENTENCEPIECE)} or "
            f"{TOKENIZER} of the original model beside its weights"
        )
    try:
        model = ModelProto.FromString(files.content(name))
    except DecodeError:
        model = ModelProto()
    texts = [each.piece for each in model.pieces]
    if not texts:
        raise InputError(
            f"{files.folder / name} is not a SentencePiece model; put the original one there"
        )
    if family != "m2m_100":
        return model, list(range(len(texts)))
    if ids:
        return model, [ids.get(text, -1) for text in texts]
    # NLLB-200: fairseq's four special pieces come first, and SentencePiece's three are among them.
    front = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    return model, [front.get(text, row + 1) for row, text in enumerate(texts)]


def _added(files: Files, family: Family, rows: int, by_row: Mapping[int, Any]) -> dict[int, str]:
    """Tokens that the tokenizer's settings add to its pieces: row and text."""
    if tokenizer := files.json(TOKENIZER):
        return {each["id"]: each["content"] for each in tokenizer.get("added_tokens", [])}
    settings = files.json(TOKENIZER_CONFIG)
    added = {int(row): each["content"] for row, each in settings.get("added_tokens_decoder", {}).items()}  # noqa: E501  # fmt: skip
    if family != "m2m_100" or any(_TAG.fullmatch(text) for text in added.values()):
        return added
    listed = settings.get("additional_special_tokens") or settings.get("extra_special_tokens")
    listed = listed or files.json(SPECIAL_TOKENS).get("additional_special_tokens")
    texts = [each["content"] if isinstance(each, dict) else each for each in listed or ()]
    if not any(_TAG.fullmatch(text) for text in texts):
        if not files.json(M2M100_VOCABULARY):
            raise InputError(
                f"{files.folder / TOKENIZER_CONFIG}: the field 'additional_special_tokens' with "
                f"the languages is missing; put {TOKENIZER} or {SPECIAL_TOKENS} of the original "
                "model beside it"
            )
        texts = [f"__{code}__" for code in M2M100_LANGUAGES.split()]
    first = max(row for row in by_row if row < rows) + 1
    return added | dict(enumerate((t for t in texts if _TAG.fullmatch(t)), start=first))


def _from_tokenizer(files: Files) -> tuple[Any, list[int]]:
    """The SentencePiece model that a `tokenizer.json` was made from, as far as it is kept there."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    file = files.json(TOKENIZER)
    model, kind = ModelProto(), ModelProto.SentencePiece
    declared = file.get("model", {})
    texts: list[tuple[str, float, int]]
    spec = model.trainer_spec
    if declared.get("type") == "Unigram":
        spec.model_type = spec.UNIGRAM
        unknown = declared.get("unk_id")
        texts = [(text, score, row) for row, (text, score) in enumerate(declared["vocab"])]
    elif declared.get("type") == "BPE":
        spec.model_type = spec.BPE
        ids = declared["vocab"]
        unknown = ids.get(declared.get("unk_token"))
        ranks: dict[str, int] = {}
        for rank, pair in enumerate(declared["merges"]):
            left, right = pair.split(" ") if isinstance(pair, str) else pair
            ranks.setdefault(left + right, rank)
        texts = [
            (text, -float(ranks.get(text, len(ranks) + row)), row) for text, row in ids.items()
        ]
    else:
        raise InputError(
            f"{files.folder / TOKENIZER}: the field 'model.type' is {declared.get('type')!r}; "
            f"Unigram and BPE can be read; put {' or '.join(SENTENCEPIECE)} of the original model "
            "beside it"
        )
    # transformers >= 5 writes the id 2 for every T5, and MADLAD-400's <unk> has another.
    unknown = next((row for text, _, row in texts if text == SPECIAL[UNK]), unknown)
    spec.byte_fallback = bool(declared.get("byte_fallback"))
    normalizer = model.normalizer_spec
    normalizer.add_dummy_prefix = normalizer.remove_extra_whitespaces = True
    normalizer.escape_whitespaces = True
    for step in _steps(file.get("normalizer")):
        if step.get("type") == "Precompiled":
            normalizer.precompiled_charsmap = base64.b64decode(step["precompiled_charsmap"])
    special = {each["id"] for each in file.get("added_tokens", [])}
    at = []
    for text, score, row in texts:
        type_ = kind.UNKNOWN if row == unknown else kind.CONTROL if row in special else kind.NORMAL
        if spec.byte_fallback and re.fullmatch("<0x[0-9A-F]{2}>", text):
            type_ = kind.BYTE
        model.pieces.append(kind(piece=text, score=score, type=type_))
        at.append(row)
    return model, at


def _steps(normalizer: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if normalizer is None:
        return
    yield normalizer
    for part in normalizer.get("normalizers", ()):
        yield from _steps(part)
