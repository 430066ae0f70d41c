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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from mnmt_repro.corpora.encoding import Tags
from mnmt_repro.corpora.textfile import read_whole
from mnmt_repro.corpora.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPACE,
    SPECIAL,
    UNK,
    Vocabulary,
    is_tag,
    tag,
    with_settings,
)
from mnmt_repro.errors import InputError, note
from mnmt_repro.interchange.weights import M2M100_SPECIAL, Family, Fields, front_rows
from mnmt_repro.training.checkpoint import damaged
from mnmt_repro.typed_config import Count, Natural, Range, shown

SENTENCEPIECE = ("spiece.model", "sentencepiece.bpe.model")
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
ADDED_TOKENS, M2M100_VOCABULARY = "added_tokens.json", "vocab.json"
_FILES = ", ".join((*SENTENCEPIECE, TOKENIZER, ADDED_TOKENS))
M2M100_LANGUAGES = {
    "m2m100": """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu
ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr
ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk
ur uz vi wo xh yi yo zh zu
""",
    "wmt21": "en ha is ja cs ru zh de",
}
"""Languages of M2M-100 in the order of their tags, which its files need not list."""

NLLB_CODE = re.compile("[a-z]{3}_[A-Z][a-z]{3}")
_TAG = re.compile(rf"__(\w+)__|<2(\w+)>|({NLLB_CODE.pattern})")


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
                self._read[name] = read_whole(path) if path.exists() else None
            except OSError as error:
                raise damaged(path, f"cannot be read ({error.strerror})") from error
        return self._read[name]

    def fields(self, name: str) -> Fields:
        """The fields of the JSON object that a file holds; none where it is not there.

        Raises
        ------
        InputError
            When the file cannot be read, or holds something else.
        """
        content, path = self.content(name), self.folder / name
        try:
            value = {} if content is None else json.loads(content, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise damaged(path, f"cannot be read ({error})") from error
        if not isinstance(value, dict):
            raise damaged(path, "holds no JSON object")
        return Fields(value, str(path))


def _decimal(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _not_original(file: Path | str, what: str) -> InputError:
    return InputError(f"{file}: {what}; put the original files of the tokenizer there ({_FILES})")


def _put(rows: dict[str, int], text: str, row: int, file: str) -> None:
    """Note the row of a piece, and refuse a second one of the same text."""
    if rows.setdefault(text, row) != row:
        what = f"the id of {text!r} is {row}, and {rows[text]} in another file"
        raise _not_original(file, what)


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
    rows = config.get("vocab_size", Count)
    vocabulary = files.fields(M2M100_VOCABULARY)
    ids = vocabulary.read(vocabulary.values, dict[str, Natural]) if family == "m2m_100" else {}
    model, at = _sentencepiece(files, family, ids)
    _check_ends(files.fields(TOKENIZER), family)
    kind: Any = ModelProto.SentencePiece
    by_row = {row: piece for row, piece in zip(at, model.pieces, strict=True) if row >= 0}
    if dropped := [p.piece for row, p in zip(at, model.pieces, strict=True) if row < 0]:
        note(
            f"{vocabulary.file} has no id for {len(dropped)} piece(s) of its SentencePiece model, "
            f"such as {dropped[0]}: text is cut into smaller ones"
        )
    places = {piece.piece: row for row, piece in by_row.items()}
    for text, row in ids.items():
        _put(places, text, row, vocabulary.file)
    for text, (row, silent) in _added(files, family, ids).items():
        if language := _TAG.fullmatch(text):
            if places.get(text, row) != row:
                by_row.pop(places[text], None)
            if row in by_row and by_row[row].piece != text and by_row[row].type == kind.NORMAL:
                what = f"{text} has the id {row} of the piece {by_row[row].piece!r}"
                raise _not_original(files.folder, what)
            code = next(filter(None, language.groups()))
            by_row[row] = kind(piece=tag(code), type=kind.USER_DEFINED)
        elif row not in by_row:
            by_row[row] = kind(piece=text, type=kind.CONTROL if silent else kind.USER_DEFINED)
    if beyond := [row for row in by_row if row >= rows]:
        raise config.error("vocab_size", f"is {rows}, and the tokenizer has the id {max(beyond)}")
    pieces = [
        by_row.get(row) or kind(piece=f"<unused {row}>", type=kind.UNUSED) for row in range(rows)
    ]
    special = _special_rows(config, family, pieces)
    if len(set(special)) < len(special):
        what = f"two of padding, end, unknown and start have one id: {special}"
        raise _not_original(config.file, what)
    order = front_rows(special, rows)
    first = config.get("decoder_start_token_id", _row(rows), special[PAD])
    start = int(np.flatnonzero(order == first)[0])
    tagged = any(is_tag(each.piece) for each in pieces)
    published: Tags = "both-after-end" if family == "m2m_100" else "source" if tagged else "none"
    tags: Tags = config.get(TAGS_FIELD, Tags, published)
    files.fields(TOKENIZER_CONFIG).require("legacy_behaviour", False, False)
    if start >= len(special) and is_tag(pieces[order[start]].piece):
        tags, start = "both", PAD  # the tag of the target starts the decoder, as in our runs
    elif tags == "both-after-end" and start != EOS:
        why = f"is {order[start]}; M2M-100 starts with the end of sentence or a language tag"
        raise config.error("decoder_start_token_id", why)
    elif family != "m2m_100" and start >= len(special):
        why = f"is {order[start]}, neither a special piece nor a language tag"
        raise config.error("decoder_start_token_id", why)
    made = _vocabulary(model, [pieces[row] for row in order], start, len(special))
    try:
        made.processor  # noqa: B018 (SentencePiece looks at all pieces)
    except (RuntimeError, UnicodeDecodeError) as error:
        what = f"SentencePiece cannot read the pieces ({error})"
        raise _not_original(files.folder, what) from error
    return Pieces(vocabulary=made, order=order, tags=tags)


def _row(rows: int) -> Any:
    """The type of a row of a table."""
    return Annotated[int, Range(0, rows, below=True)]


def _special_rows(config: Fields, family: Family, pieces: list[Any]) -> tuple[int, ...]:
    """Rows of padding, end, unknown and, in M2M-100 and in our own exports, start."""
    unknown = [row for row, each in enumerate(pieces) if each.type == type(each).UNKNOWN]
    if len(unknown) != 1:
        what = f"its tokenizer has {len(unknown)} pieces that stand for unknown text, not one"
        raise _not_original(config.file, what)
    if family == "m2m_100":  # whose configuration can have no others
        return (*M2M100_SPECIAL[:UNK], unknown[0], M2M100_SPECIAL[BOS])
    row = _row(len(pieces))
    special = (
        config.get("pad_token_id", row, 0),
        config.get("eos_token_id", row, 1),
        unknown[0],
    )
    start = config.get("decoder_start_token_id", row, special[PAD])
    own = start not in special and pieces[start].piece == SPECIAL[BOS]
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
    name = next((name for name in SENTENCEPIECE if files.content(name) is not None), None)
    tokenizer = files.fields(TOKENIZER)
    cut = _from_tokenizer(tokenizer) if tokenizer.values else None
    if name is None:
        if cut is None:
            raise _not_original(files.folder, "no tokenizer here")
        if not cut[0].normalizer_spec.remove_extra_whitespaces:
            what = "no step joins several spaces, or Metaspace is missing"
            raise _not_original(tokenizer.file, what)
        return cut
    try:
        model = ModelProto.FromString(files.content(name))
    except DecodeError:
        model = ModelProto()
    texts = [each.piece for each in model.pieces]
    if not texts:
        raise _not_original(files.folder / name, "is not a SentencePiece model")
    at = list(range(len(texts)))
    if ids:
        at = [ids.get(text, -1) for text in texts]
    elif family == "m2m_100":
        # NLLB-200: fairseq's four special pieces come first, SentencePiece's three among them.
        front = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
        at = [front.get(text, row + 1) for row, text in enumerate(texts)]
    rows = {each.piece: row for each, row in zip(cut[0].pieces, cut[1], strict=True)} if cut else {}
    for text, row in zip(texts, at, strict=True):
        _put(rows, text, row, f"{files.folder / name}")
    return model, at


def _added(files: Files, family: Family, ids: Mapping[str, int]) -> dict[str, tuple[int, bool]]:
    """Tokens that are added to the pieces: the row of each text, and whether it is special."""
    tokenizer, settings = files.fields(TOKENIZER), files.fields(TOKENIZER_CONFIG)
    listed = tokenizer.get("added_tokens", tuple[dict[str, Any], ...], ())
    by_id = settings.get("added_tokens_decoder", dict[str, dict[str, Any]], {})
    named = files.fields(ADDED_TOKENS)
    tokens = [
        *((tokenizer, ("added_tokens", i), each) for i, each in enumerate(listed)),
        *(
            (settings, ("added_tokens_decoder", row), {**each, "id": _decimal(row)})
            for row, each in by_id.items()
        ),
        *((named, (text,), {"content": text, "id": row}) for text, row in named.values.items()),
    ]
    added: dict[str, tuple[int, bool]] = {}
    rows: dict[str, int] = {}
    for file, at, about in tokens:
        text = file.read(about.get("content"), str, *at, "content")
        row = file.read(about.get("id"), Natural, *at, "id")
        _put(rows, text, row, file.file)
        added.setdefault(text, (row, about.get("special") is not False))
    listless = not tokenizer.values and not any(map(_TAG.fullmatch, added))
    if family == "m2m_100" and listless:
        codes = settings.get("language_codes", str, "m2m100")
        if not ids or codes not in M2M100_LANGUAGES:
            raise _not_original(files.folder, "no file has the ids of the language tags")
        # The class of the tokenizer has their order, and no file can change it.
        for row, code in enumerate(M2M100_LANGUAGES[codes].split(), start=len(ids)):
            added[f"__{code}__"] = (row, True)
    return added


_STEPS = {  # that SentencePiece takes, too: where they stand, their list in a sequence, their names
    "normalizer": ("normalizers", ("Precompiled", "Strip", "Replace")),
    "pre_tokenizer": ("pretokenizers", ("WhitespaceSplit", "Metaspace")),
    "decoder": ("decoders", ("Metaspace", "Replace", "ByteFallback", "Fuse", "Strip")),
}
_UNKNOWN = "which no SentencePiece model has"
_REPLACED = {"normalizer": {"Regex": " {2,}"}, "decoder": {"String": SPACE}}
_OF_BPE = {
    "dropout": 0,
    "continuing_subword_prefix": "",
    "end_of_word_suffix": "",
    "ignore_merges": False,
    "fuse_unk": True,
}
"""What a BPE model of SentencePiece always is."""


def _steps(file: Fields) -> dict[str, Fields]:
    """Steps of a `tokenizer.json` that decide how text is cut, by their names.

    Raises
    ------
    InputError
        When SentencePiece does not take one of them; the message names it.
    """
    steps: dict[str, Fields] = {}
    for stage, (many, known) in _STEPS.items():
        waiting = [file.get(stage, dict[str, Any], {"type": "Sequence", many: []})]
        while waiting:
            step = Fields(waiting.pop(), f"{file.file}: {stage}")
            name = step.get("type", str)
            if name == "Sequence":
                waiting += step.get(many, tuple[dict[str, Any], ...])
                continue
            replaced = name == "Replace" and (
                step.get("pattern", dict[str, Any]) != _REPLACED[stage]
                or step.get("content", str) not in (" ", SPACE)
            )
            if name not in known or replaced or step.values.get("replacement", SPACE) != SPACE:
                what = f"the {stage} has the step {shown(dict(step.values))}, {_UNKNOWN}"
                raise _not_original(file.file, what)
            if stage != "decoder":
                steps[name] = step
    model = file.get("model", dict[str, Any])
    for field, value in _OF_BPE.items():
        if model.get("type") == "BPE" and model.get(field) not in (None, value):
            what = f"the field 'model.{field}' is {model[field]!r}, {_UNKNOWN}"
            raise _not_original(file.file, what)
    return steps


def _check_ends(file: Fields, family: Family) -> None:
    """Refuse a T5 whose sentences end otherwise than in </s>; M2M-100's class sets their ends."""
    if family == "m2m_100" or not file.values:
        return
    added = Fields(file.get("post_processor", dict[str, Any], {}), f"{file.file}: post_processor")
    template = [*map(list, added.get("single", tuple[dict[str, Any], ...], ()))]
    if template != [["Sequence"], ["SpecialToken"]]:
        what = f"must put {SPECIAL[EOS]}, and nothing else, behind a sentence"
        raise _not_original(file.file, f"the field 'post_processor' {what}")


def _from_tokenizer(file: Fields) -> tuple[Any, list[int]]:
    """The SentencePiece model that a `tokenizer.json` was made from, as far as it is kept there."""
    model, kind = ModelProto(), ModelProto.SentencePiece
    declared = Fields(file.get("model", dict[str, Any]), f"{file.file}: model")
    texts: list[tuple[str, float, int]]
    spec = model.trainer_spec
    if declared.get("type", str) == "Unigram":
        spec.model_type = spec.UNIGRAM
        scored = declared.get("vocab", tuple[tuple[str, float], ...])
        unknown = declared.get("unk_id", Natural, len(scored))
        texts = [(text, score, row) for row, (text, score) in enumerate(scored)]
    elif declared.get("type", str) == "BPE":
        spec.model_type = spec.BPE
        ids = declared.get("vocab", dict[str, Natural])
        unknown = ids.get(declared.get("unk_token", str, SPECIAL[UNK]))
        ranks: dict[str, int] = {}
        for rank, pair in enumerate(declared.get("merges", tuple[str | tuple[str, str], ...])):
            left, _, right = (
                pair.partition(" ") if isinstance(pair, str) else (pair[0], "", pair[1])
            )
            ranks.setdefault(left + right, rank)
        texts = [
            (text, -float(ranks.get(text, len(ranks) + row)), row) for text, row in ids.items()
        ]
    else:
        what = f"the field 'type' is {declared.get('type', str)!r}, neither Unigram nor BPE"
        raise _not_original(declared.file, what)
    # transformers >= 5 writes the id 2 for every T5, and MADLAD-400's <unk> has another.
    unknown = next((row for text, _, row in texts if text == SPECIAL[UNK]), unknown)
    spec.byte_fallback = declared.get("byte_fallback", bool, False)
    normalizer = model.normalizer_spec
    steps = _steps(file)
    metaspace = steps.get("Metaspace", Fields({}))
    usual = "always" if metaspace.get("add_prefix_space", bool, True) else "never"
    normalizer.add_dummy_prefix = metaspace.get("prepend_scheme", str, usual) != "never"
    normalizer.escape_whitespaces = True
    joins = bool({"Replace", "WhitespaceSplit"} & steps.keys())
    normalizer.remove_extra_whitespaces = joins and "Metaspace" in steps
    if "Precompiled" in steps:
        charsmap = steps["Precompiled"].get("precompiled_charsmap", str)
        try:
            normalizer.precompiled_charsmap = base64.b64decode(charsmap, validate=True)
        except ValueError as error:
            what = f"the field 'precompiled_charsmap' is not base64 ({error})"
            raise _not_original(file.file, what) from error
    listed = file.get("added_tokens", tuple[dict[str, Any], ...], ())
    special = {each.get("id"): each.get("special") is not False for each in listed}
    added = {each.get("id"): each.get("content") for each in listed}
    at = []
    for text, score, row in texts:
        if added.get(row, text) != text:
            raise _not_original(file.file, f"the id {row} is of {text!r} and of {added[row]!r}")
        type_ = kind.UNKNOWN if row == unknown else kind.NORMAL
        if row in special and row != unknown:
            type_ = kind.CONTROL if special[row] else kind.USER_DEFINED
        if spec.byte_fallback and re.fullmatch("<0x[0-9A-F]{2}>", text):
            type_ = kind.BYTE
        if re.fullmatch(r"<unused \d+>", text):  # a row without a piece, in a folder of ours
            type_ = kind.UNUSED
        model.pieces.append(kind(piece=text, score=score, type=type_))
        at.append(row)
    return model, at
