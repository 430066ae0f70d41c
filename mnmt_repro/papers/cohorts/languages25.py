"""Paper B's 25 languages beside English, and its divisions into original and added ones.

They are those of Tables 2, 9, 10 and 11 (left), in `data/papers`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass

from mnmt_repro.repository import ROOT

LEVELS = ("high", "mid", "low", "very low")
"""Of resources: above 10M pairs with English, above 1M, fewer; below 100k."""


def _printed(number: int) -> list[dict[str, str]]:
    """Rows of a table of Paper B."""
    path = ROOT / "data" / "papers" / f"paper-b-table-{number:02d}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@dataclass(frozen=True, kw_only=True)
class Language:
    """What runs and pages read of a row of Table 9."""

    name: str
    sentences: int  # pairs with English in the paper's training text
    level: str  # one of `LEVELS`


LANGUAGES: dict[str, Language] = {
    row["language"]: Language(name=row["name"], sentences=int(row["value"]), level=row["level"])
    for row in _printed(9)
}
"""By code, in the order of Table 9."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """One division of the languages; every language is either original or added."""

    name: str  # of the upgraded model
    old_model: str
    added: tuple[str, ...]
    related: tuple[str, ...]  # original ones that are up-sampled too, the tables' asterisk

    @property
    def original(self) -> tuple[str, ...]:
        """All other languages."""
        return tuple(code for code in LANGUAGES if code not in self.added)

    def group_of(self, pair: str) -> str:
        """`original` or `added`, of a directed pair.

        >>> GROUPINGS["Mt25"].group_of("xho-eng"), GROUPINGS["Mt25-v1"].group_of("eng-xho")
        ('added', 'original')
        """
        return "added" if set(pair.split("-")) & set(self.added) else "original"


def _grouping(name: str, old_model: str, number: int) -> Grouping:
    mine = [row for row in _printed(number) if name in (row.get("grouping"), row.get("model"))]
    return Grouping(
        name=name,
        old_model=old_model,
        added=tuple(row["language"] for row in mine if row["group"] == "added"),
        related=tuple(row["language"] for row in mine if row["mark"] == "*"),
    )


GROUPINGS: dict[str, Grouping] = {
    name: _grouping(name, old_model, number)
    for name, old_model, number in (
        *(("Mt25", "M20", 2), ("Mt25-v1", "M20-v1", 10), ("Mt25-v2", "M20-v2", 10)),
        ("M12t25", "M12", 11),
    )
}


def directions(languages: Iterable[str], hub: str = "eng") -> tuple[str, ...]:
    """Both pairs of each language and English, or another hub.

    >>> directions(("xho",))
    ('eng-xho', 'xho-eng')
    """
    return tuple(pair for code in languages for pair in (f"{hub}-{code}", f"{code}-{hub}"))


def foreign(pair: str) -> str:
    """The language beside English.

    >>> foreign("eng-xho"), foreign("xho-eng")
    ('xho', 'xho')
    """
    return pair.removeprefix("eng-").removesuffix("-eng")


OUT, INTO = "out of English", "into English"


def side_of(pair: str) -> str:
    """Where English is in a pair, in words.

    >>> side_of("eng-xho"), side_of("xho-eng")
    ('out of English', 'into English')
    """
    return OUT if pair.startswith("eng-") else INTO


CHANGING = tuple(
    code
    for code in LANGUAGES
    if any(code in (*grouping.added, *grouping.related) for grouping in GROUPINGS.values())
)
"""Languages that some grouping adds, or up-samples as relatives of added ones."""


def cut_to_table9(available: dict[str, int], chosen: tuple[str, ...]) -> dict[str, int]:
    """Training sentences of the chosen languages that bear Table 9's ratio to all others.

    Parameters
    ----------
    available
        Sentences of each language in our corpus: what there is not cannot be kept.

    Examples
    --------
    In the paper Nepali is 72,250 pairs beside 105,590,647 original ones:

    >>> here = {code: row.sentences // 10 for code, row in LANGUAGES.items()}
    >>> cut_to_table9(here | {"npi": 9_000, "xho": 3_000}, GROUPINGS["Mt25"].added)["npi"]
    7225
    >>> cut_to_table9(here | {"npi": 9_000, "xho": 3_000}, GROUPINGS["Mt25"].added)["xho"]
    3000
    """
    others = [code for code in LANGUAGES if code not in chosen]
    theirs = sum(LANGUAGES[code].sentences for code in others)
    ours = sum(available[code] for code in others)
    return {
        code: min(round(LANGUAGES[code].sentences * ours / theirs), available[code])
        for code in chosen
    }


_MT25 = GROUPINGS["Mt25"]
_GROUPS = {
    "all": _MT25.original + _MT25.added,
    "original": _MT25.original,
    "added": _MT25.added,
    "related": _MT25.related,
    "other original": tuple(code for code in _MT25.original if code not in _MT25.related),
}


def directions_of(group: str) -> tuple[str, ...]:
    """Directions of a group of languages, of a resource level, or one direction.

    Groups are ``all``, ``original`` and ``added`` of Mt25. The original ones are also parted into
    those ``related`` to added ones, and up-sampled with them, and the ``other original`` ones.

    >>> directions_of("very low")
    ('eng-bel', 'bel-eng', 'eng-npi', 'npi-eng')
    """
    if "-" in group:
        return (group,)
    level = tuple(code for code, language in LANGUAGES.items() if language.level == group)
    return directions(level or _GROUPS[group])
