"""Paper B's 25 languages, theirs and ours: its Tables 2, 9, 10 and 11 (left).

A level of ours is by the paper's rule, after our sentence pairs are multiplied by one factor, such
that the original languages have as many in all as in the paper. So it tells how large a language is
beside the others, as theirs does.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, LEVELS
from mnmt_repro.papers.cohorts.software25_runs import available, kept_pairs
from mnmt_repro.papers.effects.audit.languages import resource_level
from mnmt_repro.papers.effects.audit.tables import grouping as printed_grouping
from mnmt_repro.papers.effects.framed import Rows, framed

TEXTS = ("paper", "all our text", "main condition", "groupings")
"""Whose sentence pairs: the paper's; ours; ours with the added languages cut to Table 9's share;
ours with all cut to it that some grouping adds or up-samples (Tables 7 and 8)."""
FACTOR = 5  # of up-sampling


def table9() -> pd.DataFrame:
    """Table 9 with the training pairs and resource levels of our corpus.

    Returns
    -------
    DataFrame
        ``language, name, family, script, group``; for each of `TEXTS` the sentence ``pairs`` with
        English and the ``level``.
    """
    printed = printed_grouping("Mt25")
    frame = printed[["name", "family", "script", "group"]].copy()
    here = available()
    cut = (here | kept_pairs("main"), here | kept_pairs("groupings"))
    counts = (printed["bitext"].to_dict(), here, *cut)
    pairs = pd.DataFrame(dict(zip(TEXTS, map(pd.Series, counts), strict=True)), frame.index)
    whole = pairs[frame["group"] == "original"].sum()
    for text in TEXTS:
        frame[f"pairs, {text}"] = pairs[text].astype(int)
    for text in TEXTS:
        alike = pairs[text] * whole[TEXTS[0]] / whole[text]
        frame[f"level, {text}"] = alike.map(resource_level)
    return frame.rename_axis("language").reset_index()


def skew(languages: pd.DataFrame) -> pd.DataFrame:
    """How unequal the languages are, in the paper and here.

    Parameters
    ----------
    languages
        From `table9`.

    Returns
    -------
    DataFrame
        ``quantity`` and a column for each of `TEXTS`.
    """
    added, theirs = languages["group"] == "added", languages[f"pairs, {TEXTS[0]}"]
    columns: dict[str, Mapping[str, float]] = {}
    for text in TEXTS:
        pairs, level = languages[f"pairs, {text}"], languages[f"level, {text}"]
        columns[text] = {
            "pairs of the original languages": pairs[~added].sum(),
            "pairs of the added languages": pairs[added].sum(),
            "added ones, % of all": 100 * pairs[added].sum() / pairs.sum(),
            "largest over smallest": pairs.max() / pairs.min(),
            "rank correlation with the paper's": pairs.corr(theirs, method="spearman"),
            **{f"languages of level {name}": (level == name).sum() for name in LEVELS},
        }
    return pd.DataFrame(columns, dtype=float).rename_axis("quantity").reset_index()


def groupings(languages: pd.DataFrame) -> pd.DataFrame:
    """Tables 2, 10 and 11 (left) in one: what each language is in each grouping.

    Returns
    -------
    DataFrame
        ``language, name``, the levels in the paper and on the text that groupings are compared on,
        a column a grouping: ``original``, ``original *`` (up-sampled, as a relative of an added
        one) or ``added``.
    """
    levels = [f"level, {TEXTS[0]}", f"level, {TEXTS[3]}"]
    frame = languages[["language", "name", *levels]].copy()
    for name, grouping in GROUPINGS.items():
        frame[name] = [
            grouping.group_of(f"eng-{code}") + " *" * (code in grouping.related)
            for code in frame["language"]
        ]
    return frame


@framed()
def grouping_sizes(languages: pd.DataFrame) -> Rows:
    """How much of the text is up-sampled in each grouping, in per cent.

    Returns
    -------
    DataFrame
        ``grouping, added, up-sampled relatives`` (how many languages); for each of `TEXTS` the
        share of both together in the text, and in what is trained on, at a factor of `FACTOR`.
    """
    indexed = languages.set_index("language")
    for name, grouping in GROUPINGS.items():
        row = {
            "grouping": name,
            "added": len(grouping.added),
            "up-sampled relatives": len(grouping.related),
        }
        for text in TEXTS:
            pairs = indexed[f"pairs, {text}"]
            chosen, more = pairs[[*grouping.added, *grouping.related]].sum(), FACTOR - 1
            row[text] = 100 * chosen / pairs.sum()
            row[f"{text}, × {FACTOR}"] = 100 * FACTOR * chosen / (pairs.sum() + more * chosen)
        yield row


def shares(languages: pd.DataFrame) -> pd.DataFrame:
    """Each language's share of all sentence pairs, in per cent.

    Parameters
    ----------
    languages
        From `table9`.

    Returns
    -------
    DataFrame
        ``name, group, text, pairs, share``, a row for each language and text of `TEXTS`.
    """
    long = languages.melt(
        ["name", "group"], [f"pairs, {text}" for text in TEXTS], "text", "pairs"
    ).assign(text=lambda rows: rows["text"].str.removeprefix("pairs, "))
    return long.assign(share=100 * long["pairs"] / long.groupby("text")["pairs"].transform("sum"))
