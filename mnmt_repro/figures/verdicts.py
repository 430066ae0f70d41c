"""Verdicts on pages: the badge beside a figure, and the table of all claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.variants import Variants
from mnmt_repro.claims import load_claims
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.judging import judge
from mnmt_repro.claims.report import stored_verdict
from mnmt_repro.claims.schema import NO_ROWS, OUT_OF_REACH, UNDECIDED, Claim
from mnmt_repro.claims.standing import DECIDED, EVIDENCE_KINDS, IN_SHORT
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.figures.badge import Badge, said
from mnmt_repro.figures.measures import measured, named
from mnmt_repro.figures.theme import plain
from mnmt_repro.repository import ROOT

VERDICTS_PAGE = "../verdicts.html"  # from a page of results
SOURCE = "data/claims/verdicts.json, written from the stored runs by mnmt-repro verify --write."


@cache
def _claims_by_id() -> dict[str, Claim]:
    return {claim.id: claim for claim in load_claims(ROOT / "data" / "claims")}


def _number(value: float | None) -> str:
    """A measured number as pages print it: three significant digits, a dash where there is none.

    >>> _number(0.99342), _number(None)
    ('0.993', '–')
    """
    return "–" if value is None else f"{value:.3g}"


def _measured(scope: Mapping[str, Any]) -> str:
    """The deciding number of a verdict with its interval, where there is one."""
    text = _number(scope["measured"])
    interval = scope["interval"]
    if interval is None or scope["measured"] is None:
        return text
    return f"{text} ({_number(interval[0])} to {_number(interval[1])})"


def badges(
    stored: Sequence[Mapping[str, Any]],
    *claims: str,
    cohort: str | None,
    tier: str,
    evidence: Evidence,
) -> list[Badge]:
    """Badges of the named claims, as stored in `data/claims/verdicts.json` or as rows give them.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claims
        Claim ids, such as ``"A2"``.
    cohort, tier
        As for `setting_of`; a claim that was not examined in the setting gets no badge.
    evidence
        Rows to which the rules are applied anew. Where a rule gives on them what it gave for the
        stored verdict, the badge is the stored one; elsewhere it names both outcomes.

    Raises
    ------
    InputError
        When a claim has no stored verdict.
    """
    found = []
    for claim in claims:
        if setting := setting_of(stored, claim, cohort, tier):
            badge = _badge(stored_verdict(stored, claim), setting)
            found.append(_as_computed(badge, _claims_by_id()[claim], setting, evidence))
    return found


def setting_of(
    stored: Sequence[Mapping[str, Any]], claim: str, cohort: str | None, tier: str
) -> Mapping[str, Any] | None:
    """The verdict of a claim in one setting; None where it was not examined in it.

    Parameters
    ----------
    cohort, tier
        The setting of a page, in-domain and by parameters without embeddings. None is the
        setting that decided; ``""`` are runs of no declared cohort, such as a user's own.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    verdict = stored_verdict(stored, claim)
    wanted = [
        scope.name
        for scope in _claims_by_id()[claim].scopes
        if (scope.cohorts[:1], scope.test_set, scope.n, scope.tier)
        == ((cohort,), "indomain", "n_non_embedding", tier)
    ]
    name = verdict["decided_in"] if cohort is None else next(iter(wanted), "")
    return next((each for each in verdict["scopes"] if each["scope"] == name), None)


def limits(stored: Sequence[Mapping[str, Any]], claim: str, measure: str) -> tuple[float, ...]:
    """What the rule of the deciding setting compares a measure with, in the order of its steps.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    ruled = _claims_by_id()[claim]
    decided = stored_verdict(stored, claim)["decided_in"]
    scope = next((each for each in ruled.scopes if each.name == decided), ruled.scopes[0])
    steps = ruled.in_scope(scope).rule
    return tuple(each.value for step in steps for each in step.when if each.measure == measure)


def _as_computed(
    badge: Badge, claim: Claim, stored: Mapping[str, Any], evidence: Evidence
) -> Badge:
    """The stored badge, or one that says what the claim's rule gives on other rows."""
    scope = next(scope for scope in claim.scopes if scope.name == stored["scope"])
    now, before = judge(claim, scope, evidence).verdict, stored["raw_verdict"]
    if now == before:
        return badge
    return replace(
        badge,
        verdict=now,
        text=f"{claim.id} by its rule {said(now)} on these rows; stored: {said(before)}",
        title=f"The rows of this page differ from those of the stored verdict. {badge.title}",
    )


def _of_pair(unit: str) -> str:
    """The pair that a number is of, where it is one.

    >>> _of_pair("eng-deu"), _of_pair("all"), _of_pair("Mt25-wide")
    (', English→German', '', '')
    """
    parts = unit.split("-")
    return f", {pair_name(unit)}" if len(parts) == 2 and all(map(str.islower, parts)) else ""


def _badge(verdict: Mapping[str, Any], scope: Mapping[str, Any]) -> Badge:
    measure, claim = verdict["measure"], verdict["id"]
    number_ = f"{named(measure, claim)}: {measured(measure, scope, claim)}" if measure else ""
    number_ += _of_pair(scope["decided_by"]) if number_ else ""
    why = f"; {scope['reason'].replace('_', ' ')}" if scope["reason"] else ""
    why += f"; {_undecided(scope)}" if scope["undecided"] else ""
    late = ", post hoc" if scope["post_hoc"] else ""
    here = " on these runs" if scope["verdict"] != verdict["verdict"] else ""
    return Badge(
        verdict=scope["verdict"],
        text=f"{verdict['id']} {said(scope['verdict'])}{here}{late}",
        title=f"{verdict['title']}. {plain(scope['scope'])}: {number_}{why}",
        href=f"{VERDICTS_PAGE}#{anchor(verdict['id'])}",
        about=verdict["title"],
    )


def anchor(claim: str) -> str:
    """Name of a claim's entry on the page of verdicts, in its address.

    >>> anchor("A6")
    'claim-a6'
    """
    return f"claim-{claim.lower()}"


def _undecided(scope: Mapping[str, Any]) -> str:
    """Why the outcome of a rule does not stand."""
    return f"the rule gives {scope['raw_verdict']}, but {scope['because']}"


def tally(stored: Sequence[Mapping[str, Any]]) -> list[Badge]:
    """How many claims have which verdict, a badge each, which leads to those claims.

    >>> [each.label for each in tally([{"verdict": "no rows yet"}, {"verdict": "reproduced"}])]
    ['✓ 1 reproduced', '… 1 not enough runs yet']
    """
    names = [verdict["verdict"] for verdict in stored]
    return [
        Badge(
            verdict=name,
            text=f"{names.count(name)} {said(name)}",
            href=f"verdicts.html?{urlencode({'verdict': said(name)})}",
        )
        for name in (*DECIDED, UNDECIDED, OUT_OF_REACH, NO_ROWS)
        if name in names
    ]


def count(stored: Sequence[Mapping[str, Any]]) -> str:
    """How many claims have which verdict, in words, and why the undecided ones are undecided.

    >>> count([{"id": "A8", "verdict": "undecided here", "undecided": "noise", "post_hoc": True}])
    'Of 1 claims: 1 undecided here (post hoc: A8). Undecided because of: too much noise (A8).'
    """
    told = []
    for badge in tally(stored):
        mine = (each for each in stored if each["verdict"] == badge.verdict)
        late = ", ".join(each["id"] for each in mine if each["post_hoc"])
        told.append(f"{badge.text} (post hoc: {late})" if late else badge.text)
    return f"Of {len(stored)} claims: {', '.join(told)}. {why_undecided(stored)}".strip()


def why_undecided(stored: Sequence[Mapping[str, Any]]) -> str:
    """Give each reason for which claims are undecided, and the claims."""
    reasons: dict[str, list[str]] = {}
    for each in stored:
        if each["verdict"] == UNDECIDED:
            reasons.setdefault(each["undecided"], []).append(each["id"])
    listed = ", ".join(f"{IN_SHORT[why]} ({', '.join(ids)})" for why, ids in reasons.items())
    return f"Undecided because of: {listed}." if listed else ""


def decided_by(stored: Sequence[Mapping[str, Any]]) -> str:
    """Which claims of Paper A each kind of evidence decides, or how many, and how many of Paper B.

    >>> kinds = {"A1": "real text", "A2": "generated languages", "B1": "real text"}
    >>> decided_by([{"id": i, "kind": k, "verdict": "reproduced"} for i, k in kinds.items()])
    'Decided on real text: A1, and 1 of Paper B; on generated languages: A2.'
    """
    told = []
    for kind in EVIDENCE_KINDS:
        ids = [v["id"] for v in stored if v["kind"] == kind and v["verdict"] in DECIDED]
        first = [claim for claim in ids if claim.startswith("A")]
        named_ = first if len(first) <= 3 else [f"{len(first)} of Paper A"]
        rest = [f"and {len(ids) - len(first)} of Paper B"] if len(ids) > len(first) else []
        told += [f"on {kind}: {', '.join(named_ + rest)}"] if ids else []
    return f"Decided {'; '.join(told)}." if told else ""


def why_not_reproduced(stored: Sequence[Mapping[str, Any]]) -> str:
    """List the claims that are not reproduced, and what we suspect behind each, as Markdown."""
    known = _claims_by_id()
    failed = [known[each["id"]] for each in stored if each["verdict"] == "not reproduced"]
    listed = "".join(
        f'\n- <a href="verdicts.html#{anchor(claim.id)}">{claim.id}</a> {claim.title}. '
        f"*{claim.suspected or 'We do not know why.'}*"
        for claim in failed
    )
    intro = "This is evidence against these claims at our size. What we know of the reason:"
    return listed and f"{intro}\n{listed}"


@framed(
    *("claim", "title", "setting", "evidence", "verdict", "by the rule", "measure", "measured"),
    *("decided by", "rule first", "why", "page"),
)
def scope_table(stored: Sequence[Mapping[str, Any]]) -> Rows:
    """One row a claim and setting: first the one that decided, then the others by kind of evidence.

    Returns
    -------
    DataFrame
        ``claim, title, setting, evidence, verdict, by the rule, measure, measured, decided by, rule
        first, why, page``: `by the rule` is the raw outcome; `why` says why it does not stand, what
        the rule asks for and was not found, then what we found out about it.
    """
    known = _claims_by_id()
    for verdict in stored:
        claim = known.get(verdict["id"])
        scopes = sorted(verdict["scopes"], key=lambda scope: EVIDENCE_KINDS.index(scope["kind"]))
        for scope in sorted(scopes, key=lambda scope: scope["scope"] != verdict["decided_in"]):
            own = scope["scope"] == verdict["decided_in"]
            found_out = claim.explained.get(scope["raw_verdict"], "") if claim and own else ""
            undecided = _undecided(scope).capitalize() if scope["undecided"] else ""
            why = [text.rstrip(".") for text in (undecided, scope["reason"], found_out) if text]
            yield {
                "claim": verdict["id"],
                "title": verdict["title"],
                "setting": scope["scope"],
                "evidence": scope["kind"],
                "verdict": scope["verdict"],
                "by the rule": scope["raw_verdict"],
                "measure": verdict["measure"],
                "measured": _measured(scope),
                "decided by": scope["decided_by"],
                "rule first": {True: "no: post hoc", False: "yes", None: "–"}[scope["post_hoc"]],
                "why": ". ".join(why),
                "page": claim.page if claim else "",
            }


@framed("claim", "variant", "group", "published", "marked", "gain", "p_value", "verdict")
def cell_table(
    stored: Sequence[Mapping[str, Any]],
    *claims: str,
    test_set: str = "indomain",
    tier: str = "mini",
) -> Rows:
    """One row a published cell of the tables that claims judge cell by cell.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claims
        Claim ids, such as ``"B4"``; all without any.
    test_set, tier
        The setting; a claim that was not examined in it has no rows.

    Returns
    -------
    DataFrame
        ``claim, variant, group, published, marked, gain, p_value, verdict``: `published` in points
        of spBLEU against the control, `gain` in per cent of the control's loss, with its interval.
        Empty where there are no rows yet.
    """
    known = _claims_by_id()
    for verdict in stored:
        if claims and verdict["id"] not in claims:
            continue
        settings = {
            scope.name
            for scope in known[verdict["id"]].scopes
            if (scope.test_set, scope.tier) == (test_set, tier)
        }
        mine = [
            scope
            for scope in verdict["scopes"]
            if scope["scope"] in settings and scope["verdict"] != NO_ROWS
        ]
        for name, unit in (mine[0]["units"] if mine else {}).items():
            variant, bar, group = name.partition(" | ")
            found = unit["measures"]
            if not bar:
                continue
            gain = {"measured": found["gain"]["value"], "interval": found["gain"]["interval"]}
            yield {
                "claim": verdict["id"],
                "variant": variant,
                "group": group,
                "published": found["published"]["value"],
                "marked": bool(found["marked"]["value"]),
                "gain": _measured(gain),
                "p_value": _number(found["p_value"]["value"]),
                "verdict": unit["verdict"],
            }


def cell_verdicts(
    stored: Sequence[Mapping[str, Any]], claims: Sequence[str], variants: Variants
) -> dict[tuple[str, str], str]:
    """Verdicts of `cell_table` in the setting of some variants, by variant and group."""
    if not claims:
        return {}
    table = cell_table(stored, *claims, test_set=variants.test_set, tier=variants.tier)
    return {(row["variant"], row["group"]): row["verdict"] for row in table.to_dict("records")}
