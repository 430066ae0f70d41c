"""Every figure and table of both papers, and where the book re-makes it (`EXHIBITS_FILE`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.schema import Claim

EXHIBITS_FILE = Path("data", "papers", "exhibits.yml")
ALL = (
    *(f"A Figure {number}" for number in range(1, 21)),
    "A Table of Appendix A",
    *(f"B Figure {number}" for number in range(1, 7)),
    *(f"B Table {number}" for number in range(1, 13)),
)
"""What the papers show, in their order."""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or table: what the paper shows, and our answer or why it has none or no claim.

    `claims` are those that judge it; the first one gives the verdict. `page` is the page that
    re-makes it, and `chart` the name of its chart that is shown. `answer` may contain the
    effect of a claim, as in ``"The law misses held-out sizes by {A14}"``, also in another setting:
    ``{A14 on 'conlang, related'}``.
    """

    id: str
    shows: str
    claims: tuple[str, ...] = ()
    page: str = ""
    answer: str = ""
    reason: str = ""
    chart: str = ""


def load_exhibits(root: Path, claims: Iterable[Claim]) -> tuple[Exhibit, ...]:
    """Read the list of exhibits and check that it is complete.

    Raises
    ------
    InputError
        When an exhibit is missing, unknown or listed twice, names a claim or a page that is not
        there, or has neither a page with an answer nor a reason, or no claim and no reason.
    """
    path = root / EXHIBITS_FILE
    known = {claim.id for claim in claims}
    found = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["exhibits"]:
        try:
            exhibit = Exhibit(**{**entry, "claims": tuple(entry.get("claims", ()))})
        except TypeError as error:
            raise InputError(f"{path}: {entry.get('id')}: {error}") from error
        where = f"{path}: {exhibit.id}"
        if unknown := set(exhibit.claims) - known:
            raise InputError(f"{where}: there is no claim {sorted(unknown)[0]}")
        if not exhibit.reason and not (exhibit.page and exhibit.chart and exhibit.answer):
            raise InputError(f"{where}: give a page with a chart and an answer, or a reason")
        if not (exhibit.claims or exhibit.reason):
            raise InputError(f"{where}: give a claim that judges it, or the reason for none")
        pages = [root / "book" / f"{exhibit.page}{suffix}" for suffix in (".ipynb", ".md")]
        if exhibit.page and not any(page.is_file() for page in pages):
            raise InputError(f"{where}: there is no page book/{exhibit.page}")
        found.append(exhibit)
    listed = [exhibit.id for exhibit in found]
    for name in (*ALL, *listed):
        if listed.count(name) != 1 or name not in ALL:
            raise InputError(f"{path}: {name} is listed {listed.count(name)} times; once is right")
    return tuple(found)
