"""Which parallel text to read: a registered corpus, an out-of-domain test set, or your own.

`load_split` and `load_test_set` read the corpora of the registry, and compare each file with its
card first; `read_bitext` reads a user's own text. The formats are in `formats`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from mnmt_repro.corpora.formats import Bitext, Columns, pair_up, parse_tsv, read_jsonl
from mnmt_repro.corpora.registry import (
    MULTI30K_TEST_SETS,
    SPLITS,
    data_hash,
    find_file,
    get_card,
    require_data_root,
    split_pair,
    verified_content,
)
from mnmt_repro.corpora.textfile import decode_lines, read_lines
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import build

_JSONL = (".jsonl", ".ndjson", ".json")
SKIP_BAD = "skip and count lines of files that hold no sentence pair (of one: FILE?skip_bad=yes)"
"""Help of the option `--skip-bad`."""
_SPEC = "write it PAIR=FILE.tsv, PAIR=FILE.jsonl or PAIR=SOURCE_FILE,TARGET_FILE"


# --- a user's own text ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BitextSpec:
    """Where and how to read a user's own bitext.

    Parameters
    ----------
    pair : str
        Directed pair, source-target.
    paths : tuple of Path
        One file (TSV or JSONL), or two (Moses: source, target).
    columns : Columns
        Of one file. Of two, `skip_bad` alone is used.
    """

    pair: str
    paths: tuple[Path, ...]
    columns: Columns = Columns()

    def __str__(self) -> str:
        """As `parse_spec` reads it in whatever folder."""
        files = ",".join(str(path.absolute()) for path in self.paths)
        options = asdict(self.columns).items() - asdict(Columns()).items()
        query = "&".join(f"{name}={value}" for name, value in sorted(options))
        return f"{self.pair}={files}" + f"?{query}" * bool(query)


def parse_spec(text: str) -> BitextSpec:
    """Read the description of a bitext, as a `--data` option gives it.

    ``PAIR=FILE[,FILE][?OPTION=VALUE[&OPTION=VALUE...]]``. One file is a TSV, or JSONL where its
    name ends so (before any ``.gz`` or ``.xz``); two files are a Moses pair. Options are the fields
    of `formats.Columns`; ``skip_bad=yes`` leaves out lines that hold no sentence pair. A path that
    exists as it is written is taken so, whatever characters it has.

    >>> parse_spec("eng-deu=talks.tsv.xz?source=english&target=german").columns.source
    'english'

    Raises
    ------
    InputError
        If the description cannot be understood; the message says how to write it.
    """
    pair, equals, rest = text.partition("=")
    if not equals or not rest:
        raise InputError(f"bitext {text!r}: {_SPEC}")
    split_pair(pair)
    options: dict[str, str] = {}
    rest = os.path.expanduser(rest)  # a shell leaves ~ as it is behind "="
    if not Path(rest).exists() and "?" in rest:
        rest, _, query = rest.rpartition("?")
        for part in query.split("&"):
            key, equals, value = part.partition("=")
            if not (key and equals and value):
                raise InputError(f"bitext {text!r}: option {part!r}: write it name=value")
            options[key] = value
    options.pop("format", None)  # of a `run.json` of earlier versions; the names of files say it
    names = [rest] if Path(rest).exists() else rest.split(",")
    if not all(names) or len(names) > 2:
        raise InputError(f"bitext {text!r}: name one file or two; {_SPEC}")
    if _ending(names[0]) == ".csv":
        raise InputError(f"bitext {text!r}: CSV is not read; convert it to TSV, without quotes")
    try:
        columns = build(Columns, options)
    except InputError as error:
        raise InputError(f"bitext {text!r}: option {error}") from error
    if len(names) == 2 and columns != Columns(skip_bad=columns.skip_bad):
        raise InputError(f"bitext {text!r}: two files have no columns; leave them out")
    if (columns.source is None) != (columns.target is None):
        raise InputError(f"bitext {text!r}: name both source and target, or neither")
    paths = tuple(Path(os.path.expanduser(name)) for name in names)
    return BitextSpec(pair=pair, paths=paths, columns=columns)


def _ending(name: str) -> str:
    """The ending of a file's name before any ``.gz`` or ``.xz``."""
    return Path(name.removesuffix(".xz").removesuffix(".gz")).suffix.lower()


def read_bitext(spec: str | BitextSpec) -> Bitext:
    """Read a user's own bitext.

    Where a TSV or JSONL names no columns, they are the two languages of the pair (so
    ``deu-eng=FILE`` reads the file of ``eng-deu`` the other way round), else ``source`` and
    ``target``.

    Parameters
    ----------
    spec : str or BitextSpec
        See `parse_spec`.

    Returns
    -------
    Bitext

    Raises
    ------
    InputError
        See `parse_spec`, `parse_tsv`, `pair_up` and `read_jsonl`.
    """
    if isinstance(spec, str):
        spec = parse_spec(spec)
    if len(spec.paths) == 2:
        source, target = spec.paths
        names = (str(source), str(target))
        texts = read_lines(source), read_lines(target)
        return pair_up(*texts, names, spec.pair, ", ".join(names), spec.columns)
    path = spec.paths[0]
    if _ending(path.name) in _JSONL:
        return read_jsonl(path, spec.pair, spec.columns)
    return parse_tsv(read_lines(path), str(path), spec.pair, spec.columns)


def skipping_bad(specs: Iterable[str], skip_bad: bool) -> tuple[str, ...]:
    """Descriptions of bitexts, with ``skip_bad=yes`` where that is asked for."""
    if not skip_bad:
        return tuple(specs)
    parsed = map(parse_spec, specs)
    return tuple(str(replace(s, columns=replace(s.columns, skip_bad="yes"))) for s in parsed)


def read_bitexts(specs: Iterable[str], option: str = "--data") -> dict[str, Bitext]:
    """Read what `option` names, once a pair.

    Raises
    ------
    InputError
        When a pair is given twice, and as `read_bitext`.
    """
    texts: dict[str, Bitext] = {}
    for text in specs:
        try:
            spec = parse_spec(text)
        except InputError as error:
            raise InputError(f"{option}: {error}") from error
        if spec.pair in texts:
            raise InputError(f"{option} {spec.pair}: given twice; join its files into one")
        texts[spec.pair] = read_bitext(spec)
    return texts


# --- registered corpora -----------------------------------------------------------------------


def _read_registered(corpus: str, pair: str, split: str | None, test_set: str | None) -> Bitext:
    """Read a TSV of a registered corpus, after comparing it with its card."""
    file = find_file(corpus, pair, test_set)
    path = require_data_root() / file.path
    return parse_tsv(
        decode_lines(verified_content(file, path), path),
        str(path),
        pair,
        Columns(split=split, domain="domain" if "domain" in file.columns else None),
    )


def _read_multi30k(pair: str, stem: str) -> Bitext:
    """Read two languages of Multi30k."""
    sides = {f.languages[0]: f for f in get_card("multi30k").files if f.stem.startswith(f"{stem}.")}
    languages = split_pair(pair)
    for language in languages:
        if language not in sides:
            raise InputError(
                f"multi30k ({stem}): no language {language!r}; there are {', '.join(sorted(sides))}"
            )
    paths = [require_data_root() / sides[language].path for language in languages]
    source, target = (
        decode_lines(verified_content(sides[language], path), path)
        for language, path in zip(languages, paths, strict=True)
    )
    names = (str(paths[0]), str(paths[1]))
    return pair_up(source, target, names, pair, f"multi30k ({stem})")


@lru_cache(maxsize=2)
def _shared_english(corpus: str, root: Path, content: str) -> tuple[str, ...]:
    """English training sentences that all files of a corpus have, in alphabetical order.

    Folder and hash name the content, so that another copy is not answered from memory.
    """
    sides = [
        set(_read_registered(corpus, f"eng-{language}", "train", None).source)
        for file in get_card(corpus).files
        for language in file.languages
        if language != "eng"
    ]
    return tuple(sorted(set.intersection(*sides)))


def _select_shared(corpus: str, text: Bitext) -> Bitext:
    """Keep the sentences whose English all files have, each once with its first translation.

    Row i has the same English in every pair of the corpus.
    """
    first: dict[str, int] = {}
    for row, sentence in enumerate(text.source if text.pair.startswith("eng-") else text.target):
        first.setdefault(sentence, row)
    shared = _shared_english(corpus, require_data_root(), data_hash(corpus))
    return text.select([first[sentence] for sentence in shared])


def load_split(corpus: str, pair: str, split: str) -> Bitext:
    """Read one split of a directed pair of a registered corpus.

    Parameters
    ----------
    corpus : str
        ``webtech``, ``webtech-shared`` (the same files; of the training text what all three
        languages translate), ``software25`` or ``multi30k``; the `test` of the last is the Flickr
        test set of 2016.
    pair : str
        Directed pair; ``deu-eng`` reads the same text as ``eng-deu``, the other way round.
    split : str
        ``train``, ``valid`` or ``test``.

    Returns
    -------
    Bitext
        With domains, where the corpus marks them.

    Raises
    ------
    InputError
        If corpus, pair or split is unknown, or the data are absent or not those on the card.
    """
    if split not in SPLITS:
        raise InputError(f"split {split!r}: must be one of {', '.join(SPLITS)}")
    if corpus == "multi30k":
        return _read_multi30k(pair, {"valid": "val", "test": "test_2016_flickr"}.get(split, split))
    text = _read_registered(corpus, pair, split, None)
    return _select_shared(corpus, text) if split == "train" and get_card(corpus).base else text


def load_test_set(name: str, pair: str) -> Bitext:
    """Read an out-of-domain test set.

    A set made in the direction asked for is preferred (``newstest21`` has one each way); where
    there is none, the other one is read reversed.

    Parameters
    ----------
    name : str
        ``newstest21``, ``newstest22``, ``newstest22-pivot``, ``tatoeba1k``, ``multi30k-2016``,
        ``multi30k-2017`` or ``multi30k-mscoco``.
    pair : str
        Directed pair.

    Returns
    -------
    Bitext

    Raises
    ------
    InputError
        If the set has no such pair (those it has are named), or the data are absent or not those
        on the card.
    """
    if name in MULTI30K_TEST_SETS:
        return _read_multi30k(pair, MULTI30K_TEST_SETS[name])
    return _read_registered("outofdomain", pair, None, name)
