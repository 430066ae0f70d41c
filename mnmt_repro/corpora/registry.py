"""The registry of corpora: what each holds, where it comes from, and whether a copy is intact.

A `Card` gives a corpus' languages, licence, origin, split rule and, file by file, the SHA-256 and
the number of sentences of each split. Beside this file, `cards.yml` has the words and `cards.json`
the numbers, so the identity of a corpus (`data_hash`) is known without its text. The text itself is
never part of the package: it is read from the folder named by ``MNMT_REPRO_DATA`` (`data_root`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import yaml

from mnmt_repro.corpora.textfile import read_packed, unpack
from mnmt_repro.errors import InputError, listed
from mnmt_repro.repository import ROOT
from mnmt_repro.typed_config import build

CARDS_FILE, WORDS_FILE = (Path(__file__).with_name(f"cards.{end}") for end in ("json", "yml"))
SPLITS = ("train", "valid", "test")
MULTI30K_TEST_SETS = {
    "multi30k-2016": "test_2016_flickr",
    "multi30k-2017": "test_2017_flickr",
    "multi30k-mscoco": "test_2017_mscoco",
}


@dataclass(frozen=True, kw_only=True)
class CorpusFile:
    """One file of a corpus.

    Parameters
    ----------
    path : str
        Path below the data root, such as ``webtech/eng-deu.tsv.xz``.
    sha256 : str
        SHA-256 in hexadecimal, of what `hash_of` says.
    hash_of : str
        ``"content"``: the unpacked text; ``"file"``: the file as it lies on the disk.
    columns : tuple of str
        Header of a TSV; for plain text the one language of its lines.
    sentences : mapping of str to int
        Sentences (pairs, in a TSV) in each split.
    domains : mapping of str to int
        Training sentences of each domain; empty where the file marks none.
    """

    path: str
    sha256: str
    hash_of: str
    columns: tuple[str, ...]
    sentences: Mapping[str, int]
    domains: Mapping[str, int] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """Name without folder and endings, such as ``eng-deu`` or ``newstest21.eng-deu``."""
        return re.sub(r"(\.tsv)?\.(xz|gz)$", "", self.path.rpartition("/")[2])

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the file in the order of its columns; a bitext has two."""
        return tuple(column for column in self.columns if column not in ("split", "domain"))


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a corpus without reading it.

    Parameters
    ----------
    name, title, licence, origin, obtained, split_rule : str
        In words; `obtained` says how the text is come by.
    files : tuple of CorpusFile
        Empty for a generated corpus and for a user's own.
    base : str
        The corpus that this one is a selection of, else empty. Its files are that corpus' own,
        with fewer training sentences.
    """

    name: str
    title: str
    licence: str
    origin: str
    obtained: str
    split_rule: str
    files: tuple[CorpusFile, ...] = ()
    base: str = ""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes (ISO 639-3) of all languages, in alphabetical order."""
        return tuple(sorted({code for file in self.files for code in file.languages}))

    @property
    def pairs(self) -> tuple[str, ...]:
        """Directed pairs that can be read; a bitext serves both of its directions."""
        if self.name == "multi30k":
            pairs = {(a, b) for a in self.languages for b in self.languages if a != b}
        else:
            pairs = {(a, b) for f in self.files for a, b in (f.languages, f.languages[::-1])}
        return tuple(sorted(f"{a}-{b}" for a, b in pairs))

    def sentences(self, split: str) -> int:
        """Sentence pairs of one split over all files; captions, for a corpus of single languages.

        >>> get_card("multi30k").sentences("train")
        29000
        """
        return sum(
            file.sentences.get(split, 0)
            for file in self.files
            if len(file.languages) == 2 or file.languages == ("eng",)
        )


def is_language(code: str) -> bool:
    """Whether a text can be a language's code: letters, digits and underscores.

    >>> is_language("eng"), is_language("eng-deu")
    (True, False)
    """
    return re.fullmatch(r"\w+", code) is not None


def split_pair(pair: str) -> tuple[str, str]:
    """Return the source and target language of a directed pair.

    >>> split_pair("eng-deu")
    ('eng', 'deu')

    Raises
    ------
    InputError
        If `pair` is not two different languages joined by one hyphen.
    """
    languages = pair.split("-")
    if len(languages) != 2 or not all(map(is_language, languages)):
        raise InputError(f"language pair {pair!r}: write it source-target, such as eng-deu")
    source, target = languages
    if source == target:
        raise InputError(f"language pair {pair!r}: source and target are the same language")
    return source, target


# --- cards ------------------------------------------------------------------------------------


@cache
def list_cards() -> tuple[Card, ...]:
    """Return the cards of all corpora, the embedded default first."""
    entries = json.loads(CARDS_FILE.read_text(encoding="utf-8"))
    cards = []
    for name, about in yaml.safe_load(WORDS_FILE.read_text(encoding="utf-8")).items():
        kept = about.pop("train", None)  # of a selection
        files = tuple(build(CorpusFile, each) for each in entries.get(about.get("base", name), ()))
        if kept is not None:
            files = tuple(
                replace(file, sentences={**file.sentences, "train": kept}, domains={})
                for file in files
            )
        cards.append(Card(name=name, **about, files=files))
    return tuple(cards)


def get_card(name: str) -> Card:
    """Return the card of a corpus; an unknown name is an `InputError` that lists the known ones."""
    for card in list_cards():
        if card.name == name:
            return card
    known = ", ".join(card.name for card in list_cards())
    raise InputError(f"corpus {name!r}: unknown; there are {known}")


# --- places -----------------------------------------------------------------------------------


def data_root() -> Path | None:
    """Return the folder of real corpora, or None where there is none.

    ``MNMT_REPRO_DATA`` if it is set, else ``../shared/corpora`` beside the checkout if present.

    Raises
    ------
    InputError
        If ``MNMT_REPRO_DATA`` names something that is not a folder.
    """
    named = os.environ.get("MNMT_REPRO_DATA")
    if named:
        if not Path(named).is_dir():
            raise InputError(f"MNMT_REPRO_DATA={named}: no such folder")
        return Path(named)
    beside = ROOT.parent / "shared" / "corpora"
    return beside if beside.is_dir() else None


def require_data_root() -> Path:
    """Return `data_root`, or raise an `InputError` that says what to set."""
    root = data_root()
    if root is None:
        raise InputError(
            "real corpora absent: set MNMT_REPRO_DATA to the folder that holds webtech/, "
            "software25/, outofdomain/ and multi30k/ (the embedded conlang corpus needs no data)"
        )
    return root


def locate(file: CorpusFile) -> Path | None:
    """Return where a file of a corpus lies below `data_root`, or None."""
    root = data_root()
    return root / file.path if root is not None and (root / file.path).is_file() else None


def verified_content(file: CorpusFile, path: Path) -> bytes:
    """Return the unpacked content of a corpus file, once its SHA-256 is found to be its card's.

    So a loss is never filed under the hash of a text that it was not computed from.

    Raises
    ------
    InputError
        If the file is absent, damaged, or not the one on the card.
    """
    packed = read_packed(path)
    content = unpack(packed, path)
    digest = hashlib.sha256(content if file.hash_of == "content" else packed).hexdigest()
    if digest != file.sha256:
        both = f"SHA-256 is {digest[:12]}…, the card says {file.sha256[:12]}…"
        raise InputError(f"{path}: {both}; fetch the file again, or read it as your own bitext")
    return content


def find_file(corpus: str, pair: str, test_set: str | None = None) -> CorpusFile:
    """Return the TSV that holds a directed pair; a file made in that direction is preferred.

    Parameters
    ----------
    corpus : str
        ``webtech``, ``software25`` or ``outofdomain``.
    pair : str
        Directed pair, such as ``deu-eng``.
    test_set : str, optional
        For ``outofdomain``: ``newstest21``, ``newstest22``, ``newstest22-pivot``, ``tatoeba1k``.

    Raises
    ------
    InputError
        If there is no such pair; those there are are named.
    """
    source, target = split_pair(pair)
    bitexts = {file.stem: file for file in get_card(corpus).files if len(file.languages) == 2}
    prefix = f"{test_set}." if test_set else ""
    for stem in (f"{prefix}{source}-{target}", f"{prefix}{target}-{source}"):
        if stem in bitexts:
            return bitexts[stem]
    there = sorted(stem.removeprefix(prefix) for stem in bitexts if stem.startswith(prefix))
    raise InputError(f"{test_set or corpus}: no pair {pair!r}, either way round; {listed(there)}")


def known_test_sets(pair: str) -> tuple[str, ...]:
    """Return the names of the out-of-domain test sets that can be read for a directed pair.

    >>> known_test_sets("fra-eng")
    ('newstest22-pivot', 'multi30k-2016', 'multi30k-2017', 'multi30k-mscoco')
    """
    languages = set(split_pair(pair))
    names = [
        file.stem.rpartition(".")[0]
        for file in get_card("outofdomain").files
        if set(file.languages) == languages
    ]
    for name, stem in MULTI30K_TEST_SETS.items():
        there = {f.languages[0] for f in get_card("multi30k").files if f.stem.startswith(stem)}
        names += [name] * (languages <= there)
    return tuple(dict.fromkeys(names))


def data_hash(corpus: str, pairs: Collection[str] | None = None) -> str:
    """Return a short hash of a corpus, or of some of its pairs, without reading the text.

    It hashes the names and SHA-256s of the files, so neither the direction of a pair nor the
    order of the pairs matters. A generated corpus is a pure function of its declaration, so its
    hash stands for its name alone.

    Parameters
    ----------
    corpus : str
        Name of a corpus other than ``own`` (for that, see `bitext.content_hash`).
    pairs : collection of str, optional
        Directed pairs. All files if None.

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    card = get_card(corpus)
    if corpus == "own":
        raise InputError("corpus 'own': has no card; hash the bitext itself (bitext.content_hash)")
    chosen = card.files
    if pairs is not None and card.files:
        if unknown := [pair for pair in pairs if pair not in card.pairs]:
            why = f"no pair {unknown[0]!r}; its languages are {', '.join(card.languages)}"
            raise InputError(f"corpus {corpus!r}: {why}")
        wanted = [set(pair.split("-")) for pair in pairs]
        chosen = tuple(f for f in card.files if any(w.issuperset(f.languages) for w in wanted))
    text = "\n".join([corpus, *sorted(f"{file.path} {file.sha256}" for file in chosen)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
