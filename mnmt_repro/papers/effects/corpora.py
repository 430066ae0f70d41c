"""Corpora: sentences of generated languages, counts of real text, and Paper B's 25 languages.

Of Paper B's Tables 2, 9, 10 and 11 (left), theirs stand beside ours. A level of ours is by the
paper's rule, after our sentence pairs are multiplied by one factor, such that the original
languages have as many in all as in the paper. So it shows how large a language is beside the
others, as theirs does.
"""

from __future__ import annotations

import pandas as pd

from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.registry import Card
from mnmt_repro.papers.cohorts.languages25 import GROUPINGS
from mnmt_repro.papers.cohorts.names import language
from mnmt_repro.papers.cohorts.software25_runs import available, kept_pairs
from mnmt_repro.papers.effects.audit import resource_level
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.published import grouping as printed_grouping

DOMAINS = {
    "tatoeba": "conversation (Tatoeba)",
    "phpdoc": "PHP manual",
    "pydocs": "Python documentation",
    "odoo": "Odoo interface",
    "gnome": "GNOME interface",
    "aosp": "Android interface",
    "scratch": "Scratch interface",
}


def sentences(conlang: Conlang, count: int = 3) -> pd.DataFrame:
    """The first test sentences in every language, with what they mean.

    Returns
    -------
    DataFrame
        ``meaning`` (ranks of the concepts, in the order of the first language), and a column per
        language.
    """
    languages = conlang.config.languages
    pairs = [f"{languages[0]}-{name}" for name in languages[1:]]
    concepts, lengths = conlang.concepts(pairs[0], 0, count, split="test")
    table = {
        "meaning": [
            " ".join(map(str, row[:length] + 1))
            for row, length in zip(concepts, lengths, strict=True)
        ],
        language(languages[0]): [s for s, _ in conlang.text(pairs[0], 0, count, split="test")],
    }
    for pair, name in zip(pairs, languages[1:], strict=True):
        table[language(name)] = [t for _, t in conlang.text(pair, 0, count, split="test")]
    return pd.DataFrame(table)


@framed()
def domains(card: Card) -> Rows:
    """Training sentence pairs: ``language, domain, sentences``; the language beside English."""
    for file in card.files:
        for domain, count in file.domains.items():
            yield {
                "language": language(next(code for code in file.languages if code != "eng")),
                "domain": DOMAINS.get(domain, domain),
                "sentences": count,
            }


@framed()
def card_table(cards: tuple[Card, ...]) -> Rows:
    """Counts of the corpora with files: languages, pairs, sentences of each split, licence."""
    for card in cards:
        if card.files:
            yield {
                "corpus": card.name,
                "what it is": card.title,
                "languages": len(card.languages),
                "training pairs": card.sentences("train"),
                "validation": card.sentences("valid"),
                "test": card.sentences("test"),
                "licence": card.licence,
            }


TEXTS = ("paper", "all our text", "main condition", "groupings")
"""Whose sentence pairs: the paper's; ours; ours with the added languages cut to Table 9's share;
ours with all cut to it that some grouping adds or up-samples (Tables 7 and 8)."""


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
