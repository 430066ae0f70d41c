"""conlang: a family of artificial languages over one Zipf-distributed inventory of concepts.

A sentence is a sequence of concepts, drawn independently with probability proportional to
`rank ** -zipf`. A language writes it in its own word order, each concept as one word of
`syllables_per_concept` syllables. Every concept has two spellings in every language; the second is
used with probability q, the synonymy, independently at each occurrence. No two spellings
of a language are alike, so the source determines the concepts, hence the target up to its choices
of spelling: the conditional entropy of the target given the source is exactly that of those choices
(`irreducible_entropy`), and it is the `L_inf` that a law fitted to losses should find.

What similarity does
--------------------
Languages of one family share `round(similarity * concepts)` concepts: those have the same two
spellings in every member; all other words of a member contain a syllable that no other language
has. Each language always has the same number S of syllables, of which a family's members share
`M ~ S * similarity ** (1 / syllables_per_concept)`, so that shared words fill the `M ** k`
strings of shared syllables exactly as densely as other words fill the rest: one language alone is
equally hard at every similarity. The shared concepts are spread evenly over frequency ranks by the
golden-ratio sequence, and the sets are nested: raising the similarity only adds to them. At 0
neither a word nor a syllable is shared; at 1 lexicons are identical. Word order is a separate knob,
and by default all languages but the first have the same one, so that at similarity 1 the default
family's members are one language under several names. The joint number of pieces falls as
similarity rises.

Streams and splits
------------------
Sentence i of a pair is a pure function of (seed, split, pair, i), by counter-based Philox streams.
Training streams of different pairs are independent; in `valid` and `test`, sentence i has the
same concepts for all pairs and the same words in a language wherever it stands, so these sets are
parallel across languages. Nothing in a stream depends on similarity or word order.
A hash of the concept sequence alone decides its split, 1 % `test`, 1 % `valid`, so no sequence
of concepts, in whatever language or spelling, occurs in two splits. Sequences of another split are
rejected and drawn again at the same length, which leaves lengths, choices of spelling, and so
the irreducible entropy, as they were. (Very short sentences are few and lumpy: there the splits
differ in which frequent ones they hold.)
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.registry import SPLITS
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import Count, Natural, Range, Share, check

Order = Literal["forward", "reversed"]
SPELLINGS = 2  # of each concept in each language

_TEST, _VALID = 10, 20  # hash mod 1000 below 10: test; below 20: valid; else train
_BLOCK = {"train": 8192, "valid": 1024, "test": 1024}  # sentences generated together
_TRIES = {"train": 1, "valid": 64, "test": 64}  # candidates a sentence in the first round
_MOST_TRIES = 65536  # candidates a later round, over all sentences
_ROUNDS = 128  # rounds before a split is declared empty
_ONSETS, _VOWELS, _CODAS = "ktpmnslrbdgvfzhjwcxq", "aieou", ("", *"nrlsmtkpbdgvfzhjwcxq")
_SYLLABLE = re.compile(f"[{_ONSETS}][{_VOWELS}](?:[{_ONSETS}](?![{_VOWELS}]))?")


@dataclass(frozen=True, kw_only=True)
class ConlangConfig:
    """A family of languages and the sentences they write.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.

    Examples
    --------
    >>> ConlangConfig().pairs[:2], ConlangConfig().families
    (('src-aaa', 'src-bbb'), (('aaa', 'bbb'),))
    """

    languages: tuple[str, ...] = ("src", "aaa", "bbb")
    concepts: Annotated[int, Range(2)] = 2048
    zipf: Annotated[float, Range(0, 4)] = 1.2  # exponent of concept frequency
    syllables: Annotated[int, Range(2)] = 96  # of each language
    syllables_per_concept: Count = 2
    min_concepts: Count = 6  # of a sentence; lengths are uniform between the two
    max_concepts: Count = 6
    families: tuple[tuple[str, ...], ...] | None = None  # None: all languages but the first
    similarity: Share = 0.0  # within each family
    orders: tuple[Order, ...] | None = None  # one a language; None: first forward, rest reversed
    synonymy: Annotated[float, Range(0, 0.5)] = 0.2  # q
    seed: Natural = 0  # of lexicons and sentences

    def __post_init__(self) -> None:
        check(self, "conlang")
        names = self.languages
        if len(names) < 2:
            raise InputError(f"conlang languages must be two or more names, got {names!r}")
        for name in names:
            if not re.fullmatch("[a-z0-9]+", name):
                raise InputError(f"conlang languages must be of a-z and 0-9, got {name!r}")
        if len(set(names)) < len(names):
            raise InputError(f"conlang languages must be distinct, got {', '.join(names)}")
        if self.max_concepts < self.min_concepts:
            raise InputError(
                f"conlang max_concepts must be at least {self.min_concepts}, the least"
            )
        families = (names[1:],) if self.families is None else self.families
        families = tuple(tuple(family) for family in families)
        members = [name for family in families for name in family]
        for name in members:
            if name not in names:
                raise InputError(f"conlang families name {name!r}, not one of {', '.join(names)}")
        if len(set(members)) < len(members):
            raise InputError("conlang families must not name a language twice")
        object.__setattr__(self, "families", families)
        orders = self.orders or ("forward",) + ("reversed",) * (len(names) - 1)
        if len(orders) != len(names):
            raise InputError(f"conlang orders must be {len(names)} names, got {orders!r}")
        object.__setattr__(self, "orders", tuple(orders))
        strings, needed = self.syllables**self.syllables_per_concept, SPELLINGS * self.concepts
        if strings > 2**22:
            raise InputError(
                f"conlang syllables ** syllables_per_concept must be at most {2**22}, got {strings}"
            )
        if strings < needed:
            why = f"allow {strings} words, {needed} are needed: lower concepts, or raise syllables"
            raise InputError(f"conlang syllables {why}")
        shared = _shared_syllables(self, self.similarity)
        pieces = len(names) * self.syllables - shared * (len(members) - len(families))
        if pieces > len(_ONSETS) * len(_VOWELS) * len(_CODAS):
            raise InputError(f"conlang syllables of all languages are too many: {pieces}")

    @property
    def relations(self) -> list[tuple[tuple[str, ...], float]]:
        """The families with their similarity. Each other language is a family by itself."""
        families = self.families or ()
        lone = [((name,), 0.0) for name in self.languages if name not in sum(families, ())]
        return [*((family, self.similarity) for family in families), *lone]

    @property
    def pairs(self) -> tuple[str, ...]:
        """All directed pairs, `source-target`."""
        return tuple(f"{a}-{b}" for a, b in itertools.permutations(self.languages, 2))

    def split_pair(self, pair: str) -> tuple[str, str]:
        """Source and target language of `pair`; InputError when there is no such pair."""
        if pair not in self.pairs:
            names = ", ".join(self.languages)
            raise InputError(f"no pair {pair!r} in conlang of languages {names}")
        source, target = pair.split("-")
        return source, target


def zipf_probabilities(config: ConlangConfig) -> np.ndarray:
    """Probability of each concept, most frequent first, (concepts,)."""
    weight = np.arange(1, config.concepts + 1, dtype=np.float64) ** -config.zipf
    return weight / weight.sum()


def irreducible_entropy(config: ConlangConfig, pair: str) -> float:
    """H(target | source) in nats per target token, end-of-sentence counted as a token.

    Mean nats a sentence (mean concepts times the entropy of one spelling) over mean tokens a
    sentence, as a corpus-level cross-entropy per token is; it holds in every split. The end of a
    sentence itself is certain given the source.

    Examples
    --------
    >>> round(irreducible_entropy(ConlangConfig(), "src-aaa"), 4)
    0.231
    """
    config.split_pair(pair)
    concepts, q = (config.min_concepts + config.max_concepts) / 2, config.synonymy
    choice = -sum(x * math.log(x) for x in (q, 1.0 - q) if x > 0)
    return choice * concepts / (config.syllables_per_concept * concepts + 1)


def split_of(concepts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Split of each concept sequence as an index into `SPLITS`.

    Parameters
    ----------
    concepts
        (..., width) concept ranks; what stands beyond a sequence's length does not count.
    lengths
        (...) concepts in each sequence.

    Returns
    -------
    np.ndarray
        (...) of 0, 1 and 2.
    """
    state = np.full(concepts.shape[:-1], 0x9E3779B97F4A7C15, dtype=np.uint64)
    shortest = int(lengths.min(initial=concepts.shape[-1]))
    for position in range(concepts.shape[-1]):  # splitmix64's finaliser, one round a concept
        mixed = state + (concepts[..., position].astype(np.uint64) + np.uint64(1))
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        state = mixed if position < shortest else np.where(position < lengths, mixed, state)
    bucket = state % np.uint64(1000)
    return np.where(bucket < _TEST, 2, np.where(bucket < _VALID, 1, 0))


class Conlang:
    """Lexicons of a `ConlangConfig` and an infinite stream of its sentences.

    Attributes
    ----------
    pieces
        Syllable of each token id; ids run from 0 over all languages.
    spellings
        Language to (concepts, 2, syllables_per_concept) int32 token ids.

    Examples
    --------
    >>> conlang = Conlang(ConlangConfig(min_concepts=2, max_concepts=3, similarity=1.0))
    >>> for source, target in conlang.text("src-aaa", 0, 3):
    ...     print(source, "->", target)
    dawan poji -> wurin hisin
    wunja xuden xilen -> hinun konko gimun
    banve xilen -> hinun qaxo
    >>> source, target = conlang.sentences("src-aaa", 0, 3)
    >>> source.lengths.tolist()
    [4, 6, 4]
    >>> " ".join(conlang.pieces[i] for i in source.flat[:4])
    'da wan po ji'

    In the test set, languages are parallel; two related ones of similarity 1 differ by choices of
    spelling only:

    >>> conlang.text("src-aaa", 2, 1, split="test")
    [('xilen pero', 'tincu punzu')]
    >>> conlang.text("src-bbb", 2, 1, split="test")
    [('xilen pero', 'tincu hinun')]
    """

    def __init__(self, config: ConlangConfig) -> None:
        self.config = config
        inventories, self.pieces = _inventories(config)
        self.spellings = _spellings(config, inventories)
        self._orders = dict(zip(config.languages, config.orders or (), strict=True))
        cumulative = np.cumsum(zipf_probabilities(config))[:-1] * 2.0**32
        self._thresholds = np.minimum(cumulative, 2.0**32 - 1).astype(np.uint32)
        self._concept_block = lru_cache(maxsize=8)(self._draw_concepts)
        self._pair_block = lru_cache(maxsize=16)(self._draw_pair)

    # Streams

    def concepts(
        self, pair: str, start: int, count: int, *, split: str = "train"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Concept sequences of sentences `start` to `start + count`, before any word order.

        Returns
        -------
        tuple
            (count, max_concepts) int32 ranks, 0 beyond the length, and (count,) int64 lengths.
        """
        stream = self._stream(pair, split)
        parts = [
            (concepts[rows], lengths[rows])
            for block, rows in _blocks(start, count, _BLOCK[split])
            for concepts, lengths in [self._concept_block(split, stream, block)]
        ]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def sentences(
        self, pair: str, start: int, count: int, *, split: str = "train"
    ) -> tuple[Ragged, Ragged]:
        """Sentences `start` to `start + count` of the stream of `pair`, source and target.

        Returns
        -------
        tuple of Ragged
            Token ids are indices into `pieces`: no tag, no end-of-sentence.

        Raises
        ------
        InputError
            When there is no such pair or split, or the split holds no sentence of some length.
        """
        self._stream(pair, split)
        rows = []
        for block, within in _blocks(start, count, _BLOCK[split]):
            sides = self._pair_block(pair, split, block)
            rows.append([_slice(side, within.start, within.stop) for side in sides])
        return (
            Ragged.concatenate([source for source, _ in rows]),
            Ragged.concatenate([target for _, target in rows]),
        )

    def text(
        self, pair: str, start: int, count: int, *, split: str = "train"
    ) -> list[tuple[str, str]]:
        """The same sentences as readable strings, one word a concept."""
        source, target = self.sentences(pair, start, count, split=split)
        return list(zip(self.decode(source), self.decode(target), strict=True))

    # Strings

    def decode(self, rows: Ragged) -> list[str]:
        """Strings of token ids: syllables joined to words, `syllables_per_concept` a word."""
        k, lines = self.config.syllables_per_concept, []
        for i in range(len(rows)):
            ids = rows.flat[rows.offsets[i] : rows.offsets[i + 1]].tolist()
            words = (ids[j : j + k] for j in range(0, len(ids), k))
            lines.append(" ".join("".join(self.pieces[t] for t in word) for word in words))
        return lines

    def encode(self, lines: Iterable[str]) -> Ragged:
        """Token ids of strings; the inverse of `decode`.

        Raises
        ------
        InputError
            When a line holds anything but syllables of these languages.
        """
        ids = {piece: i for i, piece in enumerate(self.pieces)}
        rows = []
        for number, line in enumerate(lines, 1):
            syllables = [s for word in line.split() for s in _SYLLABLE.findall(word)]
            unknown = next((s for s in syllables if s not in ids), None)
            if unknown is not None or "".join(syllables) != "".join(line.split()):
                what = f"syllable {unknown!r}" if unknown else "spelling"
                raise InputError(f"line {number} is not conlang: unknown {what} in {line!r}")
            rows.append([ids[s] for s in syllables])
        return Ragged.of(rows)

    # How blocks are made

    def _stream(self, pair: str, split: str) -> str:
        """Name of the concept stream: the pair's own in training, else one for all pairs."""
        self.config.split_pair(pair)
        if split not in SPLITS:
            raise InputError(f"no split {split!r} in conlang, only {', '.join(SPLITS)}")
        return pair if split == "train" else "all"

    def _draw_concepts(self, split: str, stream: str, block: int) -> tuple[np.ndarray, np.ndarray]:
        """One block of concept sequences, (rows, max_concepts), and lengths, (rows,)."""
        config, rows, width = self.config, _BLOCK[split], self.config.max_concepts
        bits = _philox(config.seed, "concepts", split, stream, block=block)
        spread = np.uint64(width - config.min_concepts + 1)
        drawn = (_words(bits, rows).astype(np.uint64) * spread) >> np.uint64(32)
        lengths = drawn.astype(np.int64) + config.min_concepts
        concepts = np.zeros((rows, width), dtype=np.int32)
        open_rows, wanted = np.arange(rows), SPLITS.index(split)
        for turn in range(_ROUNDS):
            tries = min(_TRIES[split] << turn, max(_TRIES[split], _MOST_TRIES // len(open_rows)))
            shape = (len(open_rows), tries, width)
            words = _words(bits, math.prod(shape))
            tried = np.searchsorted(self._thresholds, words, side="right").reshape(shape)
            fits = split_of(tried, lengths[open_rows, None]) == wanted
            first, any_fits = fits.argmax(axis=1), fits.any(axis=1)
            done = open_rows[any_fits]
            concepts[done] = tried[any_fits, first[any_fits]]
            open_rows = open_rows[~any_fits]
            if not len(open_rows):
                concepts[np.arange(width) >= lengths[:, None]] = 0
                return concepts, lengths
        why = f"split {split!r} holds hardly a sentence of {lengths[open_rows[0]]} concepts"
        raise InputError(f"conlang min_concepts or concepts too small: {why}")

    def _draw_pair(self, pair: str, split: str, block: int) -> tuple[Ragged, Ragged]:
        """One block of sentences in both languages."""
        stream = self._stream(pair, split)
        concepts, lengths = self._concept_block(split, stream, block)
        source, target = (
            self._write(name, concepts, lengths, split=split, stream=stream, block=block)
            for name in self.config.split_pair(pair)
        )
        return source, target

    def _write(
        self,
        language: str,
        concepts: np.ndarray,
        lengths: np.ndarray,
        *,
        split: str,
        stream: str,
        block: int,
    ) -> Ragged:
        """Put concepts in the language's order and spell them."""
        rows, width = concepts.shape
        bits = _philox(self.config.seed, "spelling", split, stream, language, block=block)
        q, place = self.config.synonymy, np.arange(width)
        second = _words(bits, rows * width).reshape(rows, width) < np.uint32(q * 2.0**32)
        ordered = concepts
        if self._orders[language] == "reversed":  # what stands beyond a sentence is left out below
            ordered = np.take_along_axis(concepts, lengths[:, None] - 1 - place, axis=1)
        spelled = SPELLINGS * ordered + second
        flat = spelled[place < lengths[:, None]]  # (words,)
        k = self.config.syllables_per_concept
        table = self.spellings[language].reshape(-1, k)
        offsets = np.concatenate([[0], np.cumsum(lengths * k)]).astype(np.int64)
        return Ragged(table[flat].reshape(-1), offsets)


def _philox(seed: int, *names: str, block: int = 0) -> np.random.Philox:
    """A separate random stream for each seed, name and block."""
    text = "\0".join((str(seed), *names))
    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
    return np.random.Philox(key=key, counter=block << 64)


def _words(bits: np.random.Philox, count: int) -> np.ndarray:
    """Random uint32, (count,), from raw output, which numpy keeps stable over its versions."""
    return bits.random_raw(-(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]


def _shuffled(count: int, seed: int, *names: str) -> np.ndarray:
    """A random permutation of range(count)."""
    return np.argsort(_philox(seed, *names).random_raw(count), kind="stable")


def _blocks(start: int, count: int, size: int) -> list[tuple[int, slice]]:
    """Blocks that hold sentences start to start + count, and the rows wanted of each."""
    if start < 0 or count < 0:
        raise InputError(f"conlang start and count must not be negative, got {start}, {count}")
    first, last = start // size, max(start, start + count - 1) // size
    return [
        (block, slice(max(start - block * size, 0), min(start + count - block * size, size)))
        for block in range(first, last + 1)
    ]


def _slice(rows: Ragged, start: int, stop: int) -> Ragged:
    """Consecutive rows."""
    offsets = rows.offsets[start : stop + 1]
    return Ragged(rows.flat[offsets[0] : offsets[-1]], offsets - offsets[0])


def _shared_concepts(config: ConlangConfig, similarity: float) -> np.ndarray:
    """Whether each concept is shared by a family, (concepts,) bool.

    The start of the golden-ratio sequence keeps the shared share of occurrences within 0.06 of the
    similarity at 1/4, 1/2 and 3/4 of the default inventory, whose first concept is 22 % of text.
    """
    priority = (0.54 + np.arange(config.concepts) * (math.sqrt(5) - 1) / 2) % 1.0
    shared = np.zeros(config.concepts, dtype=bool)
    shared[np.argsort(priority, kind="stable")[: round(similarity * config.concepts)]] = True
    return shared


def _shared_syllables(config: ConlangConfig, similarity: float) -> int:
    """Syllables that a family's members share: see the module's text."""
    size, k = config.syllables, config.syllables_per_concept
    shared = SPELLINGS * round(similarity * config.concepts)
    private = SPELLINGS * config.concepts - shared
    if not shared or not private:
        return size if shared else 0
    feasible = [m for m in range(size + 1) if m**k >= shared and size**k - m**k >= private]
    if not feasible:
        why = f"are too few for similarity {similarity:g}: lower concepts, or raise syllables"
        raise InputError(f"conlang syllables ({size}) {why}")
    return min(feasible, key=lambda m: abs(m - size * similarity ** (1 / k)))


def _inventories(config: ConlangConfig) -> tuple[dict[str, np.ndarray], list[str]]:
    """Token ids of each language's syllables, a family's shared ones first, and all syllables."""
    inventories, used = {}, 0
    for members, similarity in sorted(
        config.relations, key=lambda f: [config.languages.index(name) for name in f[0]]
    ):
        shared = _shared_syllables(config, similarity)
        common = np.arange(used, used + shared)
        used += shared
        for name in members:
            own = np.arange(used, used + config.syllables - shared)
            used += len(own)
            inventories[name] = np.concatenate([common, own]).astype(np.int32)
    # Each vowel has one consonant before it and at most one behind, so words split in one way only.
    pool = ["".join(s) for s in itertools.product(_CODAS, _ONSETS, _VOWELS)]
    pool = [s[-2:] + s[:-2] for s in pool[:used]]
    return inventories, [pool[i] for i in _shuffled(used, config.seed, "syllables")]


def _spellings(config: ConlangConfig, inventories: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Two spellings of each concept in each language, (concepts, 2, k) token ids."""
    size, k, count = config.syllables, config.syllables_per_concept, config.concepts
    digits = np.stack(np.unravel_index(np.arange(size**k), (size,) * k), axis=1)  # (size**k, k)
    relation = {name: family for family in config.relations for name in family[0]}
    tables = {}
    for name in config.languages:
        family, similarity = relation[name]
        alike = _shared_concepts(config, similarity)
        common = (digits < _shared_syllables(config, similarity)).all(axis=1)
        table = np.empty((count, SPELLINGS, k), dtype=np.int32)
        for concepts, strings, owner in (
            (alike, common, "-".join(family)),
            (~alike, ~common, name),
        ):
            candidates = digits[strings]
            chosen = _shuffled(len(candidates), config.seed, "lexicon", owner)
            chosen = chosen[: SPELLINGS * concepts.sum()].reshape(-1, SPELLINGS)
            table[concepts] = inventories[name][candidates[chosen]]
        tables[name] = table
    return tables
