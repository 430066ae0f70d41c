"""What other papers found on our claims, beside the claim's title and our own verdict.

The words lie in ``data/papers/related.yml``.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd
import yaml

from mnmt_repro.papers.charts.verdicts import badge, headline
from mnmt_repro.papers.claims.schema import NOT_REPRODUCED
from mnmt_repro.papers.effects.published import PAPERS

SAME = "same"
"""How the entry of a finding that agrees with the paper begins."""


def findings(paper: str) -> list[Mapping[str, Any]]:
    """Entries of Paper A or B: ``claims, found, agrees``."""
    findings: dict[str, list[Mapping[str, Any]]] = yaml.safe_load(
        (PAPERS / "related.yml").read_text(encoding="utf-8")
    )
    return findings[paper]


def findings_table(stored: pd.DataFrame, paper: str) -> str:
    """Write a table of the findings: claims with our verdict, the finding, and how they compare.

    The title of a claim stands in its first row only.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    paper
        ``"A"`` or ``"B"``.

    Raises
    ------
    InputError
        When a claim has no stored verdict.
    """
    lines = [
        "| claim, and our own verdict | what another paper found | agrees with the paper? |",
        "|---|---|---|",
    ]
    known: set[str] = set()
    for entry in findings(paper):
        claims = []
        for claim in entry["claims"]:
            sign = badge(stored, claim)
            title = "" if claim in known else f" {html.escape(sign.about)}."
            claims.append(f"{sign.to_html()}{title}")
            known.add(claim)
        lines.append(f"| {'<br>'.join(claims)} | {entry['found']} | {entry['agrees']} |")
    return "\n".join(lines)


def confirmed(paper: str) -> list[str]:
    """Claims with which another paper agrees.

    >>> confirmed("A")
    ['A4', 'A7', 'A14']
    """
    agreeing = [each["claims"] for each in findings(paper) if each["agrees"].startswith(SAME)]
    return list(dict.fromkeys(sum(agreeing, [])))


def contradicted(stored: pd.DataFrame, paper: str) -> list[str]:
    """Claims with which another paper agrees, and which are not reproduced here."""
    return [
        claim for claim in confirmed(paper) if headline(stored, claim)["verdict"] == NOT_REPRODUCED
    ]
