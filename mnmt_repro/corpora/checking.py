"""Whether a copy of a corpus is intact, and its test sentences are in no training set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mnmt_repro.corpora.registry import (
    SPLITS,
    Card,
    CorpusFile,
    data_root,
    get_card,
    locate,
    verified_content,
)
from mnmt_repro.corpora.textfile import decode_lines
from mnmt_repro.errors import InputError

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """What was found in one file; `problems` is empty for an intact one."""

    path: str
    problems: tuple[str, ...] = ()
    sentences: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Disjointness:
    """Test and validation sentences whose English side also occurs in training.

    Parameters
    ----------
    train, valid, test : int
        Different English sides in each split, over all languages, after `normalise_english`.
    shared_test, shared_valid : tuple of str
        Where those that also occur in training stand, as ``path: line``.
    """

    train: int
    valid: int
    test: int
    shared_test: tuple[str, ...]
    shared_valid: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """The report of `check_corpus`: an entry a file; disjointness where there is training text."""

    name: str
    files: tuple[FileReport, ...]
    disjointness: Disjointness | None = None

    @property
    def ok(self) -> bool:
        """Whether all files are intact and no test sentence is in training."""
        disjoint = self.disjointness is None or not self.disjointness.shared_test
        return disjoint and not any(file.problems for file in self.files)

    def lines(self) -> list[str]:
        """Return the report as text, one line a file."""
        if not self.files:
            return [f"{self.name}: generated, no file to check"]
        lines = []
        for file in self.files:
            counts = ", ".join(f"{number:,} {split}" for split, number in file.sentences.items())
            lines.append(f"{file.path}: {'; '.join(file.problems) or f'ok ({counts})'}")
        found = self.disjointness
        if found is not None:
            for split, shared, total in (
                ("test", found.shared_test, found.test),
                ("validation", found.shared_valid, found.valid),
            ):
                line = f"{self.name}: {len(shared)} of {total:,} {split} sentences (English side) "
                line += f"occur among {found.train:,} in training"
                lines.append(line + (f": {'; '.join(shared[:_SHOWN])}" if shared else ""))
        return lines


def normalise_english(text: str) -> str:
    """Fold case, digits and punctuation, the rule by which the real corpora were split.

    >>> normalise_english("Since PHP 5.3:  it's GONE!")
    'since php 0 0 it s gone'
    """
    return " ".join(re.sub(r"\W+", " ", re.sub(r"\d+", "0", text.lower())).split())


_Sides = dict[str, dict[str, str]]
"""Split to normalised English side to where it stands first, as ``path: line``."""


def _read(file: CorpusFile, english: _Sides) -> FileReport:
    """Read one file, and add its English sides to those of the corpus.

    Its SHA-256 decides: what the card says of a file with that hash is true.
    """
    path = locate(file)
    if path is None:
        where = "" if data_root() is not None else " (MNMT_REPRO_DATA is not set)"
        return FileReport(path=file.path, problems=(f"absent{where}",))
    try:
        lines = decode_lines(verified_content(file, path), path)
    except InputError as error:
        return FileReport(path=file.path, problems=(str(error).removeprefix(f"{path}: "),))
    if "eng" in file.columns:
        at_english = file.columns.index("eng")
        only_split = None if "split" in file.columns else next(iter(file.sentences))
        header = 0 if len(file.columns) == 1 else 1
        for number, line in enumerate(lines[header:], start=1 + header):
            row = line.split("\t") if header else [line]
            sides = english.setdefault(only_split or row[0], {})
            sides.setdefault(normalise_english(row[at_english]), f"{file.path}: line {number}")
    return FileReport(path=file.path, sentences=file.sentences)


def _compare(card: Card, english: _Sides) -> Disjointness | None:
    """Compare the English sides of all files of a corpus; None where it has no training text."""
    if not any("train" in file.sentences for file in card.files):
        return None
    train, valid, test = (english.get(split, {}) for split in SPLITS)
    return Disjointness(
        train=len(train),
        valid=len(valid),
        test=len(test),
        shared_test=tuple(where for text, where in test.items() if text in train),
        shared_valid=tuple(where for text, where in valid.items() if text in train),
    )


def check_corpus(name: str) -> CheckReport:
    """Check a copy of a corpus against its card, file by file, and its splits against each other.

    Nothing is downloaded. A fault in one file does not keep the others from being checked. A
    selection is checked as the corpus that it is selected from.

    Parameters
    ----------
    name : str
        A registered corpus other than ``own``.

    Returns
    -------
    CheckReport
        Whether each file is the one on its card, by SHA-256; and how many test sentences have an
        English side that is also in training, in any language.

    Raises
    ------
    InputError
        If the corpus is unknown, or `name` is ``own``.
    """
    card = get_card(name)
    if name == "own":
        raise InputError("corpus 'own': has no card; look over your own text with --data PAIR=FILE")
    if card.base:
        return check_corpus(card.base)
    english: _Sides = {}
    reports = tuple(_read(file, english) for file in card.files)
    return CheckReport(name=name, files=reports, disjointness=_compare(card, english))
