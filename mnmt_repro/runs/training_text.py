"""The text of a user's run: her own, with what is held out of it, or a corpus's. Needs no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mnmt_repro.corpora.bitext import load_split, parse_spec, read_bitexts
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import table_size
from mnmt_repro.corpora.formats import Bitext, content_hash
from mnmt_repro.corpora.registry import get_card, split_pair
from mnmt_repro.corpora.text_checks import folded_sides
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.runs.spec import OWN, VALIDATION_SENTENCES

ENGLISH = ("eng", "en")


@dataclass(frozen=True, kw_only=True)
class TrainingText:
    """Sentences to train and to validate on, by pair; a conlang's come from its declaration."""

    corpus: str
    pairs: tuple[str, ...]  # as the user listed them, which is the order of `--weights`
    train: Mapping[str, Bitext]
    valid: Mapping[str, Bitext]
    conlang: ConlangConfig | None = None

    @cached_property
    def hashes(self) -> tuple[tuple[str, str], ...]:
        """Pair and content hash: of all training text, then of all validation text."""
        return tuple(
            (pair, content_hash(bitext))
            for texts in (self.train, self.valid)
            for pair, bitext in sorted(texts.items())
        )


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """Where the text of a user's run and its pieces come from, named and not read yet."""

    data: tuple[str, ...] = ()  # her own bitexts, PAIR=FILE; see `corpora.bitext.parse_spec`
    valid: tuple[str, ...] = ()  # validation text for them; none: some is held out
    corpus: str = OWN  # where there is no `data`
    pairs: tuple[str, ...] = ()  # of a corpus; none: all out of English, or out of the first one
    conlang: ConlangConfig | None = None  # of generated text, whose syllables are its pieces
    pieces: int = 4000  # of a vocabulary that is trained
    vocabulary_temperature: float = 1.0
    vocabulary: Path | None = None  # in place of one that is trained

    @property
    def pieces_from(self) -> str | tuple[int, float]:
        """The given vocabulary's hash, or what decides one that is trained."""
        if self.vocabulary is not None:
            return Vocabulary.load(self.vocabulary).hash
        return self.pieces, self.vocabulary_temperature

    @property
    def vocabulary_size(self) -> int:
        """Pieces of the vocabulary, known before it is trained."""
        if self.conlang is not None:
            return table_size(self.conlang)
        return self.pieces if self.vocabulary is None else len(Vocabulary.load(self.vocabulary))

    def read(self) -> TrainingText:
        """Read the text.

        Raises
        ------
        InputError
            When a corpus, a pair or a file is not there.
        """
        if self.data:
            train = read_bitexts(self.data)
            if self.valid:
                valid = read_bitexts(self.valid, "--valid")
                for pair in valid:
                    if pair not in train:
                        raise InputError(
                            f"--valid {pair}: the training pairs are {', '.join(train)}"
                        )
            else:
                train, valid = hold_out(train)
            return TrainingText(corpus=OWN, pairs=tuple(train), train=train, valid=valid)
        known, pairs = self._known_pairs(), self.pairs
        if len(set(pairs)) < len(pairs):
            raise InputError(f"--pairs {','.join(pairs)}: a pair is named twice")
        for pair in pairs:
            if pair not in known:
                raise InputError(
                    f"--pairs {pair}: no such pair in {self.corpus}; there are {', '.join(known)}"
                )
        first = ENGLISH if self.conlang is None else self.conlang.languages[:1]
        pairs = pairs or tuple(pair for pair in known if split_pair(pair)[0] in first)
        if self.conlang is not None:
            return TrainingText(
                corpus=self.corpus, pairs=pairs, train={}, valid={}, conlang=self.conlang
            )
        train, valid = (
            {pair: load_split(self.corpus, pair, split) for pair in pairs}
            for split in ("train", "valid")
        )
        return TrainingText(corpus=self.corpus, pairs=pairs, train=train, valid=valid)

    def described(self, text: TrainingText) -> dict[str, dict[str, Any]]:
        """What `run.json` says of own text: its files, and content hashes of what is held out."""
        if not self.data:
            return {}
        both = {"data": self.data, "valid": self.valid}
        return {
            "files": {name: [str(parse_spec(s)) for s in specs] for name, specs in both.items()},
            "validation": {pair: content_hash(held) for pair, held in text.valid.items()},
        }

    def _known_pairs(self) -> tuple[str, ...]:
        if self.conlang is not None:
            return self.conlang.pairs
        card = get_card(self.corpus)
        if card.name in (OWN, "outofdomain"):
            raise InputError(
                f"--corpus {self.corpus}: not to train on; use --data for your own text"
            )
        return tuple(card.pairs)


def valid_text(about: Mapping[str, Any]) -> Mapping[str, Bitext]:
    """Validation text of a run on own text, read again from its files.

    Parameters
    ----------
    about
        What its `run.json` says; nothing, of a model of another program.

    Raises
    ------
    InputError
        When the files are not named, or no longer what they were.
    """
    if not about.get("files"):
        raise InputError("the model does not say which files it was trained on")
    train, held_out = (tuple(about["files"].get(name, ())) for name in ("data", "valid"))
    valid = TextSource(data=train, valid=held_out).read().valid
    for pair, wanted in about.get("validation", {}).items():
        if pair not in valid or content_hash(valid[pair]) != wanted:
            raise InputError(f"the text of {pair} has changed since the model was trained on it")
    return valid


def hold_out(texts: Mapping[str, Bitext]) -> tuple[dict[str, Bitext], dict[str, Bitext]]:
    """Split off a twentieth of each pair for validation, at most 400 sentences.

    Which sentences is decided by a hash of the English side (of the source, where none is English)
    with case, digits and punctuation folded. Neither side of one held out for any pair is in any
    pair's training text, so what is validated was not seen in another direction either.

    Raises
    ------
    InputError
        When a pair is left without training text.
    """
    sides = {pair: folded_sides(text) for pair, text in texts.items()}
    held: dict[str, list[int]] = {}
    seen: dict[str, set[str]] = {}
    for pair, both in sides.items():
        keys = both[next((code for code in ENGLISH if code in both), split_pair(pair)[0])]
        distinct = sorted(set(keys), key=lambda key: hashlib.sha256(key.encode()).digest())
        chosen = set(distinct[: min(VALIDATION_SENTENCES, max(1, len(distinct) // 20))])
        held[pair] = [row for row, key in enumerate(keys) if key in chosen]
        for language, sentences in both.items():
            seen.setdefault(language, set()).update(sentences[row] for row in held[pair])
    train, valid = {}, {}
    for pair, text in texts.items():
        unseen = [
            row
            for row in range(len(text))
            if not any(keys[row] in seen[language] for language, keys in sides[pair].items())
        ]
        train[pair] = text.select(unseen)
        valid[pair] = text.select(held[pair][:VALIDATION_SENTENCES])
        if not unseen:
            why = "too few different sentences to hold some out; give more, or others by --valid"
            raise InputError(f"--data {pair}: {why}")
    return train, valid
