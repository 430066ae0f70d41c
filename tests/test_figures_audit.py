"""Published numbers: is the transcription whole, and does the audit find what a hand finds?"""

from __future__ import annotations

import hashlib

import pandas as pd
import pytest

from mnmt_repro.architecture import PAPER_A
from mnmt_repro.papers.effects import audit
from mnmt_repro.papers.effects.audit import check
from mnmt_repro.papers.effects.published import PAPERS


def row(frame: pd.DataFrame, where: str) -> pd.Series:
    """The one check whose place contains `where`."""
    found = frame[frame["where"].str.contains(where, regex=False)]
    assert len(found) == 1, found["where"].tolist()
    return found.iloc[0]


# Transcription


def test_the_files_are_those_that_were_compared_with_the_papers() -> None:
    """By cell and by mark. Whoever changes one compares it again."""
    text = b"".join(path.name.encode() + path.read_bytes() for path in sorted(PAPERS.glob("*.csv")))
    assert hashlib.sha256(text).hexdigest()[:16] == "96eb1909eae081e5"


def test_appendix_a_is_the_table_that_the_package_builds_from() -> None:
    frame = pd.read_csv(PAPERS / "paper-a-appendix-a.csv").set_index("parameters_total")
    assert list(frame.index) == [size.published_total for size in PAPER_A]
    for size in PAPER_A:
        printed, shape = frame.loc[size.published_total], size.config
        assert printed["parameters_non_embedding"] == size.published_non_embedding
        for name in ("encoder_layers", "decoder_layers", "d_model", "heads", "head_dim", "d_ff"):
            assert printed[name] == getattr(shape, name)


# Recomputation


def test_means_of_table_12_by_hand() -> None:
    frame = audit.checks("Table 1 from Table 12")
    assert len(frame) == 36
    # The ten added directions of M25, printed: 24.2 40.1 14.6 11.3 21.9 29.9 42.2 1.5 29.2 31.4.
    check = row(frame, "Table 1, M25, spBLEU, added")
    assert check["recomputed"] == pytest.approx(246.3 / 10)
    assert check["published"] == 24.6
    assert check["tolerance"] == pytest.approx(0.1)
    assert check["agrees"]
    # Printed with two digits, so half a unit of it is 0.005.
    assert row(frame, "Mt25-wide, spBLEU, original")["tolerance"] == pytest.approx(0.055)


def test_gains_by_hand() -> None:
    frame = audit.checks("gains over the baseline")
    # Added languages, Mt25-wide minus M25-wide, in the order of the page.
    gains = [2.9, 3.2, 3.2, 2.5, 1.9, -0.8, -1.0, 3.5, -2.0, -0.7]
    assert row(frame, "Mt25-wide minus M25-wide, added")["recomputed"] == pytest.approx(
        sum(gains) / 10
    )
    # Paired t by its formula: mean / (sd / sqrt(10)) = 1.27 / 0.675 = 1.882; p with 9 degrees.
    mean = sum(gains) / 10
    sd = (sum((g - mean) ** 2 for g in gains) / 9) ** 0.5
    assert mean / (sd / 10**0.5) == pytest.approx(1.882, abs=2e-3)
    # Tables of t with 9 degrees: 1.833 has p = 0.10 and 2.262 has p = 0.05, both two-sided.
    assert 0.05 < row(frame, "Mt25-wide minus M25-wide, added")["p"] < 0.10


def test_recovered_share_by_hand() -> None:
    frame = audit.checks("compute and recovery")
    # Sums of Table 12's columns: 1619.6 of 1641.9.
    assert row(frame, "% of M25-deep's spBLEU in Table 12")["recomputed"] == pytest.approx(
        100 * 1619.6 / 1641.9
    )
    # Table 1: 32.4 of 32.8; the wide models are level, which is to recover.
    one = frame[frame["where"].str.endswith("in Table 1")].reset_index(drop=True)
    assert one["recomputed"].tolist() == pytest.approx([100 * 31.8 / 31.6, 100, 100 * 32.4 / 32.8])
    assert one["agrees"].all()
    assert row(frame, "Abstract")["recomputed"] == 50


def test_agreement_is_rounding_and_no_more() -> None:
    agree = check("x", 31.6, 31.69, tolerance=0.1, reading="why")
    assert agree["agrees"] and agree["reading"] == ""
    assert check("x", 31.6, 31.7, tolerance=0.1)["agrees"]  # the edge, in binary fractions
    differ = check("x", 31.6, 31.71, tolerance=0.1, reading="why")
    assert not differ["agrees"] and differ["reading"] == "why"
    assert not check("x", 50, 50.0, ">")["agrees"]
    assert check("x", 50, 50.0, ">=")["agrees"] and not check("x", 50, 49.9, ">=")["agrees"]
    assert check("x", 50, 50.1, ">")["agrees"]
    assert check("x", 50, 49.9, "<")["agrees"]
    assert not check("x", "low", "mid")["agrees"]


# The list of disagreements, each by its place and size

DISAGREEMENTS = {  # some of each kind
    "Table 1, Mt25, spBLEU, all": 0.138,
    "Table 1, Mt25, spBLEU, added": -0.37,
    "Table 3, Mt25-wide at 30k, all": -0.234,
    "Table 8, Mt25, eng-guj: Mt25-wide": 1.6 - (28.4 - 25.5),
    "Table 8, Mt25, xho-eng: Mt25-wide": -1.1 - (32.4 - 33.1),
    "Table 1, Mt25 minus M25, added": 0.6 - 0.94,
    # The very low level is a part of the low one, by Table 9's caption.
    "Table 7, Mt25, all": 32.6 - (5 * 35.8 + 8 * 29.6 + 12 * 31.5) / 25,
    "Table 7, Mt25-v1, all": 32.7 - (5 * 36.0 + 8 * 29.8 + 12 * 31.2) / 25,
    "Table 7, Mt25, high": -3.84,
    "Table 7, Mt25, low": 2.35,
    "Table 7, Mt25, very low: mean": -0.3,
    "added languages of M12t25 above low": -1.0,
    "Abstract, larger model, % of compute saved": 0.0,
    "10k updates as % of Mt25-wide's training": -10.0,
    "Mt25-deep, all: full recipe minus random init new": 0.0,
    "12 + 12 layers, d 1280: total": 327_680.0,
}


def test_disagreements_are_these_and_no_others() -> None:
    frame = audit.checks()
    frame = frame[~frame["agrees"]]
    for where, size in DISAGREEMENTS.items():
        check = row(frame, where)
        assert check["difference"] == pytest.approx(size, abs=1e-9), where
    assert frame["reading"].all() and len(frame) == 32
