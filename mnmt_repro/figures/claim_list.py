"""The list of all claims on the page of verdicts: filters, a row a claim, its rule folded below.

Each row has the anchor to which the claim's badges lead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mnmt_repro.analysis.upgrades import MODEL_CHANGES
from mnmt_repro.claims.schema import NO_ROWS, UNDECIDED, Claim, RuleStep
from mnmt_repro.claims.standing import (
    EXTRAPOLATION,
    NEITHER,
    NOISE,
    NOT_SIMULATED,
    PUBLISHED_NUMBERS,
    REGIME,
)
from mnmt_repro.figures.badge import Badge, said, told, typeset
from mnmt_repro.figures.measures import condition, measured, named, printed
from mnmt_repro.figures.template import Html, render
from mnmt_repro.figures.theme import plain
from mnmt_repro.figures.verdicts import anchor, scope_table

_SAYS = {"for": "Evidence for it", "against": "Evidence against it", "nothing": "Nothing"}
_MISSING = {
    EXTRAPOLATION: "runs in the range that it reads",
    REGIME: "runs that train to the end",
    NOISE: "more seeds",
    NEITHER: "an outcome that the rule calls met or failed",
    NOT_SIMULATED: "a simulation of what chance does",
}
FILTERS = ("paper", "verdict", "evidence", "rule")


def claim_list(stored: Sequence[Mapping[str, Any]], claims: Sequence[Claim]) -> Html:
    """List stored verdicts (`claims.read_stored`) with the entries of their claims, and filters.

    Without a script all claims are shown.
    """
    by_id = {claim.id: claim for claim in claims}
    html = render(
        "claim_list",
        filters={name: dict.fromkeys(_facts(each)[name] for each in stored) for name in FILTERS},
        rows=[_row(verdict, by_id[verdict["id"]]) for verdict in stored],
        settings=scope_table(stored).to_csv(index=False, lineterminator="\n"),
        listed=json.dumps(list(stored), indent=1, ensure_ascii=False),
    )
    words = "\n".join(f"{v['id']}  {v['verdict']:16}  {v['title']}" for v in stored)
    return Html(html=html, words=words)


def _row(verdict: Mapping[str, Any], claim: Claim) -> dict[str, Any]:
    measure = verdict["measure"]
    known = measure and verdict["measured"] is not None
    missing = _missing(verdict, claim)
    decided = next(scope for scope in claim.scopes if scope.name == verdict["decided_in"])
    worlds = claim.in_scope(decided).worlds if verdict["attainability"] is not None else None
    own = {f"The rule in “{plain(scope.name)}”": scope.rule for scope in claim.scopes}
    rules = {f"The rule in “{plain(decided.name)}”, which decided": decided.rule}
    general = "The rule of other settings" if decided.rule else "The rule"
    rules |= {general: claim.rule, "The rule of each published cell": claim.cells}
    rules |= {title: rule for title, rule in own.items() if rule is not decided.rule}
    return {
        "claim": claim,
        "verdict": verdict,
        "anchor": anchor(claim.id),
        "facts": _facts(verdict),
        "printed": [printed(item) for item in claim.published],
        "ours": f"{named(measure, claim.id)}: {typeset(measured(measure, verdict, claim.id))}"
        if known
        else "–",
        "badge": Badge(
            verdict=verdict["verdict"],
            text=told(verdict),
            href=f"{claim.page}.html" if claim.page else "",
        ),
        "where": _where(verdict),
        "beside": f"missing: {missing}" if missing else _chance(verdict),
        "rules": {title: _steps(rule, claim.id) for title, rule in rules.items() if rule},
        "simulated": worlds.described() if worlds else {},  # what is true of simulated data
        "says": f"{_SAYS[verdict['says']]}, because {verdict['because']}.",
        "why": claim.explained.get(verdict["raw_verdict"]),
        "settings": [
            _setting(scope, measure, claim.id)
            for scope in verdict["scopes"]
            if scope["verdict"] != NO_ROWS
        ],
    }


def _facts(verdict: Mapping[str, Any]) -> dict[str, str]:
    """What the filters choose by."""
    return {
        "paper": f"Paper {verdict['paper']}",
        "verdict": said(verdict["verdict"]),
        "evidence": verdict["kind"],
        "rule": {True: "post hoc", False: "before the runs", None: "–"}[verdict["post_hoc"]],
    }


def _where(verdict: Mapping[str, Any]) -> str:
    """What decided: the kind of evidence, and the runs or the model where this alone misleads."""
    if verdict["kind"] == PUBLISHED_NUMBERS:
        return f"{verdict['kind']}: {verdict['decided_in']}"
    scope = next(each for each in verdict["scopes"] if each["scope"] == verdict["decided_in"])
    change = MODEL_CHANGES.get(scope.get("decided_by") or "")
    return f"{verdict['kind']}, {change} model" if change else str(verdict["kind"])


def _missing(verdict: Mapping[str, Any], claim: Claim) -> str:
    """What would decide an undecided claim; empty for the others."""
    if verdict["verdict"] == UNDECIDED:
        return claim.missing or _MISSING[verdict["undecided"]]
    pending = [each["scope"] for each in verdict["scopes"] if each["verdict"] == NO_ROWS]
    return f"runs of “{plain(pending[0])}”" if verdict["verdict"] == NO_ROWS else ""


def _chance(verdict: Mapping[str, Any]) -> str:
    """How often the rule passes or fails in simulated data, where this bears on the verdict."""
    right, failed, passed = (
        f"{share:.0%}" if (share := verdict[name]) is not None else ""
        for name in ("attainability", "false_fail", "false_pass")
    )
    if not right:
        return ""
    if verdict["verdict"] == "reproduced":
        return f"if wrong, reproduced in {passed}"
    if verdict["verdict"] == "not reproduced":
        return f"if right, fails in {failed}"
    return f"if right, reproduced in {right}; if wrong, in {passed}"


def _steps(rule: Sequence[RuleStep], claim: str) -> list[tuple[str, str]]:
    """Verdict and conditions of each step."""
    return [
        (step.verdict, " and ".join(condition(test, claim) for test in step.when) or "otherwise")
        for step in rule
    ]


def _setting(scope: Mapping[str, Any], measure: str, claim: str) -> dict[str, str]:
    """A row of the table of settings."""
    shares = {
        "reproduced if right": scope["attainability"],
        "not reproduced if right": scope["false_fail"],
        "reproduced if wrong": scope["false_pass"],
    }
    return {
        "setting": plain(scope["scope"]),
        "evidence": scope["kind"],
        "ours": typeset(measured(measure, scope, claim)) if measure else "–",
        "by the rule": said(scope["raw_verdict"]),
        "verdict": told(scope),
        **{title: "–" if share is None else f"{share:.0%}" for title, share in shares.items()},
    }
