"""What is worth knowing of your own bitexts before training: repeats, copies, text of the tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.registry import split_pair

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class BitextReport:
    """What was found in the text of one pair; sentences are counted from 1, as they are read.

    Sentences are compared with case, digits and punctuation folded (`normalise_english`).

    Parameters
    ----------
    pair : str
        Directed pair, source-target.
    sentences : int
    repeated : tuple of int
        Those that stand earlier in the same text, both sides alike.
    untranslated : tuple of int
        Those whose two sides are the same.
    in_training : tuple of int
        Of a test text: those with a side that is training text of that language, in any pair.
    """

    pair: str
    sentences: int
    repeated: tuple[int, ...]
    untranslated: tuple[int, ...]
    in_training: tuple[int, ...] = ()

    def line(self, name: str) -> str:
        """What was found, as one line that calls the text `name`."""
        parts = [f"{self.sentences:,} sentence pair" + "s" * (self.sentences != 1)]
        for rows, what in (
            (self.repeated, "repeated"),
            (self.untranslated, "with both sides the same"),
            (self.in_training, "with a side that is in training text"),
        ):
            if rows:
                first = ", ".join(map(str, rows[:_SHOWN])) + ", ..." * (len(rows) > _SHOWN)
                parts.append(f"{len(rows):,} {what} ({len(rows) / self.sentences:.1%}: {first})")
        return f"{name}: " + "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class OwnReport:
    """The report of `check_own`: an entry a text."""

    train: tuple[BitextReport, ...]
    test: tuple[BitextReport, ...]

    @property
    def ok(self) -> bool:
        """Whether no test sentence is in training; repeats and copies are yours to judge."""
        return not any(text.in_training for text in self.test)

    def lines(self) -> list[str]:
        """The report as text, a line a bitext."""
        lines = [text.line(text.pair) for text in self.train]
        return lines + [text.line(f"{text.pair}, test") for text in self.test]


def check_own(train: Mapping[str, Bitext], test: Mapping[str, Bitext]) -> OwnReport:
    """Look for repeats and copies in bitexts, and for sentences of the tests in training text.

    A test sentence of one pair counts as seen where another pair trains on either of its sides: a
    multilingual model has then met the sentence, if not its translation.

    Parameters
    ----------
    train, test : bitexts by pair

    Returns
    -------
    OwnReport
    """
    seen: dict[str, set[str]] = {}
    for text in train.values():
        for language, sentences in folded_sides(text).items():
            seen.setdefault(language, set()).update(sentences)
    return OwnReport(
        train=tuple(_report(text, {}) for text in train.values()),
        test=tuple(_report(text, seen) for text in test.values()),
    )


def normalise_english(text: str) -> str:
    """Fold case, digits and punctuation, the rule by which the real corpora were split.

    >>> normalise_english("Since PHP 5.3:  it's GONE!")
    'since php 0 0 it s gone'
    """
    return " ".join(re.sub(r"\W+", " ", re.sub(r"\d+", "0", text.lower())).split())


def folded_sides(text: Bitext) -> dict[str, list[str]]:
    """Both sides by language, folded; what folds to nothing, such as "...", stays as it is."""
    languages = split_pair(text.pair)
    return {
        language: [normalise_english(sentence) or sentence for sentence in side]
        for language, side in zip(languages, (text.source, text.target), strict=True)
    }


def _report(text: Bitext, seen: Mapping[str, set[str]]) -> BitextReport:
    sides = folded_sides(text)
    before: set[tuple[str, ...]] = set()
    repeated, untranslated, in_training = [], [], []
    for number, both in enumerate(zip(*sides.values(), strict=True), start=1):
        if both in before:
            repeated.append(number)
        before.add(both)
        if both[0] == both[1]:
            untranslated.append(number)
        if any(side in seen.get(code, ()) for code, side in zip(sides, both, strict=True)):
            in_training.append(number)
    return BitextReport(
        pair=text.pair,
        sentences=len(text),
        repeated=tuple(repeated),
        untranslated=tuple(untranslated),
        in_training=tuple(in_training),
    )
