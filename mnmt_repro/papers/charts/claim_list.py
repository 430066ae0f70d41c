"""The list of all claims on the page of verdicts, and that of what changed after data were seen.

Each row of the first has the anchor to which the claim's badges lead, and folds its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd
import yaml

from mnmt_repro.papers.charts.badge import Badge, typeset
from mnmt_repro.papers.charts.measures import half_width_written, limit_written, measured, named
from mnmt_repro.papers.charts.provenance import counted
from mnmt_repro.papers.charts.template import Html, render
from mnmt_repro.papers.charts.theme import plain
from mnmt_repro.papers.charts.verdicts import anchor, how_sure, said, shown_verdict, tally
from mnmt_repro.papers.claims.report import headlines
from mnmt_repro.papers.claims.schema import REPRODUCED, Claim
from mnmt_repro.repository import ROOT


def claim_list(stored: pd.DataFrame, claims: Sequence[Claim], *, linked: bool = True) -> Html:
    """List stored verdicts (`claims.read_stored`) with the entries of their claims.

    The badge of a claim leads to its page, if `linked`. Above the list, one for each verdict hides
    the claims of all others, without a script, and one for each claim leads to its entry.
    """
    by_id, table = {claim.id: claim for claim in claims}, headlines(stored)
    rows = [_row(row, by_id[str(name)], stored, linked) for name, row in table.iterrows()]
    shown = [shown_verdict(row) for _, row in stored.iterrows()]
    listed = stored.assign(verdict=shown).to_csv(index=False, lineterminator="\n")
    late = table["post_hoc"].eq("yes").sum()
    html = render("claim_list", rows=rows, badges=tally(stored), late=late, listed=listed)
    words = "\n".join(
        f"{row['claim'].id}  {row['badge'].verdict:16}  {row['claim'].title}" for row in rows
    )
    return Html(html=html, words=words)


def _row(row: pd.Series, claim: Claim, stored: pd.DataFrame, linked: bool) -> dict[str, Any]:
    mine = stored[(stored["claim"] == claim.id) & (stored["measure"] == claim.measure)]
    effects = mine[mine["limit"] != ""]  # and not those of the other parts
    known = pd.notna(row["value"])
    half = half_width_written(claim.measure, row["resolution"], claim.id)
    limit = typeset(limit_written(claim.measure, claim))
    ours = typeset(measured(claim.measure, row, claim.id)) if known else "–"
    kind = row["kind"] * (row["kind"] not in plain(row["setting"]))
    sizes = f"models of {row['sizes']} parameters" * bool(row["sizes"])
    seeds = f"{counted(int(row['seeds']), 'seed')} a cell" * known
    others = effects[effects["role"].str.startswith("sensitivity")].dropna(subset=["value", "low"])
    earlier = "" if known or others.empty else _unjudged(others.iloc[0], claim)
    sure, _, why_sure = how_sure(stored, claim.id).removeprefix("**").partition("**: ")
    cited = f"claim {claim.id}, “{claim.title}”: {said(row)}. Effect {ours}, limit {limit}"
    return {
        "claim": claim,
        "anchor": anchor(claim.id),
        "paper": claim.paper,
        "effect": named(claim.measure, claim.id),
        "limit": limit,
        "ours": ours,
        "where": "; ".join(filter(None, (plain(row["setting"]), kind, sizes, seeds, earlier))),
        "sure": (sure, why_sure.replace("`", "")),
        "little": claim.says_little,
        "cited": f"{_cited_as()}, {cited}; {row['kind']}.",
        "page": f"{claim.page}.html" * linked,
        "caution": claim.note if row["verdict"] == REPRODUCED else "",
        "resolution": typeset(half) if pd.notna(row["resolution"]) else "",
        "badge": Badge(
            verdict=shown_verdict(row), text=said(row), href=f"{claim.page}.html" * linked
        ),
        "changes": f"after-seeing-data.html#{_changes(claim.id)}" * linked,
        "why": row["why"],
        "robust": row["robust"] if row["robust"] != "not known" else "",
        "settings": [_setting(each, claim) for _, each in effects.iterrows()],
    }


def _unjudged(row: pd.Series, claim: Claim) -> str:
    """An effect in another setting, for a claim whose own runs are missing."""
    return f"not judged, {plain(row['setting'])}: {typeset(measured(claim.measure, row, claim.id))}"


@cache
def _cited_as() -> str:
    """How this project is named in a citation."""
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = ", ".join(each["name"] for each in about["authors"])
    return (
        f"{authors}: {about['title']}, version {about['version']} ({about['date-released'].year})"
    )


def _setting(row: pd.Series, claim: Claim) -> dict[str, str]:
    """A row of the table of settings."""
    known = pd.notna(row["value"])
    return {
        "what it is": row["role"].rstrip(" 0123456789"),
        "setting": plain(row["setting"]),
        "evidence": row["kind"],
        "effect": typeset(measured(claim.measure, row, claim.id)) if known else row["why"],
        "seeds (median)": f"{row['seeds']:.0f}",
        "verdict": said(row) if row["verdict"] else "shown, not judged",
    }


def change_list(changes: pd.DataFrame, claims: Sequence[str]) -> Html:
    """List changes, with a link a claim that hides those of all other claims, without a script.

    Parameters
    ----------
    changes
        ``date, claims`` (ids between blanks, or ``all``), ``kind, change, known, commit``.
    claims
        Ids that get a link.
    """
    listed = changes.to_csv(index=False, lineterminator="\n")
    anchors = {claim: _changes(claim) for claim in claims}
    html = render("change_list", rows=changes.to_dict("records"), anchors=anchors, listed=listed)
    return Html(html=html, words=changes.to_string(index=False))


def _changes(claim: str) -> str:
    """Name of the link that shows the changes of one claim."""
    return f"changes-{claim.lower()}"
