"""The text of a declared run: training, validation and test, encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.bitext import Bitext, load_split, load_test_set
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.encoding import (
    ConlangSentences,
    Tags,
    encode,
    encode_cached,
    encode_conlang,
)
from mnmt_repro.corpora.registry import cache_root, data_hash, get_card, known_test_sets
from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.experiments.spec import RunSpec, digest
from mnmt_repro.training.loop import TrainingData

VALIDATION_SENTENCES = 400  # of each pair, for the learning curve
CONLANG_TEST_SENTENCES = 4000
OUT_OF_DOMAIN = ("newstest21", "newstest22-pivot", "multi30k-2016")
SHARED_DOMAINS = {"webtech": ("tatoeba", "phpdoc", "odoo", "aosp", "scratch", "gnome")}
"""Domains that all languages of a corpus have: contrasts between languages are read on these."""


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """An encoded test set, with the domain of each sentence where the corpus marks it."""

    __test__ = False  # not a pytest class

    name: str
    text: EncodedPair
    domains: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()  # domains that make up the test set "shared"


@dataclass(frozen=True, kw_only=True)
class RunData:
    """All that a run reads."""

    training: TrainingData
    tests: Mapping[str, tuple[TestSet, ...]]  # of each pair of the mixture
    vocabulary_hash: str
    mean_lengths: Mapping[str, tuple[float, float]]  # source and target tokens a training sentence


def corpus_vocabulary(corpus: str, config: VocabularyConfig) -> Vocabulary:
    """The vocabulary of a registered corpus, trained once and kept under the hash of its inputs."""
    languages = set(config.languages)
    pairs = [p for p in get_card(corpus).pairs if set(p.split("-")) <= languages]
    pairs = [p for p in pairs if p.startswith("eng-")]
    name = digest([asdict(config), data_hash(corpus, pairs)])
    path = cache_root() / "vocabularies" / f"{corpus}-{name}.model"
    if not path.exists():
        text = {}
        for pair in pairs:
            bitext = load_split(corpus, pair, "train")
            text[pair] = (bitext.source, bitext.target)
        train_vocabulary(config, text).save(path)
    return Vocabulary.load(path)


def load_run_data(spec: RunSpec) -> RunData:
    """Read, encode and cut the text that `spec` names.

    Raises
    ------
    InputError
        When the corpus is not on this machine, or lacks a pair of the mixture.
    """
    return _conlang(spec) if spec.conlang is not None else _registered(spec)


def _registered(spec: RunSpec) -> RunData:
    assert spec.vocabulary is not None
    vocabulary = corpus_vocabulary(spec.corpus, spec.vocabulary)
    sentences, validation, tests = {}, {}, {}
    for pair in spec.mixture.pairs:
        text = encode_cached(load_split(spec.corpus, pair, "train"), vocabulary, spec.tags)
        sentences[pair] = text.shorter_than(spec.training.max_length)
        valid = load_split(spec.corpus, pair, "valid")
        validation[pair] = _first(encode(valid, vocabulary, spec.tags), VALIDATION_SENTENCES)
        tests[pair] = _test_sets(spec.corpus, pair, vocabulary, spec.tags)
    return RunData(
        training=TrainingData(sentences=sentences, validation=validation),
        tests=tests,
        vocabulary_hash=vocabulary.hash,
        mean_lengths={pair: _mean_lengths(text) for pair, text in sentences.items()},
    )


def _test_sets(corpus: str, pair: str, vocabulary: Vocabulary, tags: Tags) -> tuple[TestSet, ...]:
    inside = load_split(corpus, pair, "test")
    found = [
        TestSet(
            name="indomain",
            text=encode(inside, vocabulary, tags),
            domains=None if inside.domain is None else tuple(inside.domain),
            shared=SHARED_DOMAINS.get(corpus, ()),
        )
    ]
    for name in OUT_OF_DOMAIN:
        if name in known_test_sets(pair):
            text: Bitext = load_test_set(name, pair)
            found.append(TestSet(name=name, text=encode(text, vocabulary, tags)))
    return tuple(found)


def _conlang(spec: RunSpec) -> RunData:
    assert spec.conlang is not None
    conlang = Conlang(spec.conlang)
    sentences, validation, tests, lengths = {}, {}, {}, {}
    for pair in spec.mixture.pairs:
        sentences[pair] = ConlangSentences(conlang, pair, spec.tags, start=spec.seed << 32)
        validation[pair] = encode_conlang(conlang, pair, "valid", VALIDATION_SENTENCES, spec.tags)
        test = encode_conlang(conlang, pair, "test", CONLANG_TEST_SENTENCES, spec.tags)
        tests[pair] = (TestSet(name="indomain", text=test),)
        lengths[pair] = _mean_lengths(test)
    return RunData(
        training=TrainingData(sentences=sentences, validation=validation),
        tests=tests,
        vocabulary_hash=digest(conlang.pieces),
        mean_lengths=lengths,
    )


def _first(text: EncodedPair, count: int) -> EncodedPair:
    return EncodedPair(*text.take(np.arange(min(count, text.size))))


def _mean_lengths(text: EncodedPair) -> tuple[float, float]:
    return float(text.source.lengths.mean()), float((text.target.lengths - 1).mean())
