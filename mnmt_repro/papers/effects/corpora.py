"""What corpora look like: sentences of generated languages, and counts of real text."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.registry import Card
from mnmt_repro.papers.cohorts.names import language, pair_name
from mnmt_repro.papers.effects.framed import Rows, framed

DOMAINS = {
    "tatoeba": "conversation (Tatoeba)",
    "phpdoc": "PHP manual",
    "pydocs": "Python documentation",
    "odoo": "Odoo interface",
    "gnome": "GNOME interface",
    "aosp": "Android interface",
    "scratch": "Scratch interface",
}
_SETTINGS = {
    "newstest21": "WMT news 2021",
    "newstest22-pivot": "WMT news 2022, from German",
    "multi30k-2016": "Multi30k captions",
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


def lengths(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean target pieces of a test sentence: ``pair, text, sentences, pieces``.

    Parameters
    ----------
    rows
        From `results.load`, of one corpus: all test sets and domains.
    """
    single = rows[(rows["domain"] != "all") | (rows["test_set"].isin(_SETTINGS))]
    each = single.drop_duplicates(["pair", "test_set", "domain"])
    named = (
        each["domain"].map(DOMAINS).where(each["domain"] != "all", each["test_set"].map(_SETTINGS))
    )
    return pd.DataFrame(
        {
            "pair": each["pair"].map(pair_name),
            "text": named,
            "sentences": each["sentences"],
            "pieces": each["test_tokens"] / each["sentences"],
        }
    ).sort_values(["text", "pair"], ignore_index=True)


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
