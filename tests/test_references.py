"""What is cited is known, and what is known is cited."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mnmt_repro.papers.charts import related
from mnmt_repro.papers.claims import load_claims

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
RELATED = BOOK / "methods" / "published-fits.ipynb"


def cells(page: Path) -> list[str]:
    """Sources of a page's cells; of a Markdown file, all of it."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return [text]
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def test_all_that_is_known_is_cited_and_all_claims_exist() -> None:
    entries = [*related.findings("A"), *related.findings("B")]
    text = "\n".join([*cells(RELATED), *(f"{each['found']} {each['agrees']}" for each in entries)])
    keys = set(re.findall(r"\{cite(?::\w+)?\}`([\w-]+)`", text))
    known = re.findall(r"^@\w+\{([\w-]+),", (BOOK / "references.bib").read_text("utf-8"), re.M)
    assert keys == set(known) and len(known) == len(keys)
    claims = {claim.id for claim in load_claims(ROOT / "data" / "claims")}
    assert {claim for each in entries for claim in each["claims"]} <= claims
    assert "@" not in text
