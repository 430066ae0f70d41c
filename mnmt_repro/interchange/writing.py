"""Write a model of ours as a folder of `transformers`; whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mnmt_repro.corpora.encoding import SyllableVocabulary, Tags
from mnmt_repro.corpora.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary, tag
from mnmt_repro.errors import InputError
from mnmt_repro.interchange.folder import CONFIG, WEIGHTS_FILE
from mnmt_repro.interchange.pieces import TAGS_FIELD, TOKENIZER, TOKENIZER_CONFIG
from mnmt_repro.interchange.tokenizer_json import tokenizer_json
from mnmt_repro.interchange.weights import to_hf
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.training.checkpoint import write_tensors

GENERATION, README = "generation_config.json", "README.md"
BEAM, LONGEST = 4, 256
"""Defaults of `generate`: beams, and most new pieces."""


def write_hf(
    out: Path,
    model: Transformer,
    vocabulary: Vocabulary,
    tags: Tags,
    pairs: Sequence[str] = (),
) -> None:
    """Write a folder that `transformers` loads: weights, configuration and tokenizer.

    The T5 shape becomes T5, the fairseq shape becomes M2M-100. All pieces but the four special
    ones of M2M-100 keep their ids.

    Parameters
    ----------
    out
        A new folder.
    tags
        Where the model finds language tags.
    pairs
        Language pairs that the model was trained on; the first one is the example in README.md.

    Raises
    ------
    InputError
        When the model is of another shape or its pieces are syllables (`conlang`), or the folder is
        there or cannot be written.
    """
    if isinstance(vocabulary, SyllableVocabulary):
        raise InputError(
            "the model's pieces are the syllables of a conlang, and no tokenizer of another "
            "program joins them to words; export a model that was trained on text (--data, "
            "--corpus)"
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
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[PAD],
        "eos_token": SPECIAL[EOS],
        "unk_token": SPECIAL[UNK],
        **({"bos_token": SPECIAL[BOS]} if vocabulary.start == BOS else {}),
        "model_max_length": 1024,
        "clean_up_tokenization_spaces": False,
    }
    with new_folder(out) as folder:
        where = torch.from_numpy(order)
        tensors = {
            names[name]: (tensor[where] if name in TABLES else tensor.detach()).contiguous()
            for name, tensor in model.state_dict().items()
        }
        write_tensors(folder / WEIGHTS_FILE, tensors, {"format": "pt"})
        write_json(folder / CONFIG, config)
        write_json(folder / GENERATION, generation)
        write_json(folder / TOKENIZER, tokenizer_json(vocabulary, rows))
        write_json(folder / TOKENIZER_CONFIG, settings)
        (folder / README).write_text(_readme(vocabulary, tags, pairs), encoding="utf-8")


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
    stage = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    try:
        stage.mkdir(parents=True)
        yield stage
        for path in stage.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if out.exists():
            out.rmdir()
        stage.rename(out)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON in UTF-8."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


TAG_RULES = {
    "none": "The model has no language tags.",
    "source": "The tag of the target language begins the source.",
    "both": "The tag of the source language begins the source, and the tag of the target "
    "language starts the decoder.",
    "both-after-end": "The tag of the source language begins the source. The decoder starts "
    "with the end of sentence, and the tag of the target language follows.",
}
"""Where a model finds language tags, for people."""


def example_tags(vocabulary: Vocabulary, tags: Tags, pairs: Sequence[str]) -> tuple[str, str]:
    """Tags of the first pair, or of two languages: in the source and in the target, if any."""
    some = (*vocabulary.languages, "xxx", "yyy")[:2]
    source, _, target = (*pairs, "-".join(some))[0].partition("-")
    if tags in ("none", "source"):
        return tag(target) * (tags == "source"), ""
    return tag(source), tag(target)


def _readme(vocabulary: Vocabulary, tags: Tags, pairs: Sequence[str]) -> str:
    """How the model is called."""
    first, second = example_tags(vocabulary, tags, pairs)
    name = {"both": "decoder_start_token_id", "both-after-end": "forced_bos_token_id"}.get(tags)
    more = f', {name}=tokenizer.convert_tokens_to_ids("{second}")' if name else ""
    tagged = " ".join(tag(language) for language in vocabulary.languages)
    return f"""\
# A translation model of mnmt-repro

{TAG_RULES[tags]}{f" Tags: {tagged}" if tagged and tags != "none" else ""}

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
batch = tokenizer(["{f"{first} " if first else ""}SENTENCE"], return_tensors="pt", padding=True)
output = model.generate(input_ids=batch.input_ids, attention_mask=batch.attention_mask{more})
print(tokenizer.batch_decode(output, skip_special_tokens=True))
```
"""
