"""SentencePiece models of other programs, made ours: special pieces in front, a tag a language."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.corpora.registry import is_language
from mnmt_repro.corpora.textfile import read_whole
from mnmt_repro.corpora.vocabulary import SPECIAL, UNK, Vocabulary, check_codes, tag, with_settings
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from sentencepiece.sentencepiece_model_pb2 import ModelProto


def adopt_vocabulary(path: Path | str, languages: Iterable[str]) -> Vocabulary:
    """Read any SentencePiece model, and give its pieces our order.

    Text is cut into the same pieces as before; only their ids change. Padding, end, unknown and
    start, which the model's settings name wherever they stand, come first,
    those that it lacks are added, and a tag for each language follows.

    Parameters
    ----------
    path : a `.model` file, unigram or BPE, with bytes to fall back to or without
    languages : those that get a tag

    Raises
    ------
    InputError
        When the file cannot be read, is no SentencePiece model, or no language is named, or
        something that cannot be a language's code.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    wanted = sorted(set(languages))
    if not wanted:
        raise InputError("name the languages that get a tag")
    for code in wanted:
        if not is_language(code):
            raise InputError(f"language {code!r}: give codes, not pairs, such as eng,deu,xho")
    check_codes(wanted)
    try:
        vocabulary = _adopted(ModelProto.FromString(read_whole(path)), wanted)
        len(vocabulary)  # the library reads it
    except OSError as error:
        raise InputError(f"cannot read the vocabulary {path}: {error.strerror}") from error
    except (DecodeError, RuntimeError, IndexError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a SentencePiece model") from error
    return vocabulary


def _adopted(model: ModelProto, languages: list[str]) -> Vocabulary:
    """Special pieces, a tag for each language, and the model's other pieces."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    kind = ModelProto.SentencePiece
    taken = _special(model) | {
        i for i, each in enumerate(model.pieces) if each.piece in (*SPECIAL, *map(tag, languages))
    }
    others = [each for i, each in enumerate(model.pieces) if i not in taken]
    front = [
        kind(piece=name, score=0.0, type=kind.UNKNOWN if i == UNK else kind.CONTROL)
        for i, name in enumerate(SPECIAL)
    ]
    tags = [kind(piece=tag(name), score=0.0, type=kind.USER_DEFINED) for name in languages]
    adopted = ModelProto()
    adopted.CopyFrom(model)
    del adopted.pieces[:]
    adopted.pieces.extend([*front, *tags, *others])
    return with_settings(adopted)


def _special(model: ModelProto) -> set[int]:
    """Places of the model's own padding, end, unknown and start, whatever they are called."""
    spec, pieces = model.trainer_spec, model.pieces
    kind: Any = type(pieces[0])
    named = {
        i
        for i in (spec.pad_id, spec.eos_id, spec.bos_id)
        if 0 <= i < len(pieces) and pieces[i].type == kind.CONTROL
    }
    return named | {i for i, each in enumerate(pieces) if each.type == kind.UNKNOWN}
