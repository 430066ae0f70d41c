"""Pages that discuss a paper link to it; what is cited is known, and what is known is cited."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mnmt_repro.papers.charts import related
from mnmt_repro.papers.charts.opening import PAPER_LINKS
from mnmt_repro.papers.claims import load_claims

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
PAGES = sorted(
    page
    for page in BOOK.rglob("*")
    if page.suffix in (".md", ".ipynb") and ".ipynb_checkpoints" not in page.parts
)
OF_PART = {"paper-a": {"A"}, "paper-b": {"B"}}
CITED = {"A": "fernandes-2023", "B": "sun-2023"}
RELATED = BOOK / "methods" / "published-fits.ipynb"


def cells(page: Path) -> list[str]:
    """Sources of a page's cells; of a Markdown file, all of it."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return [text]
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def discussed(page: Path) -> set[str]:
    """The papers that a page names, and the one that its part is about."""
    named = set(re.findall(r"\bPaper ([AB])\b", "\n".join(cells(page))))
    return named | OF_PART.get(page.parent.name, set())


def linked(page: Path) -> set[str]:
    """The papers that a page links to: itself, by a citation, or in the three lines."""
    found = set()
    for source in cells(page):
        found |= {letter for letter, url in PAPER_LINKS.items() if url in source}
        found |= {letter for letter in PAPER_LINKS if f"PAPER_LINKS['{letter}']" in source}
        found |= {letter for letter, key in CITED.items() if f"`{key}`" in source}
        found |= set(re.findall(r"\bthree_lines\([^\"]*\"([AB])\d+\"", source))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(BOOK).as_posix())
def test_a_page_links_to_the_papers_that_it_discusses(page: Path) -> None:
    assert discussed(page) <= linked(page)
    quoted = r"\b[Tt]he paper (says|trains|prints|finds)\b|as in the paper"
    if re.search(quoted, "\n".join(cells(page))):
        assert linked(page)


def test_all_that_is_known_is_cited_and_all_claims_exist() -> None:
    entries = [*related.findings("A"), *related.findings("B")]
    text = "\n".join([*cells(RELATED), *(f"{each['found']} {each['agrees']}" for each in entries)])
    keys = set(re.findall(r"\{cite(?::\w+)?\}`([\w-]+)`", text))
    known = re.findall(r"^@\w+\{([\w-]+),", (BOOK / "references.bib").read_text("utf-8"), re.M)
    assert keys == set(known) and len(known) == len(keys)
    claims = {claim.id for claim in load_claims(ROOT / "data" / "claims")}
    assert {claim for each in entries for claim in each["claims"]} <= claims
    assert "@" not in text
