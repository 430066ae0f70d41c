"""The list of all claims on the page of verdicts: filters, a row a claim, its rule folded below.

Each row has the anchor to which the claim's badges lead.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnmt_repro.claims import NO_ROWS, Claim, Step
from mnmt_repro.figures.badge import Badge, said
from mnmt_repro.figures.display import download_link, labelled_cells
from mnmt_repro.figures.measures import condition, measured, named, printed
from mnmt_repro.figures.verdicts import anchor, scope_table

FILTERS = ("paper", "verdict", "evidence")
_HEADS = ("claim", "paper", "ours", "verdict")
_SAYS = {"for": "Evidence for it", "against": "Evidence against it", "nothing": "Nothing"}


@dataclass(frozen=True, kw_only=True)
class ClaimList:
    """What the page displays; see `claim_list`."""

    stored: Sequence[Mapping[str, Any]]
    claims: Mapping[str, Claim]
    to_book: str

    def to_html(self) -> str:
        """Write the filters and the table; without a script all claims are shown."""
        rows = "\n".join(self._row(verdict) for verdict in self.stored)
        heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
        listed = json.dumps(list(self.stored), indent=1, ensure_ascii=False)
        settings = scope_table(self.stored).to_csv(index=False, lineterminator="\n")
        files = [
            download_link("verdicts.csv", "text/csv", settings, "All settings (CSV)"),
            download_link("verdicts.json", "application/json", listed, "All numbers (JSON)"),
        ]
        return (
            '<section class="mnmt-figure mnmt-claims mathjax_ignore">\n'
            f"{self._filters()}\n<table>\n"
            f"<thead><tr>{heads}</tr></thead>\n{rows}\n</table>\n{' · '.join(files)}</section>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        plain = "\n".join(f"{v['id']}  {v['verdict']:16}  {v['title']}" for v in self.stored)
        return {"text/html": self.to_html(), "text/plain": plain}

    def _filters(self) -> str:
        values = {name: dict.fromkeys(_facts(v)[name] for v in self.stored) for name in FILTERS}
        chosen = "".join(
            f'<label>{name} <select data-filter="{name}"><option value="">all</option>'
            + "".join(f"<option>{html.escape(value)}</option>" for value in values[name])
            + "</select></label>\n"
            for name in FILTERS
        )
        return f'<div class="mnmt-filters" hidden>\n{chosen}<output></output></div>'

    def _row(self, verdict: Mapping[str, Any]) -> str:
        claim = self.claims[verdict["id"]]
        facts = " ".join(f'data-{k}="{html.escape(v)}"' for k, v in _facts(verdict).items())
        late = ", post hoc" if verdict["post_hoc"] else ""
        badge = Badge(
            verdict=verdict["verdict"],
            text=said(verdict["verdict"]) + late,
            href=f"{self.to_book}{claim.page}.html" if claim.page else "",
        )
        texts = (
            f"<b>{verdict['id']}</b> {html.escape(verdict['title'])}",
            html.escape(printed(claim.published[0])),
            html.escape(_ours(verdict)),
            badge.to_html(),
        )
        cells = labelled_cells(_HEADS, texts)
        folded = (
            f"<details><summary>Rule and evidence of {verdict['id']}</summary>"
            f"{self._details(claim, verdict)}</details>"
        )
        return (
            f'<tbody id="{anchor(verdict["id"])}" {facts}>\n<tr>{cells}</tr>\n'
            f'<tr><td colspan="4">{folded}</td></tr>\n</tbody>'
        )

    def _details(self, claim: Claim, verdict: Mapping[str, Any]) -> str:
        parts = [
            ("The paper", f"{_flat(claim.statement)} ({claim.where})"),
            ("It prints", "; ".join(printed(item) for item in claim.published)),
            ("We measure", _flat(claim.description)),
        ]
        text = "".join(_paragraph(*part) for part in parts)
        text += _rule("The rule", claim.rule, claim.id)
        if claim.cells:
            text += _rule("The rule of each published cell", claim.cells, claim.id)
        told = f"{_SAYS[verdict['says']]}, because {verdict['because']}."
        text += _paragraph("What this says of the claim", told)
        if verdict["raw_verdict"] in claim.explained:
            text += _paragraph("Why", _flat(claim.explained[verdict["raw_verdict"]]))
        text += "".join(_paragraph("Revised", _flat(change)) for change in claim.revised)
        return text + _settings(claim, verdict)


def claim_list(
    stored: Sequence[Mapping[str, Any]], claims: Sequence[Claim], *, to_book: str = ""
) -> ClaimList:
    """List stored verdicts (`claims.read_stored`) with the entries of their claims.

    Parameters
    ----------
    to_book
        From the page to the book's top.
    """
    return ClaimList(stored=stored, claims={claim.id: claim for claim in claims}, to_book=to_book)


def _facts(verdict: Mapping[str, Any]) -> dict[str, str]:
    """What the filters choose by."""
    return {
        "paper": f"Paper {verdict['paper']}",
        "verdict": said(verdict["verdict"]),
        "evidence": verdict["kind"],
    }


def _ours(verdict: Mapping[str, Any]) -> str:
    if not verdict["measure"] or verdict["measured"] is None:
        return "–"
    number = measured(verdict["measure"], verdict, verdict["id"])
    return f"{named(verdict['measure'], verdict['id'])}: {number}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _paragraph(label: str, text: str) -> str:
    return f"<p><b>{label}.</b> {html.escape(text)}</p>"


def _rule(title: str, steps: Sequence[Step], claim: str) -> str:
    listed = "".join(
        f"<li><b>{html.escape(step.verdict)}</b>: "
        + html.escape(" and ".join(condition(test, claim) for test in step.when) or "otherwise")
        + "</li>"
        for step in steps
    )
    said_first = _paragraph(title, "The first line whose conditions all hold decides.")
    return f"{said_first}<ol>{listed}</ol>"


def _settings(claim: Claim, verdict: Mapping[str, Any]) -> str:
    """A row a setting with runs: evidence, what the rule alone says, and how it could come out."""
    heads = (
        "setting",
        "evidence",
        "ours",
        "by the rule",
        "verdict",
        "met if right",
        "met if wrong",
    )
    rows = []
    for scope in verdict["scopes"]:
        if scope["verdict"] == NO_ROWS:
            continue
        right, wrong = (
            "–" if scope[name] is None else f"{scope[name]:.0%}"
            for name in ("attainability", "false_pass")
        )
        ours = measured(verdict["measure"], scope, claim.id) if verdict["measure"] else "–"
        found = said(scope["verdict"]) + ", post hoc" * bool(scope["post_hoc"])
        raw = said(scope["raw_verdict"])
        cells = (scope["scope"], scope["kind"], ours, raw, found, right, wrong)
        rows.append(f"<tr>{labelled_cells(heads, map(html.escape, cells))}</tr>")
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in heads)
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="mnmt-scroll"><table class="mnmt-settings">{table}</table></div>'
