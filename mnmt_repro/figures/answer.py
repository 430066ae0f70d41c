"""The box that opens a results page: the paper's claim, our answer, its reasons and limits.

`answer` makes the box. It ends with the verdicts of the page, each of which links to the entry of
its claim on the page of verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.report import stored_evidence
from mnmt_repro.claims.standing import DECIDED
from mnmt_repro.errors import InputError
from mnmt_repro.figures.badge import Badge, typeset
from mnmt_repro.figures.template import render
from mnmt_repro.figures.verdicts import badges, setting_of
from mnmt_repro.repository import ROOT

PAPER_LINKS = {
    "A": "https://arxiv.org/abs/2302.09650",
    "B": "https://aclanthology.org/2023.eacl-main.111/",
}
"""Where each paper can be read."""
MOST_WORDS = 100
"""In a box, labels and badges aside."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a page displays first; see `answer`."""

    lines: Mapping[str, str]
    badges: tuple[Badge, ...]

    def to_markdown(self) -> str:
        """Write the box; of the claims after the first, those without a decision are folded."""
        said = "\n\n".join(f"**{label}.** {typeset(text)}" for label, text in self.lines.items())
        rest = [badge for badge in self.badges[1:] if badge.verdict not in DECIDED]
        shown = [badge for badge in self.badges if badge not in rest]
        signs = render("verdicts", shown=shown, rest=rest)
        return f'<div class="mnmt-answer">\n\n{said}\n\n{signs}\n</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        plain = "\n".join(f"{label}. {text}" for label, text in self.lines.items())
        signs = "\n".join(f"{badge.label}: {badge.about}" for badge in self.badges)
        return {"text/markdown": self.to_markdown(), "text/plain": f"{plain}\n{signs}"}


def answer(
    stored: Sequence[Mapping[str, Any]],
    *claims: str,
    paper: str,
    find: str,
    differs: str = "",
    limits: str = "",
    sure: str = "",
    cohort: str | None = None,
    tier: str = "mini",
) -> Answer:
    """Answer a page's question in a few lines, with the verdicts of its claims.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claims
        Claim ids, such as ``"A2"``, all of one paper; the first one is the page's main claim.
    paper, find, differs, limits, sure
        The lines, as Markdown: what the paper claims, what we find, why that differs, what it does
        not cover, and how sure it is. Without `differs` or `limits` there is no such line. Without
        `sure` it is `how_sure` of the first claim in the setting.
    cohort, tier
        The setting whose verdicts are shown, as for `verdicts.setting_of`. The rules are applied to
        the rows in the store; a badge says where they give another outcome than the stored verdict.

    Raises
    ------
    InputError
        When a claim has no stored verdict, or the box is longer than `MOST_WORDS`.
    """
    if not claims:
        raise InputError("answer: name at least one claim, such as 'A2'")
    letter = claims[0][0]
    lines = {f"[Paper {letter}]({PAPER_LINKS[letter]})": paper, "We find": find}
    lines |= {k: v for k, v in {"Why it differs": differs, "Limits": limits}.items() if v}
    lines["How sure"] = sure or how_sure(stored, claims[0], cohort, tier)
    words = sum(len(text.split()) for text in lines.values())
    if words > MOST_WORDS:
        raise InputError(f"the answer has {words} words; write at most {MOST_WORDS}")
    found = badges(stored, *claims, cohort=cohort, tier=tier, evidence=_rows())
    return Answer(lines=lines, badges=tuple(found))


@cache
def _rows() -> Evidence:
    """Rows in the store that pages read, once a page."""
    return stored_evidence(ROOT)


def how_sure(
    stored: Sequence[Mapping[str, Any]], claim: str, cohort: str | None = None, tier: str = "mini"
) -> str:
    """Say what a claim's verdict rests on: its kind of evidence, and how its rule could come out.

    Parameters
    ----------
    cohort, tier
        The setting whose verdict is meant, as for `verdicts.setting_of`.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    verdict = setting_of(stored, claim, cohort, tier)
    if verdict is None:
        return f"{claim} was not judged on these runs."
    where = f"On {verdict['kind']}"
    if verdict["undecided"]:
        return f"{where}, {verdict['because']} ({claim})."
    if verdict["attainability"] is None:
        return f"{where}, by a rule without chance."
    simulated = f"{where}. In simulations, a right {claim}"
    right, failed, passed = (
        f"{verdict[name]:.0%}" for name in ("attainability", "false_fail", "false_pass")
    )
    if verdict["verdict"] == "not reproduced":
        return f"{simulated} fails its rule in {failed}."
    if verdict["verdict"] == "direction only":
        return f"{simulated} passes in full in {right}."
    return f"{simulated} passes its rule in {right}, and a wrong one in {passed}."
