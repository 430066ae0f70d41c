"""Parallel text in files: TSV, Moses pairs and JSONL, read strictly, and whole or not at all.

A mistake in a file is one `InputError` that names the file and the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mnmt_repro.corpora.registry import split_pair
from mnmt_repro.corpora.textfile import read_lines
from mnmt_repro.errors import InputError, note


@dataclass(frozen=True, kw_only=True)
class Bitext:
    """Sentences and their translations.

    Parameters
    ----------
    pair : str
        Directed pair, source-target, such as ``eng-deu``.
    source, target : list of str
        Equally long; ``target[i]`` translates ``source[i]``.
    domain : list of str or None
        The domain of each sentence, where the text marks it.
    origin : str
        Where the text was read, for messages and provenance.

    Raises
    ------
    InputError
        If the sides are not equally long.
    """

    pair: str
    source: list[str]
    target: list[str]
    domain: list[str] | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        split_pair(self.pair)
        if len(self.source) != len(self.target):
            both = f"{len(self.source)} source and {len(self.target)} target sentences"
            raise InputError(f"{self.origin or self.pair}: {both}; the sides must be equally long")

    def __len__(self) -> int:
        return len(self.source)

    @property
    def characters(self) -> np.ndarray:
        """Characters of each target sentence; its end is one, too. (sentences,) int64."""
        return np.array([len(line) + 1 for line in self.target])

    def select(self, rows: Sequence[int]) -> Bitext:
        """Return the sentences at `rows`, in that order."""
        return Bitext(
            pair=self.pair,
            source=[self.source[row] for row in rows],
            target=[self.target[row] for row in rows],
            domain=None if self.domain is None else [self.domain[row] for row in rows],
            origin=self.origin,
        )


def content_hash(bitext: Bitext) -> str:
    """Return a short hash of the sentences of a bitext and its pair: its `data_hash`.

    It does not depend on the file's format, name or packing.

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    digest = hashlib.sha256(bitext.pair.encode())
    for source, target in zip(bitext.source, bitext.target, strict=True):
        digest.update(f"\n{source}\t{target}".encode())
    return digest.hexdigest()[:12]


def _listed(names: Collection[str]) -> str:
    """Names for a message, cut where they are long.

    >>> _listed(["eng", "deu"])
    "['eng', 'deu']"
    """
    text = str(list(names))
    return text if len(text) <= 200 else f"{text[:200]} ..."


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a TSV, or of the keys of JSON objects.

    Parameters
    ----------
    source, target : str, optional
        Of both sides; by default the languages of the pair, else ``source`` and ``target``.
    domain : str, optional
        With the domain of each sentence.
    split : str, optional
        Keep only the sentences whose `split_column` has this value.
    skip_bad : str
        ``yes``: leave out lines that hold no sentence pair, with a note, in place of refusing them.
    """

    source: str | None = None
    target: str | None = None
    domain: str | None = None
    split: str | None = None
    split_column: str = "split"
    skip_bad: Literal["no", "yes"] = "no"

    def read(
        self, pair: str, there: Collection[str], where: str, hint: str = ""
    ) -> list[str | None]:
        """Names to read: source, target, domain and split; None for what is not asked for."""
        source, target = self.source, self.target
        if source is None or target is None:
            candidates = (split_pair(pair), ("source", "target"))
            known = [each for each in candidates if set(each) <= set(there)]
            if not known:
                wanted = " nor ".join(f"{a!r} and {b!r}" for a, b in candidates)
                raise InputError(
                    f"{where}: neither {wanted}; there are {_listed(there)}; name the "
                    f"two to read: PATH?source=NAME&target=NAME{hint}"
                )
            source, target = known[0]
        if source == target:
            raise InputError(f"{where}: source and target are the same column {source!r}")
        return [source, target, self.domain, None if self.split is None else self.split_column]


LISTED = 10
"""Bad lines of a file that a message lists."""


def _empty(text: str) -> bool:
    return not text or text.isspace()


def _set_aside(bad: Sequence[tuple[int, str]], name: str, skip: bool) -> None:
    """Refuse bad lines, given by number and fault, or say which are skipped; ten are listed."""
    if not bad:
        return
    faults = "; ".join(f"line {number}: {why}" for number, why in bad[:LISTED])
    if len(bad) > LISTED:
        faults += f"; and {len(bad) - LISTED:,} more bad lines"
    if not skip:
        raise InputError(
            f"{name}: {faults}; mend or remove each on both sides, or add ?skip_bad=yes behind the "
            "file's name"
        )
    note(f"{name}: skipped {len(bad):,} bad lines: {faults}")


def parse_tsv(lines: list[str], name: str, pair: str, columns: Columns = Columns()) -> Bitext:  # noqa: B008
    """Read two columns of the lines of a tab-separated file, the first of which is its header.

    Fields are not quoted (``csv.QUOTE_NONE``): a quotation mark is a character like any other.

    Parameters
    ----------
    name
        Of the file, for messages.
    pair
        Directed pair, source-target.

    Raises
    ------
    InputError
        Naming file and lines, when a column is missing (those there are are named), a row has
        another number of fields than the header, a side is empty, the header is repeated, or no row
        is in the split.
    """
    if not lines:
        raise InputError(f"{name}: is empty; a header line with the column names is needed")
    header = lines[0].split("\t")
    if "\r" in lines[0]:
        raise InputError(f"{name}: lines end in a carriage return alone; end them in a line feed")
    if len(set(header)) != len(header):
        raise InputError(f"{name}: line 1: a column name occurs twice in {_listed(header)}")
    hint = f"; if line 1 is a sentence, add a header line {pair.replace('-', '<TAB>')}"
    names = columns.read(pair, header, f"{name}: line 1", hint)
    for column in names:
        if column is not None and column not in header:
            raise InputError(
                f"{name}: line 1: no column {column!r}; the columns are {_listed(header)}"
            )
    at = [None if column is None else header.index(column) for column in names]
    rows: list[_Row] = []
    bad: list[tuple[int, str]] = []
    for number, line in enumerate(lines[1:], start=2):
        row = line.split("\t")
        if line == lines[0]:
            bad.append((number, "repeats the header"))
        elif _empty(line):
            bad.append((number, "is blank"))
        elif len(row) != len(header):
            bad.append((number, f"{len(row)} fields, but the header has {len(header)}"))
        else:
            rows.append((number, *(None if i is None else row[i] for i in at)))
    return _bitext(rows, bad, names, pair, name, columns)


_Row = tuple[Any, ...]
"""Number of a line, then source, target, domain and split of its sentence."""


def _bitext(
    rows: Sequence[_Row],
    bad: Sequence[tuple[int, str]],
    names: Sequence[str | None],
    pair: str,
    name: str,
    columns: Columns,
) -> Bitext:
    """The sentences of a split, or all where none is asked for."""
    split = columns.split
    empty: dict[int, str] = {}
    for number, source, target, *_ in rows:
        if _empty(source) or _empty(target):
            empty[number] = f"no text in {names[0 if _empty(source) else 1]!r}"
    _set_aside(sorted([*bad, *empty.items()]), name, columns.skip_bad == "yes")
    rows = [row for row in rows if row[0] not in empty]
    if not rows:
        raise InputError(f"{name}: holds no sentence")
    chosen = [row for row in rows if split is None or row[4] == split]
    if not chosen:
        there = sorted({str(row[4]) for row in rows})
        raise InputError(f"{name}: no sentence in split {split!r}; the splits are {there}")
    return Bitext(
        pair=pair,
        source=[row[1] for row in chosen],
        target=[row[2] for row in chosen],
        domain=None if names[2] is None else [row[3] for row in chosen],
        origin=name if split is None else f"{name} ({split})",
    )


def pair_up(
    source: list[str],
    target: list[str],
    names: tuple[str, str],
    pair: str,
    origin: str,
    columns: Columns = Columns(),  # noqa: B008
) -> Bitext:
    """Pair the lines of two files, one translation a line, as Moses has them.

    Parameters
    ----------
    names
        Of the files, for messages.
    columns
        Says whether bad lines are skipped.

    Raises
    ------
    InputError
        If the files have not equally many lines (both numbers are named), or lines are empty.
    """
    if len(source) != len(target):
        both = f"{names[0]} has {len(source)} lines, {names[1]} has {len(target)}"
        raise InputError(f"{both}; write one translation a line")
    rows = [(number, *both) for number, both in enumerate(zip(source, target, strict=True), 1)]
    return _bitext(rows, (), (*names, None), pair, origin, columns)


def _json_text(entry: dict, key: str) -> str:
    """Return a sentence of a JSON object, checked as a line of text would be."""
    if key not in entry:
        raise _BadLine(f"no key {key!r}; the keys are {list(entry)}")
    text = entry[key]
    if not isinstance(text, str):
        raise _BadLine(f"{key!r} is {type(text).__name__}, not a string")
    for character, what in (("\0", "a NUL character"), ("\n", "a line break"), ("\t", "a tab")):
        if character in text:
            raise _BadLine(f"{what} inside {key!r}; a sentence is one line of text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _BadLine(f"{key!r} is no valid Unicode ({error.reason})") from None
    return text


def read_jsonl(path: str | Path, pair: str, columns: Columns = Columns()) -> Bitext:  # noqa: B008
    r"""Read JSON lines: one object a line, such as ``{"source": "Hello", "target": "Hallo"}``.

    Parameters
    ----------
    path : str or Path
        Plain, gzip or xz.
    pair : str
        Directed pair, source-target.
    columns : Columns
        Names of the keys.

    Raises
    ------
    InputError
        Naming file and lines, if the file cannot be read whole, a line is no JSON object, a key is
        missing (those there are are named), a side is no string, is empty, or holds a line break,
        tab or NUL, or no object is in the split.
    """
    rows: list[_Row] = []
    bad: list[tuple[int, str]] = []
    names: list[str | None] = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            entry = json_object(line)
            names = names or columns.read(pair, list(entry), f"{path}: line {number}")
            rows.append((number, *(name and _json_text(entry, name) for name in names)))
        except _BadLine as error:
            bad.append((number, str(error)))
    return _bitext(rows, bad, names, pair, str(path), columns)


class _BadLine(Exception):
    """A line that holds no sentence pair, and why."""


def json_object(line: str) -> dict:
    """Return the JSON object that a line holds; anything else is a bad line.

    What an object ``translation`` holds, as in files of Hugging Face, is lifted to its level.

    >>> json_object('{"id": "1", "translation": {"en": "Yes", "de": "Ja"}}')
    {'en': 'Yes', 'de': 'Ja', 'id': '1'}
    """
    if _empty(line):
        raise _BadLine("is blank")
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise _BadLine(f"is not JSON ({error})") from None
    if not isinstance(entry, dict):
        raise _BadLine(f"is not a JSON object but {type(entry).__name__}")
    if isinstance(entry.get("translation"), dict):
        return {**entry.pop("translation"), **entry}
    return entry
