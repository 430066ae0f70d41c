"""The pieces that `train` learns in, and its text in them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from mnmt_repro.cli.continuing import Upgraded
from mnmt_repro.cli.training_text import VALIDATION, TrainingText
from mnmt_repro.corpora.encoding import (
    ConlangSentences,
    SyllableVocabulary,
    encode,
    encode_cached,
    encode_conlang,
)
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.vocabulary import UNK, Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.distributed import processes
from mnmt_repro.training.loop import TrainingData

TOLERATED = 1e-4
"""Share of `<unk>` among a pair's pieces that is not worth a word."""


def make_vocabulary(
    options: argparse.Namespace, text: TrainingText, upgraded: Upgraded | None
) -> Vocabulary:
    """The upgraded model's vocabulary, the given one or one trained here; a conlang's own."""
    if text.conlang is not None:
        if options.vocabulary is not None:
            raise InputError("--vocabulary: a conlang's pieces are its syllables; leave it out")
        return SyllableVocabulary(text.conlang)
    if upgraded is not None:
        return upgraded.vocabulary
    if options.vocabulary is not None:
        return Vocabulary.load(options.vocabulary)
    config = VocabularyConfig(
        pieces=options.pieces,
        temperature=options.vocabulary_temperature,
        languages=tuple(name for pair in text.pairs for name in pair.split("-")),
    )
    return train_vocabulary(
        config, {pair: (each.source, each.target) for pair, each in text.train.items()}
    )


def encode_text(
    text: TrainingText,
    vocabulary: Vocabulary,
    mixture: Mixture,
    tags: Any,
    config: TrainingConfig,
    seed: int,
) -> TrainingData:
    """Sentences of the mixture's pairs that are short enough, and some to validate on.

    Raises
    ------
    InputError
        When a pair has no sentence short enough.
    """
    if isinstance(vocabulary, SyllableVocabulary):
        conlang = vocabulary.conlang
        return TrainingData(
            sentences={
                pair: ConlangSentences(conlang, pair, tags, start=seed << 32)
                for pair in mixture.pairs
            },
            validation={
                pair: encode_conlang(conlang, pair, "valid", VALIDATION, tags)
                for pair in mixture.pairs
            },
        )
    sentences, validation = {}, {}
    for pair in mixture.pairs:
        whole = encode_cached(text.train[pair], vocabulary, tags)
        sentences[pair] = whole.shorter_than(config.max_length)
        if not sentences[pair].size:
            raise InputError(
                f"{pair}: all {whole.size} sentences are longer than --max-length "
                f"{config.max_length} tokens; raise it"
            )
        out = whole.size - sentences[pair].size
        if out and processes().first:
            print(
                f"mnmt-repro: {pair}: {out:,} of {whole.size:,} sentences left out, longer than "
                f"--max-length {config.max_length}",
                file=sys.stderr,
            )
        unknown = float(np.mean(np.append(whole.source.flat, whole.target.flat) == UNK))
        if unknown > TOLERATED and processes().first:
            print(
                f"mnmt-repro: note: {pair}: {unknown:.2%} of its pieces are <unk>: the vocabulary "
                "has no piece for some characters, which no translation can give back",
                file=sys.stderr,
            )
        if pair in text.valid:
            few = text.valid[pair].select(range(min(VALIDATION, len(text.valid[pair]))))
            validation[pair] = encode(few, vocabulary, tags)
    return TrainingData(sentences=sentences, validation=validation)
