"""Misprints of Paper A: is the evidence what a hand, or another source, finds?"""

from __future__ import annotations

from fractions import Fraction

import pytest
import sacrebleu

from mnmt_repro import results
from mnmt_repro.architecture import PAPER_A
from mnmt_repro.papers.charts import errata
from mnmt_repro.papers.effects import derivations


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


def test_width_and_depth_grow_together_once():
    # Layers 2 3 6 9 9 12 12 12; widths 512 768 768 768 1024 1024 1280 1536.
    assert errata.growth_steps() == {"both": 1, "depth only": 3, "width only": 3}


def test_the_last_line_of_the_derivation_holds_at_weight_one_only():
    losses = errata.derivation(alpha=0.3, beta_one=12.0, beta_p=30.0, l_inf=1.5, n=1e6)
    assert losses["L(N; p)"] == pytest.approx(losses["L(N_eff; 1)"])
    assert losses["L(N_eff; p)"] > losses["L(N; p)"] * 1.1


def test_chrf_and_loss_go_opposite_ways_in_our_runs_too():
    rows = results.load(cohort="webtech-en-defr", pair="eng-deu", test_set="indomain", domain="all")
    decoded = rows.dropna(subset="chrf")
    assert len(decoded) > 60
    assert decoded["chrf"].corr(decoded["cross_entropy"]) < -0.5
    assert "negative" in entry("Figure 8")["meant"]


def test_every_entry_says_what_and_why():
    frame = errata.errata()
    assert not frame["where"].duplicated().any()
    assert (frame.map(len) > 0).all().all()
    assert (frame["printed"] != frame["meant"]).all()
    assert frame["printed"].str.split().map(len).max() <= 8  # a few words, no sentences
    assert set(frame["kind"]) == {"count", "caption", "equation", "text", "reference"}
    assert not frame.apply(lambda column: column.str.contains("$", regex=False)).any().any()


def test_the_list_has_each_once_under_its_certainty():
    frame = errata.errata()
    text = errata.as_list(frame)
    assert text.count("\n- **") == len(frame)
    assert all(f"**{where}.** Printed: " in text for where in frame["where"])
    assert text.index("**Certain**") < text.index("Figure 14") < text.index("**Wording**")


def test_those_that_touch_a_formula_come_first():
    frame = errata.errata()
    text = errata.as_list(frame)
    touched = frame[frame["formula"] != "–"]
    assert touched["formula"].tolist() == ["Eq. 4", "Eq. 6", "Eq. 8", "Eqs. 12 and 13"]
    last = max(text.index(f"**{where}.**") for where in touched["where"])
    assert last < text.index("**Certain**")


def test_sampling_is_the_weighted_loss_only_for_sentences_of_one_length():
    found = entry("§2.2")
    assert (found["certainty"], found["formula"]) == ("wording", "Eq. 4")
    # A sentence's gradients sum to 8 in German and to -2 in Chinese, on average; its tokens are 3
    # and 7/3. Sampled: (8/4 - 2 * 3/4) / (3/4 + 7/4) = 1/5. Per token: 8/3 / 4 - 6/7 * 3/4 = 1/42.
    assert "of 1/5 per token" in found["evidence"] and "1/42 with w = p" in found["evidence"]
    alike = {"a": [(1, 3), (2, 2)], "b": [(-1, 5)]}
    same = derivations.compare_counting(alike, {"a": Fraction(1, 4), "b": Fraction(3, 4)})
    assert same.naive == same.implicit == same.explicit


def test_what_can_stand():
    frame = errata.followed().set_index("where")
    recomputed = frame["recomputed"]
    assert recomputed["§1, number of models"] == "9 × 8 × 3 − 8 = 208"
    assert "8 + 2 = 10 and 8 × 3 = 24" in recomputed.tolist()
    # 5 % of 1M steps of 500k tokens are 25 billion: 41.7 for each of 600M sentences.
    assert any("above 42 tokens" in text and "above 83" in text for text in recomputed)
