"""The book's first page says of no claim what its stored verdict does not."""

from __future__ import annotations

import re
from pathlib import Path

from mnmt_repro.claims import read_stored
from mnmt_repro.figures.badge import STYLE

ROOT = Path(__file__).resolve().parents[1]
SIGN_OF = {verdict: sign for verdict, (sign, _) in STYLE.items()}


def signs(text: str) -> dict[str, str]:
    """Claim to the sign it is given, in a list such as ``(✓ B1, B2, ↗ B5)``."""
    found, sign = {}, ""
    every = "".join(map(re.escape, SIGN_OF.values()))
    for part in re.findall(rf"(?<=[(\s])[{every}](?= [AB]\d)|(?<=[\s])[AB]\d+(?=[,)])", text):
        if part in SIGN_OF.values():
            sign = part
        else:
            found[part] = sign
    return found


def test_signs_are_read_with_the_claims_they_stand_before() -> None:
    assert signs("Is it (? B6, B7)? It is (✓ A1,\nA2, ↗ B5).") == {
        "B6": "?", "B7": "?", "A1": "✓", "A2": "✓", "B5": "↗",
    }  # fmt: skip


def test_the_introduction_follows_the_verdicts() -> None:
    text = (ROOT / "book" / "intro.md").read_text()
    said = signs(text)
    assert len(said) == len(re.findall(r"\b[AB]\d+\b", text)) > 20
    stored = {item["id"]: SIGN_OF[item["verdict"]] for item in read_stored(ROOT)}
    assert said == {claim: stored[claim] for claim in said}
