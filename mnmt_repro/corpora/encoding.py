"""From text to token ids: language tags, start and end of sentence.

A conlang's syllables are its pieces: behind the special ids come one tag a language, in the order
of its configuration, and then the syllables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.registry import split_pair
from mnmt_repro.corpora.vocabulary import BOS, EOS, SPECIAL, Vocabulary, tag
from mnmt_repro.errors import InputError, remedy

Tags = Literal["none", "source", "both", "both-after-end"]
"""Where language tags go.

- `source`: the target's tag begins the source (Paper A, out of English; MADLAD-400).
- `both`: the source's tag begins the source and the target's tag starts the decoder (Paper B).
- `both-after-end`: as `both`, but the decoder starts with the end of sentence, and the target's tag
  follows (M2M-100, NLLB-200, whose own losses count that tag, as ours do here)."""


def frame(
    source: Ragged,
    target: Ragged,
    *,
    tags: Tags,
    source_tag: int,
    target_tag: int,
    start: int = BOS,
) -> EncodedPair:
    """Put start, end and tags around bare sentences; `start` is for where no tag starts."""
    first = {"none": None, "source": target_tag}.get(tags, source_tag)
    ended = target.affix(last=EOS)
    if tags in ("both", "both-after-end"):
        ended = ended.affix(first=target_tag)
    if tags != "both":
        ended = ended.affix(first=EOS if tags == "both-after-end" else start)
    return EncodedPair(source.affix(first=first, last=EOS), ended)


def encode(bitext: Bitext, vocabulary: Vocabulary, tags: Tags) -> EncodedPair:
    """Encode a bitext.

    Raises
    ------
    InputError
        When a tag is needed that the vocabulary does not have, or a sentence holds a tag.
    """
    source_tag, target_tag = tag_ids(vocabulary, bitext.pair, tags)
    sides = [vocabulary.encode(side) for side in (bitext.source, bitext.target)]
    known = {vocabulary.tag(language): tag(language) for language in vocabulary.languages}
    for rows, side in zip(sides, (bitext.source, bitext.target), strict=True):
        held = np.isin(rows.flat, list(known))
        if held.any():  # it would ask for that language, wherever it stands
            row = int(np.searchsorted(rows.offsets, held.argmax(), "right")) - 1
            why = f"holds the language tag {known[rows.flat[held.argmax()]]}; remove it"
            where = bitext.origin or bitext.pair
            raise InputError(f"{where}: the sentence {side[row][:60]!r} {why}")
    return frame(
        *sides,
        tags=tags,
        source_tag=source_tag,
        target_tag=target_tag,
        start=vocabulary.start,
    )


def encode_sources(
    sentences: Sequence[str], vocabulary: Vocabulary, pair: str, tags: Tags
) -> EncodedPair:
    """Encode sentences to translate; each target row has only what the decoder begins with.

    Raises
    ------
    InputError
        As `encode`.
    """
    empty = [""] * len(sentences)
    return encode(Bitext(pair=pair, source=list(sentences), target=empty), vocabulary, tags)


def tag_ids(vocabulary: Vocabulary, pair: str, tags: Tags) -> tuple[int, int]:
    """Ids of the tags that `tags` needs for `pair`; 0 where one is not needed."""
    source, target = split_pair(pair)
    return (
        vocabulary.tag(source) if tags in ("both", "both-after-end") else 0,
        vocabulary.tag(target) if tags != "none" else 0,
    )


def first_syllable(config: ConlangConfig) -> int:
    """Id of a conlang's first syllable, behind special ids and tags."""
    return len(SPECIAL) + len(config.languages)


def resolve_tags(choice: str, pairs: Iterable[str]) -> Any:
    """Where tags go; `auto` puts them before the source where there are several targets.

    >>> resolve_tags("auto", ["eng-deu", "eng-zho"])
    'source'
    """
    if choice != "auto":
        return choice
    targets = {pair.partition("-")[2] for pair in pairs}
    return "source" if len(targets) > 1 else "none"


def table_size(config: ConlangConfig) -> int:
    """Rows of a conlang's table, specials and tags included: as if no syllable were shared.

    So tables keep their size when languages grow more alike.
    """
    return first_syllable(config) + len(config.languages) * config.syllables


class SyllableVocabulary(Vocabulary):
    """The syllables of a conlang, used like a SentencePiece vocabulary.

    Examples
    --------
    >>> syllables = SyllableVocabulary(ConlangConfig())
    >>> ids = syllables.encode(["dawan poji"])
    >>> ids.lengths.tolist(), syllables.decode([ids.flat.tolist()])
    ([4], ['dawan poji'])
    """

    def __init__(self, config: ConlangConfig) -> None:
        super().__init__(b"")
        self.conlang = Conlang(config)

    @cached_property
    def hash(self) -> str:
        """Hash of all syllables in order."""
        text = json.dumps(self.conlang.pieces, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __len__(self) -> int:
        return table_size(self.conlang.config)

    @property
    def start(self) -> int:
        """Id of the start of sentence."""
        return BOS

    @cached_property
    def never(self) -> tuple[int, ...]:
        """All ids but end and syllables; related languages leave some of a table's rows unused."""
        first = first_syllable(self.conlang.config)
        used = {EOS, *range(first, first + len(self.conlang.pieces))}
        return tuple(i for i in range(len(self)) if i not in used)

    def tag(self, language: str) -> int:
        if language not in self.languages:
            there = remedy(language, self.languages, 3)
            raise InputError(f"the vocabulary has no tag {tag(language)}; {there}")
        return len(SPECIAL) + self.languages.index(language)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """All languages of the conlang."""
        return self.conlang.config.languages

    def encode(self, sentences: Sequence[str]) -> Ragged:
        rows = self.conlang.encode(sentences)
        shifted = rows.flat + first_syllable(self.conlang.config)
        return Ragged(shifted.astype(np.int32), rows.offsets)

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        first = first_syllable(self.conlang.config)
        last = first + len(self.conlang.pieces)
        return self.conlang.decode(
            Ragged.of([i - first for i in r if first <= i < last] for r in ids)
        )


@dataclass(frozen=True)
class ConlangSentences:
    """The endless training text of one pair of a conlang, encoded; see `batches.Sentences`.

    `start` is the number of the first sentence, so that runs with other seeds read other text.
    """

    conlang: Conlang
    pair: str
    tags: Tags
    start: int = 0
    split: str = "train"
    size: int | None = None

    def take(self, rows: np.ndarray) -> tuple[Ragged, Ragged]:
        """Source and target of consecutive rows."""
        first, count = int(rows[0]), len(rows)
        if (np.diff(rows) != 1).any():
            raise ValueError("a conlang's sentences are read in their order")
        source, target = self.conlang.sentences(
            self.pair, self.start + first, count, split=self.split
        )
        config = self.conlang.config
        offset, names = first_syllable(config), config.languages
        sides = (Ragged(side.flat + offset, side.offsets) for side in (source, target))
        source_tag, target_tag = (
            len(SPECIAL) + names.index(name) for name in config.split_pair(self.pair)
        )
        pair = frame(*sides, tags=self.tags, source_tag=source_tag, target_tag=target_tag)
        return pair.source, pair.target


def encode_conlang(conlang: Conlang, pair: str, split: str, count: int, tags: Tags) -> EncodedPair:
    """The first `count` sentences of a split, encoded."""
    return EncodedPair(*ConlangSentences(conlang, pair, tags, split=split).take(np.arange(count)))
