"""Verdicts on pages: the badge beside a figure, and the table of all claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mnmt_repro.claims import Claim, Step, load_claims
from mnmt_repro.errors import InputError
from mnmt_repro.figures.house import Badge
from mnmt_repro.repository import ROOT

VERDICTS_PAGE = "../verdicts.html"


def number(value: float | None) -> str:
    """A measured number as pages print it: three significant digits, a dash where there is none.

    >>> number(0.99342), number(None)
    ('0.993', '–')
    """
    return "–" if value is None else f"{value:.3g}"


def measured(scope: Mapping[str, Any]) -> str:
    """The deciding number of a verdict with its interval, where there is one."""
    text = number(scope["measured"])
    interval = scope["interval"]
    if interval is None or scope["measured"] is None:
        return text
    return f"{text} ({number(interval[0])} to {number(interval[1])})"


def badges(
    stored: Sequence[Mapping[str, Any]],
    *claims: str,
    cohort: str = "",
    test_set: str = "indomain",
    n: str = "n_non_embedding",
    href: str = VERDICTS_PAGE,
) -> list[Badge]:
    """Badges of the named claims, as stored in `data/claims/verdicts.json`.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claims
        Claim ids, such as ``"A2"``.
    cohort, test_set, n
        The setting of the figure; a claim that was not examined in it gets no badge. Without a
        cohort, the claim's own setting (its first).

    Raises
    ------
    InputError
        When a claim has no stored verdict.
    """
    known = {verdict["id"]: verdict for verdict in stored}
    ledger = {claim.id: claim for claim in load_claims(ROOT / "data" / "claims")}
    found = []
    for claim in claims:
        if claim not in known:
            raise InputError(
                f"claim {claim} has no stored verdict: run `mnmt-repro verify --write`"
            )
        scopes = [
            scope.name
            for scope in ledger[claim].scopes
            if not cohort
            or (scope.cohorts[:1] == (cohort,) and scope.test_set == test_set and scope.n == n)
        ]
        settings = {scope["scope"]: scope for scope in known[claim]["scopes"]}
        if scopes and scopes[0] in settings:
            found.append(_badge(known[claim], settings[scopes[0]], href))
    return found


def _badge(verdict: Mapping[str, Any], scope: Mapping[str, Any], href: str) -> Badge:
    number_ = f"{verdict['measure']} {measured(scope)}" if verdict["measure"] else ""
    late = "; post hoc" if scope["post_hoc"] else ""
    return Badge(
        verdict=scope["verdict"],
        text=f"{verdict['id']} {scope['verdict']}",
        title=f"{verdict['title']}. {scope['scope']}: {number_}{late}",
        href=href,
    )


def of_paper(stored: Sequence[Mapping[str, Any]], paper: str) -> list[Mapping[str, Any]]:
    """The stored verdicts of one paper, ``"A"`` or ``"B"``."""
    return [verdict for verdict in stored if verdict["paper"] == paper]


def claim_table(stored: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a claim, judged in its own setting.

    Returns
    -------
    DataFrame
        ``claim, title, verdict, measure, measured, rule first, why``.
    """
    own = [{**verdict, "scopes": verdict["scopes"][:1]} for verdict in stored]
    return scope_table(own).drop(columns="setting")


def scope_table(stored: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a claim and setting, for the verdict page.

    Returns
    -------
    DataFrame
        ``claim, title, setting, verdict, measure, measured, rule first, why``.
    """
    return pd.DataFrame(
        [
            {
                "claim": verdict["id"],
                "title": verdict["title"],
                "setting": scope["scope"],
                "verdict": scope["verdict"],
                "measure": verdict["measure"],
                "measured": measured(scope),
                "rule first": {True: "no: post hoc", False: "yes", None: "–"}[scope["post_hoc"]],
                "why": scope["reason"],
            }
            for verdict in stored
            for scope in verdict["scopes"]
        ]
    )


def cell_table(stored: Sequence[Mapping[str, Any]], *claims: str) -> pd.DataFrame:
    """One row a published cell of the tables that claims judge cell by cell, in their own setting.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claims
        Claim ids, such as ``"B4"``; all without any.

    Returns
    -------
    DataFrame
        ``claim, variant, group, published, marked, gain, p_value, verdict``: `published` in points
        of spBLEU against the control, `gain` in per cent of the control's loss, with its interval.
        Empty where there are no rows yet.
    """
    columns = ["claim", "variant", "group", "published", "marked", "gain", "p_value", "verdict"]
    rows = []
    for verdict in stored:
        if claims and verdict["id"] not in claims:
            continue
        for name, unit in verdict["scopes"][0]["units"].items():
            variant, bar, group = name.partition(" | ")
            found = unit["measures"]
            if not bar:
                continue
            gain = {"measured": found["gain"]["value"], "interval": found["gain"]["interval"]}
            rows.append(
                {
                    "claim": verdict["id"],
                    "variant": variant,
                    "group": group,
                    "published": found["published"]["value"],
                    "marked": bool(found["marked"]["value"]),
                    "gain": measured(gain),
                    "p_value": number(found["p_value"]["value"]),
                    "verdict": unit["verdict"],
                }
            )
    return pd.DataFrame(rows, columns=columns)


def rules(claims: Sequence[Claim]) -> str:
    """All pass rules as Markdown, a section a claim."""
    sections = []
    for claim in claims:
        text = f"### {claim.id}. {claim.title}\n\n{claim.statement}\n\n{_steps(claim.rule)}\n"
        if claim.cells:
            text += f"\nEach published cell by itself:\n\n{_steps(claim.cells)}\n"
        sections.append(text)
    return "\n".join(sections)


def _steps(rule: Sequence[Step]) -> str:
    return "\n".join(f"{i}. {step}" for i, step in enumerate(rule, start=1))
