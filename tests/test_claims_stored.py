"""The verdicts stored in ``data/claims`` follow from the stored rows.

A negative verdict is no failure; one that the rows do not give is. After new rows:
``mnmt-repro verify --write``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest
from stored_claims import ROOT, declared_claims

from mnmt_repro.papers.claims import differences, read_stored, verify
from mnmt_repro.papers.claims.judging import Verdict

EARLIER = ROOT / "data" / "claims" / "earlier.csv"
FROZEN = Path(__file__).with_name("frozen_effects.csv")
PLACE = ["claim", "role", "setting", "part", "measure"]


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """All of them, in minutes; in seconds where the cache has outcomes of this code and these rows.

    The workflows of continuous integration compute them without the cache.
    """
    return verify(ROOT)


def test_stored_verdicts_follow_from_the_stored_rows(verdicts: list[Verdict]) -> None:
    wrong = differences(verdicts, read_stored(ROOT))
    assert not wrong, "to store what the rows say: mnmt-repro verify --write"


def test_effects_of_the_finished_tiers_are_frozen(verdicts: list[Verdict]) -> None:
    """While the package is made smaller, no effect of `mini` and `steady` changes.

    On one machine they agree to 1e-9. Another processor rounds differently.
    """
    records = [
        (each.claim.id, role, one.setting.name, part, name)
        + (measure.value, measure.low, measure.high, one.seeds, one.runs)
        for each in verdicts
        for role, one in each.results.items()
        if one.setting.tier != "settled"
        for part, measures in one.outcome.units.items()
        for name, measure in measures.items()
    ]
    now = pd.DataFrame(records, columns=[*PLACE, "value", "low", "high", "seeds", "runs"])
    frozen = pd.read_csv(FROZEN, keep_default_na=False, na_values=["nan"])
    pd.testing.assert_frame_equal(now, frozen, check_dtype=False, rtol=1e-6, atol=1e-9)


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
