"""What corpora look like: counts come from the cards, sentences from the generator."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.corpora.registry import get_card
from mnmt_repro.papers.charts.corpora import domain_chart
from mnmt_repro.papers.effects import corpora


def test_domains_add_up_to_the_training_pairs_of_the_card() -> None:
    card = get_card("webtech")
    table = corpora.domains(card)
    assert table["sentences"].sum() == card.sentences("train")
    assert set(table["domain"]) <= set(corpora.DOMAINS.values())
    domain_chart(table).to_dict()
    counts = corpora.card_table((card, get_card("own")))
    assert counts["training pairs"].tolist() == [card.sentences("train")]


def test_lengths_are_tokens_over_sentences() -> None:
    rows = pd.DataFrame(
        {
            "pair": "eng-deu",
            "test_set": ["indomain", "indomain", "indomain", "newstest21"],
            "domain": ["all", "gnome", "gnome", "all"],
            "test_tokens": [900, 100, 100, 700],
            "sentences": [90, 20, 20, 10],
        }
    )
    table = corpora.lengths(rows)
    assert dict(zip(table["text"], table["pieces"], strict=True)) == {
        "GNOME interface": 5.0,
        "WMT news 2021": 70.0,
    }
