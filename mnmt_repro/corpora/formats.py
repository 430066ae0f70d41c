"""Parallel text in files: TSV, Moses pairs and JSONL, read strictly, and whole or not at all.

A mistake in a file is one `InputError` that names the file and the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_repro.corpora.registry import split_pair
from mnmt_repro.corpora.textfile import read_lines
from mnmt_repro.errors import InputError


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
        If the sides, or the domains, are not equally long.
    """

    pair: str
    source: list[str]
    target: list[str]
    domain: list[str] | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        split_pair(self.pair)
        if len(self.source) != len(self.target):
            raise InputError(
                f"{self.origin or self.pair}: {len(self.source)} source and {len(self.target)} "
                "target sentences; the two sides must be equally long"
            )
        if self.domain is not None and len(self.domain) != len(self.source):
            raise InputError(
                f"{self.origin or self.pair}: {len(self.domain)} domains for "
                f"{len(self.source)} sentences"
            )

    def __len__(self) -> int:
        return len(self.source)

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


def columns_of(pair: str, there: Collection[str], where: str) -> tuple[str, str]:
    """Return the names of both sides: the languages of the pair, else ``source``, ``target``."""
    candidates = (split_pair(pair), ("source", "target"))
    for source, target in candidates:
        if source in there and target in there:
            return source, target
    wanted = " nor ".join(f"{source!r} and {target!r}" for source, target in candidates)
    raise InputError(
        f"{where}: neither {wanted}; there are {_listed(there)}; name the "
        "two to read: PATH?source=NAME&target=NAME"
    )


def _empty(text: str) -> bool:
    return not text or text.isspace()


def _refuse_empty(lines: Sequence[int], name: str, what: str) -> None:
    """Name the first of the lines, of which a side is empty, and some of the others."""
    if not lines:
        return
    some, more = ", ".join(map(str, lines[1:6])), len(lines) - 6
    others = f" (other such lines: {some}{f' and {more:,} more' * (more > 0)})" if some else ""
    raise InputError(
        f"{name}: line {lines[0]}: {what} is empty; remove the sentence from both sides{others}"
    )


def parse_tsv(
    lines: list[str],
    name: str,
    pair: str,
    *,
    source: str | None = None,
    target: str | None = None,
    split: str | None = None,
    domain: str | None = None,
    split_column: str = "split",
) -> Bitext:
    """Read two columns of the lines of a tab-separated file, the first of which is its header.

    Fields are not quoted (``csv.QUOTE_NONE``): a quotation mark is a character like any other.

    Parameters
    ----------
    name
        Of the file, for messages.
    pair
        Directed pair, source-target.
    source, target
        Columns of both sides; None: the languages of the pair, else ``source`` and ``target``.
    split
        Keep only the rows whose `split_column` has this value; all rows if None.
    domain
        Column with the domain of each sentence.

    Raises
    ------
    InputError
        Naming file and line, when a column is missing (those there are are named), a row has
        another number of fields than the header, a side is empty, or no row is in the split.
    """
    if not lines:
        raise InputError(f"{name}: is empty; a header line with the column names is needed")
    header = lines[0].split("\t")
    if "\r" in lines[0]:
        raise InputError(f"{name}: lines end in a carriage return alone; end them in a line feed")
    if len(set(header)) != len(header):
        raise InputError(f"{name}: line 1: a column name occurs twice in {_listed(header)}")
    if source is None or target is None:
        try:
            source, target = columns_of(pair, header, f"{name}: line 1")
        except InputError as error:
            names = "<TAB>".join(split_pair(pair))
            raise InputError(
                f"{error}; if line 1 is a sentence, add a header line {names}"
            ) from None
    wanted = [source, target]
    wanted += [domain] if domain is not None else []
    wanted += [split_column] if split is not None else []
    for column in wanted:
        if column not in header:
            raise InputError(
                f"{name}: line 1: no column {column!r}; the columns are {_listed(header)}"
            )
    if source == target:
        raise InputError(f"{name}: source and target are the same column {source!r}")
    width = len(header)
    at_source, at_target = header.index(source), header.index(target)
    at_split = header.index(split_column) if split is not None else None
    at_domain = header.index(domain) if domain is not None else None
    rows: list[_Row] = []
    empty: list[int] = []
    at_fault = ""
    for number, line in enumerate(lines[1:], start=2):
        row = line.split("\t")
        if len(row) != width:
            raise InputError(
                f"{name}: line {number}: {len(row)} fields, but the header has {width}: "
                f"{_listed(header)}"
            )
        if _empty(row[at_source]) or _empty(row[at_target]):
            at_fault = at_fault or (source if _empty(row[at_source]) else target)
            empty.append(number)
            continue
        marked, part = (None if at is None else row[at] for at in (at_domain, at_split))
        rows.append((row[at_source], row[at_target], marked, part))
    _refuse_empty(empty, name, f"column {at_fault!r}")
    if not rows:
        raise InputError(f"{name}: no sentence after the header line")
    return _of_split(rows, split, pair, name, "row")


_Row = tuple[str, str, str | None, str | None]
"""Source, target, domain and split of a sentence."""


def _of_split(rows: Sequence[_Row], split: str | None, pair: str, name: str, what: str) -> Bitext:
    """The sentences of a split, or all where none is asked for."""
    chosen = [row for row in rows if split is None or row[3] == split]
    if not chosen:
        there = sorted({str(row[3]) for row in rows})
        raise InputError(f"{name}: no {what} in split {split!r}; the splits are {there}")
    return Bitext(
        pair=pair,
        source=[source for source, *_ in chosen],
        target=[target for _, target, *_ in chosen],
        domain=[domain for *_, domain, _ in chosen if domain is not None] or None,
        origin=name if split is None else f"{name} ({split})",
    )


def pair_up(
    source: list[str], target: list[str], names: tuple[str, str], pair: str, origin: str
) -> Bitext:
    """Pair the lines of two files; see `read_moses`."""
    if len(source) != len(target):
        raise InputError(
            f"{names[0]} has {len(source)} lines, {names[1]} has {len(target)}; a pair of files "
            "needs one translation a line"
        )
    if not source:
        raise InputError(f"{names[0]}: is empty")
    both = enumerate(zip(source, target, strict=True), start=1)
    empty = [number for number, sides in both if any(map(_empty, sides))]
    if empty:
        _refuse_empty(empty, names[0 if _empty(source[empty[0] - 1]) else 1], "the line")
    return Bitext(pair=pair, source=source, target=target, origin=origin)


def read_moses(source_path: str | Path, target_path: str | Path, pair: str) -> Bitext:
    """Read a Moses pair: two files with one sentence a line, line by line translations.

    Parameters
    ----------
    source_path, target_path : str or Path
        Plain, gzip or xz.
    pair : str
        Directed pair, source-target.

    Returns
    -------
    Bitext

    Raises
    ------
    InputError
        If a file cannot be read whole, the files have not equally many lines (both numbers are
        named), or a line is empty.
    """
    return pair_up(
        read_lines(source_path),
        read_lines(target_path),
        (str(source_path), str(target_path)),
        pair,
        f"{source_path}, {target_path}",
    )


def _json_text(entry: dict, key: str, where: str) -> str:
    """Return a sentence of a JSON object, checked as a line of text would be."""
    if key not in entry:
        raise InputError(f"{where}: no key {key!r}; the keys are {list(entry)}")
    text = entry[key]
    if not isinstance(text, str):
        raise InputError(f"{where}: {key!r} is {type(text).__name__}, not a string")
    if _empty(text):
        raise InputError(f"{where}: {key!r} is empty; remove the sentence from both sides")
    for character, what in (("\0", "a NUL character"), ("\n", "a line break"), ("\t", "a tab")):
        if character in text:
            raise InputError(f"{where}: {what} inside {key!r}; a sentence is one line of text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: {key!r} is no valid Unicode ({error.reason})") from None
    return text


def read_jsonl(
    path: str | Path,
    pair: str,
    *,
    source: str | None = None,
    target: str | None = None,
    split: str | None = None,
    domain: str | None = None,
    split_column: str = "split",
) -> Bitext:
    r"""Read JSON lines: one object a line, such as ``{"source": "Hello", "target": "Hallo"}``.

    Parameters
    ----------
    path : str or Path
        Plain, gzip or xz.
    pair : str
        Directed pair, source-target.
    source, target : str, optional
        Keys of the two sides; by default the languages of the pair, else ``source`` and ``target``.
    split : str, optional
        Keep only the objects whose key `split_column` has this value.
    domain : str, optional
        Key of the domain.
    split_column : str, optional
        Looked at only where `split` is given.

    Returns
    -------
    Bitext

    Raises
    ------
    InputError
        Naming file and line, if the file cannot be read whole, a line is no JSON object, a key is
        missing (those there are are named), a side is no string, is empty, or holds a line break,
        tab or NUL, or no object is in the split.
    """
    lines = read_lines(path)
    if not lines or not lines[0]:
        raise InputError(f"{path}: is empty, or its first line is")
    if source is None or target is None:
        where = f"{path}: line 1"
        source, target = columns_of(pair, list(json_object(lines[0], where)), where)
    rows: list[_Row] = []
    for number, line in enumerate(lines, start=1):
        where = f"{path}: line {number}"
        entry = json_object(line, where)
        sides = _json_text(entry, source, where), _json_text(entry, target, where)
        marked = None if domain is None else _json_text(entry, domain, where)
        part = None if split is None else _json_text(entry, split_column, where)
        rows.append((*sides, marked, part))
    return _of_split(rows, split, pair, str(path), "line")


def json_object(line: str, where: str) -> dict:
    """Return the JSON object that a line holds; anything else is an `InputError`.

    What an object ``translation`` holds, as in files of Hugging Face, is lifted to its level.

    >>> json_object('{"id": "1", "translation": {"en": "Yes", "de": "Ja"}}', "line 1")
    {'en': 'Yes', 'de': 'Ja', 'id': '1'}
    """
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({error})") from None
    if not isinstance(entry, dict):
        raise InputError(f"{where}: is not a JSON object but {type(entry).__name__}")
    if isinstance(entry.get("translation"), dict):
        return {**entry.pop("translation"), **entry}
    return entry
