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
from mnmt_repro.papers.charts.measures import limit_written, measured, named
from mnmt_repro.papers.charts.provenance import counted
from mnmt_repro.papers.charts.template import render
from mnmt_repro.papers.charts.theme import plain
from mnmt_repro.papers.charts.verdicts import (
    VERDICTS_PAGE,
    badge,
    claims_by_id,
    effect_of,
    headline,
    how_sure,
    reason,
    shown_verdict,
)
from mnmt_repro.papers.claims.schema import REPRODUCED

PAPER_LINKS = {
    "A": "https://arxiv.org/abs/2302.09650",
    "B": "https://aclanthology.org/2023.eacl-main.111/",
}
"""Where each paper can be read."""
LIMITS = "what-our-runs-cannot-say"
"""The section on the page of verdicts that lists them all."""
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
        Verdict to sentence, as Markdown. ``{value}`` and ``{limit}`` stand for the numbers of the
        claim's headline with their units, the value with as many digits as in the lines below. A
        verdict without a sentence gets the title of the claim and the verdict.

    Raises
    ------
    InputError
        When the claim has no stored verdict, or a sentence has more than `MOST_WORDS` words.
    """
    row, of = headline(stored, claim), claims_by_id()[claim]
    value = measured(row["measure"], row, claim).partition(" (")[0]
    numbers = {
        "value": value.removeprefix("+"),  # whose direction the sentence says in words
        "limit": limit_written(row["measure"], of),
    }
    every = {verdict: sentence(text.format(**numbers)) for verdict, text in sentences.items()}
    return every.get(row["verdict"], sentence(f"{of.title}: {shown_verdict(row)}."))


def sentence(text: str) -> Markdown:
    """The sentence that answers a page's question.

    Raises
    ------
    InputError
        When it has more than `MOST_WORDS` words.
    """
    if len(text.split()) > MOST_WORDS:
        raise InputError(f"write at most {MOST_WORDS} words: {text}")
    return Markdown(f'<p class="mnmt-says">{typeset(text)}</p>')


def also_says(stored: pd.DataFrame, claim: str) -> str:
    """What the paper says in a claim beside a page's main one, and what we find: for a caption.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    row, title = headline(stored, claim), claims_by_id()[claim].title
    title = title if title[1:2].isupper() else title[0].lower() + title[1:]
    effect = effect_of(row)
    judged = f"Our {effect}, {row['verdict']}"
    ours = effect[0].upper() + effect[1:] if pd.isna(row["value"]) else judged
    return f"The paper: {title}. {ours} ({claim}).{_earlier(stored, row)}"


def three_lines(
    stored: pd.DataFrame, claim: str, *others: str, drawn: str | None = None, **caution: str
) -> Markdown:
    """What the paper claims, what we measure, and how sure it is; then the page's other claims.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claim, others
        The page's main claim, and further ones, a row each: the paper's sentence beside our effect.
    drawn
        The cohort that the page draws, empty for own runs. A sentence is added where the page's
        default cohort is another, since the verdicts are those of our runs.
    **caution
        Claim to sentences without which its verdict would be misread; they stand beside its badge.
        By default a reproduced claim has its note there.

    Raises
    ------
    InputError
        When a claim has no stored verdict.
    """
    row, letter = headline(stored, claim), claim[0]
    verdicts = {name: headline(stored, name)["verdict"] for name in (claim, *others)}
    held = [name for name, verdict in verdicts.items() if verdict == REPRODUCED]
    caution = {name: claims_by_id()[name].note for name in held} | caution
    where = plain(row["setting"])
    where += f"; {row['kind']}" * (row["kind"] not in where)
    where += f", models of {row['sizes']} parameters" * bool(row["sizes"])
    if pd.notna(row["value"]):
        where += f", a median of {counted(int(row['seeds']), 'seed')} a cell"
    ours = f"{_ours(row)} ({where})."
    if pd.isna(row["value"]):
        ours = ours.replace(f": {reason(row)}", "")  # which the last line says
        if claims_by_id()[claim].headline.tier == "settled":
            ours += f" The charts show earlier, shorter runs, too.{_earlier(stored, row)}"
    lines = {
        f"[Paper {letter}]({PAPER_LINKS[letter]})": escape(_claimed(claim), quote=False),
        "We": ours[0].upper() + ours[1:],
        f'<a href="{VERDICTS_PAGE}#{LIMITS}">How sure</a>': how_sure(stored, claim)
        + f" {badge(stored, claim).to_html()} "
        + typeset(escape(caution.get(claim, ""), quote=False)),
    }
    text = "\n".join(f"- **{label}.** {line}" for label, line in lines.items())
    rows = []
    for name in others:
        of = headline(stored, name)
        effect = f"{_ours(of)}.{_earlier(stored, of)}"
        says_more = typeset(caution.get(name, ""))
        rows.append((badge(stored, name), typeset(_claimed(name)), effect, says_more))
    also = f"\n\n{render('also', rows=rows)}" * bool(rows)
    if drawn not in (None, "conlang-steady"):  # which pages draw by default
        also += "\n\nThe sentence above and the verdicts are of our runs, not of those drawn here."
    return Markdown(f'<div class="mnmt-lines">\n\n{text}{also}\n\n</div>')


def _ours(row: pd.Series) -> str:
    """Our effect, and the limit by which it is judged."""
    return f"{effect_of(row)}; limit: {limit_written(row['measure'], claims_by_id()[row['claim']])}"


def _earlier(stored: pd.DataFrame, row: pd.Series) -> str:
    """An effect of Paper A in runs that judge nothing, where the runs that do are not trained."""
    claim, measure = row["claim"], row["measure"]
    rows = stored.query("claim == @claim and measure == @measure and low == low")
    rows = rows[rows["role"].str.startswith("sensitivity")]
    if pd.notna(row["value"]) or rows.empty or claim[0] != "A":
        return ""
    number = f"{named(measure, claim)}: {measured(measure, rows.iloc[0], claim)}"
    return typeset(f" Earlier runs, not judged ({plain(rows.iloc[0]['setting'])}), {number}.")


def _claimed(claim: str) -> str:
    """What a paper says, which may name a piece such as <unk>, and where."""
    of = claims_by_id()[claim]
    return f"{of.statement} ({of.where})"
