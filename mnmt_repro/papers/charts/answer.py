"""The box that opens a results page: the paper's claim, our answer, its reasons and limits.

`answer` makes the box. It ends with the verdicts of the page, each of which links to the entry of
its claim on the page of verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import Badge, typeset
from mnmt_repro.papers.charts.template import render
from mnmt_repro.papers.charts.verdicts import badge, how_sure
from mnmt_repro.papers.claims.schema import NOT_REPRODUCED, REPRODUCED

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
        decided = (REPRODUCED, NOT_REPRODUCED)
        rest = [each for each in self.badges[1:] if each.verdict not in decided]
        shown = [each for each in self.badges if each not in rest]
        signs = render("verdicts", shown=shown, rest=rest)
        return f'<div class="mnmt-answer">\n\n{said}\n\n{signs}\n</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        plain = "\n".join(f"{label}. {text}" for label, text in self.lines.items())
        signs = "\n".join(f"{each.label}: {each.about}" for each in self.badges)
        return {"text/markdown": self.to_markdown(), "text/plain": f"{plain}\n{signs}"}


def answer(
    stored: pd.DataFrame,
    *claims: str,
    paper: str,
    find: str,
    differs: str = "",
    limits: str = "",
    sure: str = "",
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
        `sure` it is `verdicts.how_sure` of the first claim.

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
    lines["How sure"] = sure or how_sure(stored, claims[0])
    words = sum(len(text.split()) for text in lines.values())
    if words > MOST_WORDS:
        raise InputError(f"the answer has {words} words; write at most {MOST_WORDS}")
    return Answer(lines=lines, badges=tuple(badge(stored, claim) for claim in claims))
