"""What corpora look like: counts come from the cards, sentences from the generator."""

from __future__ import annotations

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
