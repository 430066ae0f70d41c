"""The text of a run: training, validation and test, encoded."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

import numpy as np

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.bitext import load_split, load_test_set
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.encoding import (
    ConlangSentences,
    SyllableVocabulary,
    Tags,
    encode,
    encode_conlang,
)
from mnmt_repro.corpora.extending import extend_vocabulary
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.registry import data_hash, get_card, known_test_sets
from mnmt_repro.corpora.version import CORPORA_VERSION
from mnmt_repro.corpora.vocabulary import UNK, Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError, tell
from mnmt_repro.repository import cache_root
from mnmt_repro.runs.spec import (
    MOST_VALIDATION_SENTENCES,
    OWN,
    VALIDATION_SENTENCES,
    RunSpec,
    digest,
)
from mnmt_repro.runs.training_text import TextSource, TrainingText
from mnmt_repro.training.loop import TrainingData

TOLERATED = 1e-4
"""Share of `<unk>` among a pair's pieces that is not worth a word."""
CONLANG_TEST_SENTENCES = 4000
OUT_OF_DOMAIN = ("newstest21", "newstest22-pivot", "multi30k-2016")
SHARED_DOMAINS = dict.fromkeys(
    ("webtech", "webtech-shared"), ("tatoeba", "phpdoc", "odoo", "aosp", "scratch", "gnome")
)
"""Domains that all languages of a corpus have: contrasts between languages are read on these."""
SHORT_SEGMENTS = ("software25",)
"""Corpora of interface strings: scored whole and without the shortest, not by domain, nor on other
kinds of text, which they teach next to nothing about."""
LONG_ENOUGH = 3  # English words
_MANY_SENTENCES = 50_000  # whose vocabulary takes several seconds


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """An encoded test set, with the domain of each sentence where the corpus marks it."""

    __test__ = False  # not a pytest class

    name: str
    text: EncodedPair
    domains: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()  # domains that make up the test set "shared"
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)  # test set -> its rows, boolean
    references: tuple[str, ...] = ()  # the target side as text; see `load_test_sets`

    @classmethod
    def of(
        cls, name: str, text: Bitext, vocabulary: Vocabulary, tags: Tags, corpus: str = OWN
    ) -> TestSet:
        """A test set as models of `corpus` are scored on it: by domain, if the text marks them."""
        inside = corpus if name == "indomain" else OWN
        short, parts = inside in SHORT_SEGMENTS, {}
        if short:
            english = text.source if text.pair.startswith("eng-") else text.target
            long = np.array([len(sentence.split()) >= LONG_ENOUGH for sentence in english])
            parts = {f"indomain-{LONG_ENOUGH}words": long} if long.any() else {}
        return cls(
            name=name,
            text=encode(text, vocabulary, tags),
            domains=None if short or text.domain is None else tuple(text.domain),
            shared=SHARED_DOMAINS.get(inside, ()),
            parts=parts,
            references=tuple(text.target),
        )

    @property
    def selections(self) -> dict[tuple[str, str], np.ndarray]:
        """Rows of each score, boolean, by test set and domain: whole, domains, shared, parts."""
        selections = {(self.name, "all"): np.ones(self.text.size, dtype=bool)}
        if self.domains is not None:
            domains = np.array(self.domains)
            selections |= {
                (self.name, name): domains == name for name in sorted(set(self.domains) - {"all"})
            }
            if (shared := np.isin(domains, self.shared)).any():
                selections["shared", "all"] = shared
        return selections | {(name, "all"): rows for name, rows in self.parts.items()}


@dataclass(frozen=True, kw_only=True)
class RunData:
    """All that a run reads."""

    training: TrainingData
    tests: Mapping[str, tuple[TestSet, ...]]  # of each pair of the mixture
    vocabulary: Vocabulary
    notes: tuple[str, ...] = ()  # what a user should know about the text


def run_vocabulary(spec: RunSpec) -> Vocabulary:
    """The pieces of a run: its vocabulary's, or its generated languages' syllables."""
    if spec.conlang is not None:
        return SyllableVocabulary(spec.conlang)
    if spec.upgrade is not None and spec.upgrade.new_pieces is not None:
        return _extended(spec, spec.upgrade.parent, spec.upgrade.new_pieces)
    assert spec.vocabulary is not None
    return corpus_vocabulary(spec.corpus, spec.vocabulary, dict(spec.kept))


def _extended(spec: RunSpec, parent: RunSpec, pieces: int) -> Vocabulary:
    """The parent's vocabulary, and new pieces of the languages that the parent lacks."""
    old, kept = run_vocabulary(parent), dict(spec.kept)
    languages, known = (
        {code for pair in run.mixture.pairs for code in pair.split("-")} for run in (spec, parent)
    )
    added = sorted(languages - known)
    pairs = [pair for pair in spec.mixture.pairs if pair.split("-")[1] in added]

    def extend() -> Vocabulary:
        text = (keep(load_split(spec.corpus, pair, "train"), kept).target for pair in pairs)
        return extend_vocabulary(old, added, [*chain.from_iterable(text)], pieces).vocabulary

    inputs = [CORPORA_VERSION, old.hash, data_hash(spec.corpus, pairs), kept, pieces]
    return _made_once(f"{spec.corpus}-{digest(inputs)}", extend)


def corpus_vocabulary(
    corpus: str, config: VocabularyConfig, kept: Mapping[str, int] | None = None
) -> Vocabulary:
    """The vocabulary of a registered corpus, trained once and kept under the hash of its inputs.

    They include our code's version. A selection has that of the corpus that it is selected from.

    Parameters
    ----------
    kept
        Languages of which it sees only so many training pairs; see `keep`.
    """
    corpus = get_card(corpus).base or corpus
    languages = set(config.languages)
    pairs = [p for p in get_card(corpus).pairs if set(p.split("-")) <= languages]
    pairs = [p for p in pairs if p.startswith("eng-")] or pairs
    fewer = {code: count for code, count in (kept or {}).items() if code in languages}
    name = digest([CORPORA_VERSION, asdict(config), data_hash(corpus, pairs), fewer])
    text = ((pair, keep(load_split(corpus, pair, "train"), fewer)) for pair in pairs)
    return _trained_once(f"{corpus}-{name}", config, text)


def _trained_once(
    name: str, config: VocabularyConfig, text: Iterable[tuple[str, Bitext]]
) -> Vocabulary:
    """The vocabulary of this name in the cache; the text is read only where there is none."""

    def trained() -> Vocabulary:
        sides = {pair: (bitext.source, bitext.target) for pair, bitext in text}
        if sum(len(source) for source, _ in sides.values()) > _MANY_SENTENCES:
            tell(f"training a vocabulary of {config.pieces:,} pieces, once for this text")
        return train_vocabulary(config, sides)

    return _made_once(name, trained)


def _made_once(name: str, make: Callable[[], Vocabulary]) -> Vocabulary:
    path = cache_root() / "vocabularies" / f"{name}.model"
    if not path.exists():
        make().save(path)
    return Vocabulary.load(path)


def make_vocabulary(text: TrainingText, source: TextSource) -> Vocabulary:
    """The vocabulary that a user names, else one trained on her text; a conlang's own.

    One that is trained on her own text is kept under the hash of its inputs, as a corpus's is.

    Raises
    ------
    InputError
        When a conlang is to have a vocabulary, or the text gives no such one.
    """
    if text.conlang is not None:
        if source.vocabulary is not None:
            raise InputError("--vocabulary: a conlang's pieces are its syllables; leave it out")
        return SyllableVocabulary(text.conlang)
    if source.vocabulary is not None:
        return Vocabulary.load(source.vocabulary)
    config = VocabularyConfig(
        pieces=source.pieces,
        temperature=source.vocabulary_temperature,
        languages=tuple(name for pair in text.pairs for name in pair.split("-")),
    )
    if text.corpus != OWN:
        return corpus_vocabulary(text.corpus, config)
    name = digest([CORPORA_VERSION, asdict(config), text.hashes])
    return _trained_once(f"{OWN}-{name}", config, text.train.items())


def spread(size: int, most: int) -> np.ndarray:
    """Which sentences stand for a test set of that size: `most` of them, spread evenly over it.

    >>> spread(10, 4).tolist(), spread(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.linspace(0, size - 1, min(most, size)).round().astype(int)


def keep(bitext: Bitext, kept: Mapping[str, int]) -> Bitext:
    """Of a language named in `kept`, that many pairs of `bitext`, else all.

    They are those whose two sentences hash lowest, in the order they had. So neither the order of
    the lines nor the direction of the pair matters, and a smaller selection is part of a larger
    one.
    """
    source, target = bitext.pair.split("-")
    count = min(kept.get(source, len(bitext)), kept.get(target, len(bitext)))
    if count >= len(bitext):
        return bitext
    sides = (bitext.source, bitext.target) if source < target else (bitext.target, bitext.source)
    hashes = [hashlib.sha256("\t".join(row).encode()).digest() for row in zip(*sides, strict=True)]
    lowest = sorted(range(len(hashes)), key=hashes.__getitem__)[:count]
    return bitext.select(sorted(lowest))


def load_run_data(
    spec: RunSpec, text: TrainingText | None = None, vocabulary: Vocabulary | None = None
) -> RunData:
    """Read, encode and cut the text of a run.

    A user's run on a corpus is scored on its in-domain test set. Text of her own has none: what was
    held out of it, or given to validate on, takes its place.

    Parameters
    ----------
    text, vocabulary
        Of a user's run; a declared one names its own.

    Raises
    ------
    InputError
        When the corpus is not on this machine or lacks a pair of the mixture, or a pair has no
        sentence short enough.
    """
    if spec.conlang is not None:
        return _generated(spec)
    pairs, corpus = spec.mixture.pairs, spec.corpus
    if text is None or vocabulary is None:
        vocabulary, kept = run_vocabulary(spec), dict(spec.kept)
        train = {pair: keep(load_split(corpus, pair, "train"), kept) for pair in pairs}
        valid = {pair: load_split(corpus, pair, "valid") for pair in pairs}
    else:
        train, valid = dict(text.train), dict(text.valid)
    tests: dict[str, tuple[TestSet, ...]] = {}
    outside = OUT_OF_DOMAIN if text is None else ()
    for pair in pairs:
        if corpus != OWN:
            tests[pair] = corpus_test_sets(corpus, pair, vocabulary, spec.tags, outside)
        elif len(valid.get(pair, ())):
            tests[pair] = (TestSet.of("indomain", valid[pair], vocabulary, spec.tags),)
    return _encoded(spec, vocabulary, train=train, valid=valid, tests=tests)


def load_test_sets(spec: RunSpec, pair: str) -> tuple[TestSet, ...]:
    """Test sets of one pair, as a run on `spec` has them, with references and no training text.

    Raises
    ------
    InputError
        As `load_run_data`.
    """
    if spec.conlang is not None:
        conlang = Conlang(spec.conlang)
        test = _conlang_test(conlang, pair, spec.tags)
        lines = conlang.text(pair, 0, CONLANG_TEST_SENTENCES, split="test")
        return (dataclasses.replace(test, references=tuple(target for _, target in lines)),)
    return corpus_test_sets(spec.corpus, pair, run_vocabulary(spec), spec.tags)


def _encoded(
    spec: RunSpec,
    vocabulary: Vocabulary,
    *,
    train: Mapping[str, Bitext],
    valid: Mapping[str, Bitext],
    tests: Mapping[str, tuple[TestSet, ...]],
) -> RunData:
    """The real text of a run in its pieces; of the validation text no more than is used.

    Raises
    ------
    InputError
        When a pair has no sentence short enough.
    """
    most = min(VALIDATION_SENTENCES, MOST_VALIDATION_SENTENCES // len(spec.mixture.pairs))
    longest = spec.training.max_length
    sentences, validation, notes = {}, {}, []
    for pair in spec.mixture.pairs:
        whole = encode(train[pair], vocabulary, spec.tags)
        sentences[pair] = whole.shorter_than(longest)
        if not sentences[pair].size:
            why = f"all sentences are longer than --max-length {longest} tokens; raise it"
            raise InputError(f"{pair}: {why}")
        if out := whole.size - sentences[pair].size:
            notes.append(
                f"{pair}: {out:,} of {whole.size:,} sentences left out, longer than --max-length "
                f"{longest}"
            )
        unknown = float(np.mean(np.append(whole.source.flat, whole.target.flat) == UNK))
        if unknown > TOLERATED:
            notes.append(
                f"{pair}: {unknown:.2%} of its pieces are <unk>: the vocabulary has no piece "
                "for some characters, which no translation can give back"
            )
        if pair in valid:
            validation[pair] = _first(encode(valid[pair], vocabulary, spec.tags), most)
    return RunData(
        training=TrainingData(sentences=sentences, validation=validation),
        tests=tests,
        vocabulary=vocabulary,
        notes=tuple(notes),
    )


def corpus_test_sets(
    corpus: str,
    pair: str,
    vocabulary: Vocabulary,
    tags: Tags,
    outside: Sequence[str] = OUT_OF_DOMAIN,
) -> tuple[TestSet, ...]:
    """Test sets of a registered corpus: its own, and of those named in `outside` what there is."""
    texts = {"indomain": load_split(corpus, pair, "test")}
    if corpus not in SHORT_SEGMENTS:
        known = known_test_sets(pair)
        texts |= {name: load_test_set(name, pair) for name in outside if name in known}
    return tuple(TestSet.of(name, text, vocabulary, tags, corpus) for name, text in texts.items())


def _generated(spec: RunSpec) -> RunData:
    """The text of a run on generated languages, which needs no file."""
    assert spec.conlang is not None
    longest = spec.conlang.syllables_per_concept * spec.conlang.max_concepts + 1  # with the end
    if longest > spec.training.max_length:
        why = f"generated sentences have up to {longest} tokens; raise it"
        raise InputError(f"--max-length {spec.training.max_length}: {why}")
    vocabulary = SyllableVocabulary(spec.conlang)
    conlang = vocabulary.conlang
    sentences, validation, tests = {}, {}, {}
    for pair in spec.mixture.pairs:
        sentences[pair] = ConlangSentences(conlang, pair, spec.tags, start=spec.first_sentence)
        validation[pair] = encode_conlang(conlang, pair, "valid", VALIDATION_SENTENCES, spec.tags)
        tests[pair] = (_conlang_test(conlang, pair, spec.tags),)
    return RunData(
        training=TrainingData(sentences=sentences, validation=validation),
        tests=tests,
        vocabulary=vocabulary,
    )


def _conlang_test(conlang: Conlang, pair: str, tags: Tags) -> TestSet:
    text = encode_conlang(conlang, pair, "test", CONLANG_TEST_SENTENCES, tags)
    return TestSet(name="indomain", text=text)


def _first(text: EncodedPair, count: int) -> EncodedPair:
    return EncodedPair(*text.take(np.arange(min(count, text.size))))
