"""Misprints of Paper A: is the evidence what a hand, or another source, finds?"""

from __future__ import annotations

import sacrebleu

from mnmt_repro.architecture import PAPER_A
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


def test_one_total_of_appendix_a_is_off_by_the_rows_of_256_pieces():
    tables = [2 * size.config.vocab_size * size.config.d_model for size in PAPER_A]
    totals = [size.published_non_embedding + two for size, two in zip(PAPER_A, tables, strict=True)]
    excess = [size.published_total - total for size, total in zip(PAPER_A, totals, strict=True)]
    assert excess == [0, 0, 0, 0, 0, 0, 327_680, 0]
    found = entry("Appendix A")
    assert (found["printed"], found["meant"]) == ("1,035,876,864", "1,035,549,184")
    assert "327,680 = 256 × 1280" in found["evidence"]
    assert "128,128 rows" in found["evidence"]
