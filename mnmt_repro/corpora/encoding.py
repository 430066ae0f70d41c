"""From text to token ids: language tags, start and end of sentence, a cache on disk.

A conlang's syllables are its pieces: behind the special ids come one tag a language, in the order
of its configuration, and then the syllables.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_repro.atomic import write_with
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.bitext import Bitext
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.registry import cache_root, split_pair
from mnmt_repro.corpora.vocabulary import BOS, EOS, SPECIAL, Vocabulary

Tags = Literal["none", "source", "both"]
"""Where language tags go. `source`: the target's tag begins the source (Paper A, out of English);
`both`: the source's tag begins the source and the target's tag starts the decoder (Paper B)."""


def frame(
    source: Ragged, target: Ragged, *, tags: Tags, source_tag: int, target_tag: int
) -> EncodedPair:
    """Put start, end and tags around bare sentences."""
    first = {"none": None, "source": target_tag, "both": source_tag}[tags]
    start = target_tag if tags == "both" else BOS
    return EncodedPair(source.affix(first=first, last=EOS), target.affix(first=start, last=EOS))


def encode(bitext: Bitext, vocabulary: Vocabulary, tags: Tags) -> EncodedPair:
    """Encode a bitext.

    Raises
    ------
    InputError
        When a tag is needed that the vocabulary does not have.
    """
    source_tag, target_tag = tag_ids(vocabulary, bitext.pair, tags)
    return frame(
        vocabulary.encode(bitext.source),
        vocabulary.encode(bitext.target),
        tags=tags,
        source_tag=source_tag,
        target_tag=target_tag,
    )


def tag_ids(vocabulary: Vocabulary, pair: str, tags: Tags) -> tuple[int, int]:
    """Ids of the tags that `tags` needs for `pair`; 0 where one is not needed."""
    source, target = split_pair(pair)
    return (
        vocabulary.tag(source) if tags == "both" else 0,
        vocabulary.tag(target) if tags != "none" else 0,
    )


def encode_cached(bitext: Bitext, vocabulary: Vocabulary, tags: Tags) -> EncodedPair:
    """`encode`, kept on disk under a hash of the text, the vocabulary and the tags."""
    digest = hashlib.sha256(f"{vocabulary.hash} {tags} {bitext.pair} ".encode())
    for side in (bitext.source, bitext.target):
        digest.update("\n".join(side).encode())
        digest.update(b"\0")
    path = cache_root() / "encoded" / f"{bitext.pair}-{digest.hexdigest()[:16]}.npz"
    names = ("source", "source_offsets", "target", "target_offsets")
    try:
        with np.load(path) as file:
            arrays = [file[name] for name in names]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):  # absent or damaged
        pair = encode(bitext, vocabulary, tags)
        arrays = [pair.source.flat, pair.source.offsets, pair.target.flat, pair.target.offsets]
        write_with(path, lambda file: np.savez(file, **dict(zip(names, arrays, strict=True))))
    return EncodedPair(Ragged(*arrays[:2]), Ragged(*arrays[2:]))


def first_syllable(config: ConlangConfig) -> int:
    """Id of a conlang's first syllable, behind special ids and tags."""
    return len(SPECIAL) + len(config.languages)


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
