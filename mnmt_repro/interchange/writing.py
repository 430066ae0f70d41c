"""Write a model of ours as a folder of `transformers`; whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.encoding import SyllableVocabulary, Tags
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
from mnmt_repro.interchange.folder import CONFIG, WEIGHTS_FILE, read_folder
from mnmt_repro.interchange.pieces import (
    M2M100_LANGUAGES,
    M2M100_VOCABULARY,
    NLLB_CODE,
    SENTENCEPIECE,
    TAGS_FIELD,
    TOKENIZER,
    TOKENIZER_CONFIG,
)
from mnmt_repro.interchange.tokenizer_json import tokenizer_json
from mnmt_repro.interchange.weights import to_hf
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.training.checkpoint import write_tensors

GENERATION, README = "generation_config.json", "README.md"
BEAM, LONGEST = 4, 256
"""Defaults of `generate`. `BEAM` is the number of beams, `LONGEST` the most new pieces."""


def write_hf(
    out: Path,
    model: Transformer,
    vocabulary: Vocabulary,
    tags: Tags,
    pairs: Sequence[str] = (),
) -> None:
    """Write a folder that `transformers` loads: weights, configuration and tokenizer.

    The T5 shape becomes T5, the fairseq shape becomes M2M-100. All pieces but the four special
    ones of M2M-100 keep their ids. A model that came from another program keeps the class of its
    tokenizer and the codes of its languages; see `tokenizer_class`.

    Parameters
    ----------
    out
        A new folder.
    tags
        Where the model finds language tags.
    pairs
        Language pairs that the model was trained on; `generate` translates the first one where
        nothing else is asked for.

    Raises
    ------
    InputError
        When the model is of another shape or its pieces are syllables (`conlang`), or the folder is
        there, cannot be written or does not hold the same model when it is read again.
    """
    kind = tokenizer_class(model.config, vocabulary, tags)
    with new_folder(out) as folder:
        fill_folder(folder, model, vocabulary, tags, pairs, kind)
        _check_again(folder, model, vocabulary, tags)
    if kind in (OWN, "NllbTokenizer") and tags != "none":
        code = vocabulary.languages[0]
        if (there := spelled(code, kind, tags)) != code:
            note(f"{out}: the code of {code} is {there} there, and others alike; see its README.md")


def fill_folder(
    folder: Path,
    model: Transformer,
    vocabulary: Vocabulary,
    tags: Tags,
    pairs: Sequence[str],
    kind: str,
) -> None:
    """Write the files of `write_hf` into a folder, with a tokenizer of the class `kind`.

    Raises
    ------
    InputError
        When the model is of another shape, or its pieces are syllables (`conlang`).
    """
    if isinstance(vocabulary, SyllableVocabulary):
        raise InputError(
            "the model's pieces are syllables of a conlang, which no other tokenizer joins to "
            "words; export a model that was trained on text (--data, --corpus)"
        )
    vocabulary.check_rows(model.config.vocab_size)
    config, names, order = to_hf(model.config, vocabulary.start)
    config[TAGS_FIELD] = tags
    rows = [int(row) for row in order.argsort()]
    if tags == "both-after-end":
        config["decoder_start_token_id"] = rows[EOS]
    elif tags == "both" and pairs:
        config["decoder_start_token_id"] = rows[vocabulary.tag(pairs[0].partition("-")[2])]
    special = {key: value for key, value in config.items() if key.endswith("token_id")}
    silent = set(vocabulary.never)
    if tags == "both-after-end":  # `forced_bos_token_id` asks for a tag, as in M2M-100
        silent -= {vocabulary.tag(language) for language in vocabulary.languages}
    generation = {
        **special,
        "num_beams": BEAM,
        "early_stopping": True,
        "length_penalty": 1.0,
        "max_new_tokens": LONGEST,
        "suppress_tokens": sorted(rows[i] for i in silent),
    }
    codes = [spelled(language, kind, tags) for language in vocabulary.languages]
    settings: dict[str, Any] = {
        "tokenizer_class": kind,
        "model_input_names": ["input_ids", "attention_mask"],
        "pad_token": SPECIAL[PAD],
        "eos_token": SPECIAL[EOS],
        "unk_token": SPECIAL[UNK],
        **({"bos_token": SPECIAL[BOS]} if vocabulary.start == BOS else {}),
        "model_max_length": 1024,
        "clean_up_tokenization_spaces": False,
    }
    if kind == "M2M100Tokenizer":
        settings["language_codes"] = "m2m100"
    elif kind != OWN:
        settings["additional_special_tokens"] = codes
    if kind == "T5Tokenizer":
        settings["extra_ids"] = 0
    elif kind == "NllbTokenizer":
        settings["src_lang"] = "eng_Latn" if "eng_Latn" in codes else codes[0]
        if "<mask>" not in _used(vocabulary):  # else its class adds a piece without a row
            settings["mask_token"] = None
    where = torch.from_numpy(order)
    tensors = {
        names[name]: (tensor[where] if name in TABLES else tensor.detach()).contiguous()
        for name, tensor in model.state_dict().items()
    }
    write_tensors(folder / WEIGHTS_FILE, tensors, {"format": "pt"})
    write_json(folder / CONFIG, config)
    write_json(folder / GENERATION, generation)
    written = _with_codes(vocabulary, codes)
    if kind == "M2M100Tokenizer":
        _write_m2m100(folder, written, rows)
    else:
        write_json(folder / TOKENIZER, tokenizer_json(written, rows))
    write_json(folder / TOKENIZER_CONFIG, settings)
    write_readme(folder, tags, codes)


OWN = "PreTrainedTokenizerFast"


def tokenizer_class(shape: ModelConfig, vocabulary: Vocabulary, tags: Tags) -> str:
    """The class of `transformers` that cuts text and puts tags as the model expects.

    Those of the families that `read_folder` reads take no other pieces than theirs: BPE (NLLB-200
    and M2M-100) or unigram (T5) without bytes. M2M-100's has a fixed list of languages, so a model
    with other ones has NLLB-200's, which takes any token as a language.
    """
    model = ModelProto.FromString(vocabulary.model)
    spec = model.trainer_spec
    if spec.byte_fallback or not model.normalizer_spec.add_dummy_prefix:
        return OWN
    if not shape.tie_output:
        own = spec.model_type != spec.UNIGRAM or vocabulary.start == BOS or tags.startswith("both")
        return OWN if own else "T5Tokenizer"
    if spec.model_type != spec.BPE or tags != "both-after-end":
        return OWN
    listed = [tag(code) for code in M2M100_LANGUAGES["m2m100"].split()]
    names = [each.piece for each in model.pieces]
    first = names.index(listed[0]) if listed[0] in names else 0
    last = first + len(listed)
    rest = all(each.type == each.UNUSED for each in model.pieces[last:])
    if names[first:last] == listed and rest and len(vocabulary.languages) == len(listed):
        return "M2M100Tokenizer"
    return "NllbTokenizer"


def spelled(language: str, kind: str, tags: Tags) -> str:
    """The token of a language in a tokenizer of that class.

    >>> spelled("eng_Latn", "NllbTokenizer", "both-after-end")
    'eng_Latn'
    >>> spelled("de", "M2M100Tokenizer", "both-after-end"), spelled("de", "T5Tokenizer", "source")
    ('__de__', '<2de>')
    """
    if kind == OWN or tags != "both-after-end":
        return tag(language)
    return language if NLLB_CODE.fullmatch(language) else f"__{language}__"


def _with_codes(vocabulary: Vocabulary, codes: Sequence[str]) -> Vocabulary:
    """The vocabulary with other texts of its tags."""
    model = ModelProto.FromString(vocabulary.model)
    texts = dict(zip(map(tag, vocabulary.languages), codes, strict=True))
    for each in model.pieces:
        if texts.get(each.piece, each.piece) != each.piece:
            each.piece, each.type = texts[each.piece], each.CONTROL
    return Vocabulary(model.SerializeToString(deterministic=True))


def _write_m2m100(folder: Path, vocabulary: Vocabulary, rows: Sequence[int]) -> None:
    """The two files of M2M-100's tokenizer, whose class adds the languages behind all pieces."""
    model = ModelProto.FromString(vocabulary.model)
    first = next(i for i, each in enumerate(model.pieces) if each.piece.startswith("__"))
    del model.pieces[first:]
    ids = {each.piece: row for each, row in zip(model.pieces, rows, strict=False)}
    (folder / SENTENCEPIECE[1]).write_bytes(with_settings(model).model)
    write_json(folder / M2M100_VOCABULARY, ids)


def _check_again(folder: Path, model: Transformer, vocabulary: Vocabulary, tags: Tags) -> None:
    """Refuse a folder that is read as another model: shape, weights, tags, languages and pieces."""
    again = read_folder(folder)
    state, order = model.state_dict(), torch.from_numpy(again.pieces.order)
    same = again.pieces.tags == tags and again.pieces.vocabulary.languages == vocabulary.languages
    weights = (
        torch.equal(state[name].cpu(), tensor[order] if name in TABLES else tensor)
        for name, tensor in again.weights.items()
    )
    same = same and _used(vocabulary) == _used(again.pieces.vocabulary)
    if not (same and all(weights)):
        raise InputError("the model that was written is read as another one; please report this")


def _used(vocabulary: Vocabulary) -> list[str]:
    """Texts of the pieces with a row. T5 has no <s>, so it may be lost on the way."""
    pieces = vocabulary.processor
    texts = [pieces.id_to_piece(i) for i in range(len(vocabulary)) if not pieces.is_unused(i)]
    return [text for text in texts if text != SPECIAL[BOS]]


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` to fill, which then takes its name; removed where anything fails.

    Raises
    ------
    InputError
        When `out` is there already and holds something, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: is there already; choose another folder, or remove it")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
            stage = Path(temporary, "stage")
            stage.mkdir()
            yield stage
            for path in stage.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            if out.exists():
                out.rmdir()
            stage.rename(out)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written: {error.strerror or error}") from error


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON in UTF-8."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


_TAG_RULES = {
    "none": "The model has no language tags.",
    "source": "The tag of the target language begins the source.",
    "both": "The tag of the source language begins the source. The tag of the target language "
    "starts the decoder: `decoder_start_token_id` of `generate`, `target_prefix` of CTranslate2.",
    "both-after-end": "The tag of the source language begins the source; a tokenizer with "
    "`src_lang` puts it there. The decoder starts with the end of sentence, and the tag of the "
    "target language follows: `forced_bos_token_id` of `generate`, `target_prefix` of CTranslate2.",
}


def write_readme(folder: Path, tags: Tags, tokens: Sequence[str]) -> None:
    """Write where the model finds language tags, for people, and how its languages are spelled."""
    spelling = f"\n\nTags: {' '.join(tokens)}" if tokens and tags != "none" else ""
    text = f"# A translation model of mnmt-repro\n\n{_TAG_RULES[tags]}{spelling}\n"
    (folder / README).write_text(text, encoding="utf-8")
