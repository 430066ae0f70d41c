"""The verdicts stored in ``data/claims/verdicts.json`` follow from the stored rows.

A negative verdict is no failure; one that the rows do not give is. After new rows:
``mnmt-repro verify --write``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_repro.claims import differences, load_claims, read_stored, verify

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = [claim.id for claim in load_claims(ROOT / "data" / "claims")]


@pytest.fixture(scope="module")
def unsupported() -> dict[str, str]:
    """What the stored rows do not support."""
    return differences(verify(ROOT), read_stored(ROOT))


@pytest.mark.parametrize("claim", CLAIMS)
def test_stored_verdict_follows(claim: str, unsupported: dict[str, str]) -> None:
    note = unsupported.get(claim, "")
    assert not note, f"{claim}: {note}; to store what the rows say: mnmt-repro verify --write"


def test_no_verdict_is_stored_without_its_claim(unsupported: dict[str, str]) -> None:
    assert set(unsupported) <= set(CLAIMS)
