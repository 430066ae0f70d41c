"""The verdicts stored in ``data/claims`` follow from the stored rows.

A negative verdict is no failure; one that the rows do not give is. After new rows:
``mnmt-repro verify --write``.
"""

from __future__ import annotations

import hashlib

import pandas as pd
import pytest
from stored_claims import ROOT, declared_claims

from mnmt_repro.papers.claims import differences, read_stored, verify
from mnmt_repro.papers.claims.judging import Verdict

EARLIER = ROOT / "data" / "claims" / "earlier.csv"


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """All of them, in minutes; in seconds where the cache has outcomes of this code and these rows.

    The workflows of continuous integration compute them without the cache.
    """
    return verify(ROOT)


def test_stored_verdicts_follow_from_the_stored_rows(verdicts: list[Verdict]) -> None:
    wrong = differences(verdicts, read_stored(ROOT))
    assert not wrong, "to store what the rows say: mnmt-repro verify --write"


def test_each_claim_has_one_stored_verdict() -> None:
    stored = read_stored(ROOT)
    verdicts = stored[(stored["role"] == "headline") & (stored["verdict"] != "")]
    assert verdicts["claim"].tolist() == list(declared_claims())


def test_verdicts_of_earlier_rounds_are_as_they_were() -> None:
    """Their rules and code are those of the commit that each row names."""
    assert hashlib.sha256(EARLIER.read_bytes()).hexdigest() == (
        "8d3821deb557aec86a4bed50ddea031a4a9b26b35f70f75454fee627322dea98"
    )
    table = pd.read_csv(EARLIER)
    assert len(table) == 171 and set(table["commit"]) == {"fb398a2b"}
