"""Misprints of Paper A: is the evidence what a hand, or another source, finds?"""

from __future__ import annotations

import sacrebleu

from mnmt_repro.papers.effects import errata


def entry(where: str):
    frame = errata.errata()
    found = frame[frame["where"].str.contains(where, regex=False)]
    assert len(found) == 1
    return found.iloc[0]


def test_newstest2019_has_no_french_from_english():
    pairs = sacrebleu.get_langpairs_for_testset("wmt19")
    assert sorted(p[3:] for p in pairs if p.startswith("en-")) == list(errata.WMT19_FROM_ENGLISH)
    assert "fr-en" not in pairs
    assert entry("Figures 9 and 10")["certainty"] == "very likely"
