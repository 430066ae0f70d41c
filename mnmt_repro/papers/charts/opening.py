"""How a results page opens: one sentence that answers it, and below the chart three lines.

Both read the stored verdicts, so that no page types a number or an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd
from IPython.display import Markdown

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import typeset
from mnmt_repro.papers.charts.measures import limit_written, measured, named, written
from mnmt_repro.papers.charts.theme import plain
from mnmt_repro.papers.charts.verdicts import badge, claims_by_id, headline, how_sure

PAPER_LINKS = {
    "A": "https://arxiv.org/abs/2302.09650",
    "B": "https://aclanthology.org/2023.eacl-main.111/",
}
"""Where each paper can be read."""
MOST_WORDS = 25
"""Of the sentence that answers a page."""


def says(stored: pd.DataFrame, claim: str, sentences: Mapping[str, str]) -> Markdown:
    """The sentence that answers a page's question, chosen by the verdict of its claim.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claim
        Such as ``"A6"``.
    sentences
        Verdict to sentence, as Markdown. ``{value}``, ``{low}``, ``{high}`` and ``{limit}`` stand
        for the numbers of the claim's headline with their units. A verdict without a sentence gets
        the title of the claim and the verdict.

    Raises
    ------
    InputError
        When the claim has no stored verdict, or a sentence has more than `MOST_WORDS` words.
    """
    for sentence in sentences.values():
        if len(sentence.split()) > MOST_WORDS:
            raise InputError(f"{claim}: write at most {MOST_WORDS} words: {sentence}")
    row, of = headline(stored, claim), claims_by_id()[claim]
    sentence = sentences.get(row["verdict"], f"{of.title}: {row['verdict']} by our runs.")
    numbers = {  # whose direction the sentence says in words
        end: written(row["measure"], row[end], claim).removeprefix("+")
        for end in ("value", "low", "high")
    }
    text = sentence.format(**numbers, limit=limit_written(row["measure"], of))
    return Markdown(f'<p class="mnmt-says">{typeset(text)}</p>')


def three_lines(stored: pd.DataFrame, claim: str, *others: str, paper: str = "") -> Markdown:
    """What the paper claims, what we measure, and how sure it is; then the badges of the page.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claim, others
        The page's main claim, and further ones that only get their badges.
    paper
        What the paper claims, in place of the claim's statement.

    Raises
    ------
    InputError
        When a claim has no stored verdict.
    """
    row, of = headline(stored, claim), claims_by_id()[claim]
    letter = claim[0]
    effect = f"{named(row['measure'], claim)}: {measured(row['measure'], row, claim)}"
    if pd.isna(row["value"]):
        effect = row["why"] or "no rows yet"
    where = f"{plain(row['setting'])}; {row['kind']}"
    if row.get("sizes"):
        where += f", models of {row['sizes']} parameters"
    claimed = escape(paper or of.statement, quote=False)  # which may name a piece such as <unk>
    lines = {
        f"[Paper {letter}]({PAPER_LINKS[letter]})": f"{claimed} ({of.where})",
        "We": typeset(f"{effect} ({where}, {row['seeds']:.0f} seeds)."),
        "How sure": f"{how_sure(stored, claim)} {badge(stored, claim).to_html()}",
    }
    text = "\n".join(f"- **{label}.** {line}" for label, line in lines.items())
    beside = " ".join(badge(stored, each).to_html() for each in others)
    also = f"\n\nAlso on this page: {beside}" * bool(beside)
    return Markdown(f'<div class="mnmt-lines">\n\n{text}{also}\n\n</div>')
