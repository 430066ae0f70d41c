"""Whether a copy of a corpus is intact, and its test sentences are in no training set."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mnmt_repro.corpora.registry import SPLITS, Card, CorpusFile, data_root, get_card, locate
from mnmt_repro.corpora.textfile import decode_lines, read_packed, unpack
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


def _read(file: CorpusFile) -> tuple[FileReport, dict[str, dict[str, int]]]:
    """Read one file: its report, and the line of each normalised English side, split by split."""
    path = locate(file)
    english: dict[str, dict[str, int]] = {}
    if path is None:
        where = "" if data_root() is not None else " (MNMT_REPRO_DATA is not set)"
        return FileReport(path=file.path, problems=(f"absent{where}",)), english
    problems = []
    counts: Counter[str] = Counter()
    domains: Counter[str] = Counter()
    try:
        packed = read_packed(path)
        content = unpack(packed, path)
        found = hashlib.sha256(content if file.hash_of == "content" else packed).hexdigest()
        if found != file.sha256:
            problems.append(f"SHA-256 is {found}, the card says {file.sha256}")
        lines = decode_lines(content, path)
    except InputError as error:
        return FileReport(path=file.path, problems=(str(error).removeprefix(f"{path}: "),)), english
    plain = len(file.columns) == 1
    only_split = None if "split" in file.columns else next(iter(file.sentences))
    header = file.columns if plain else tuple(lines[0].split("\t")) if lines else ()
    if header != file.columns:
        problems.append(f"line 1: columns are {list(header)}, the card says {list(file.columns)}")
        return FileReport(path=file.path, problems=tuple(problems)), english
    at_english = file.columns.index("eng") if "eng" in file.columns else None
    for number, line in enumerate(lines if plain else lines[1:], start=1 if plain else 2):
        row = [line] if plain else line.split("\t")
        if len(row) != len(header) or not all(text.strip() for text in row):
            problems.append(f"line {number}: {len(row)} fields of {len(header)}, or an empty one")
            break
        split = only_split or row[0]
        counts[split] += 1
        if only_split is None and split == "train":
            domains[row[1]] += 1
        if at_english is not None:
            english.setdefault(split, {}).setdefault(normalise_english(row[at_english]), number)
    for what, seen, card in (
        ("sentences", counts, file.sentences),
        ("training sentences a domain", domains, file.domains),
    ):
        if card and dict(seen) != dict(card):
            problems.append(f"{what} are {dict(seen)}, the card says {dict(card)}")
    ordered = {split: counts[split] for split in SPLITS if split in counts}
    return FileReport(path=file.path, problems=tuple(problems), sentences=ordered), english


def _compare(card: Card, english: Mapping[str, dict[str, dict[str, int]]]) -> Disjointness | None:
    """Compare the English sides of all files of a corpus; None where it has no training text."""
    if not any("train" in file.sentences for file in card.files):
        return None
    sides: dict[str, dict[str, str]] = {split: {} for split in SPLITS}
    for path, splits in english.items():
        for split, lines in splits.items():
            for text, number in lines.items():
                sides.setdefault(split, {}).setdefault(text, f"{path}: line {number}")
    train = sides["train"]
    return Disjointness(
        train=len(train),
        valid=len(sides["valid"]),
        test=len(sides["test"]),
        shared_test=tuple(where for text, where in sides["test"].items() if text in train),
        shared_valid=tuple(where for text, where in sides["valid"].items() if text in train),
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
        Hash, encoding, columns, fields, sentences a split and a domain of each file; and how many
        test sentences have an English side that is also in training, in any language.

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
    reports, english = [], {}
    for file in card.files:
        report, english[file.path] = _read(file)
        reports.append(report)
    return CheckReport(
        name=name, files=tuple(reports), disjointness=_compare(card, english) if reports else None
    )
