"""The verdicts stored in ``data/claims/verdicts.json`` follow from the stored rows.

A negative verdict is no failure; one that the rows do not give is. After new rows:
``mnmt-repro verify --write``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_repro import results
from mnmt_repro.analysis.convergence import corrected_cells
from mnmt_repro.analysis.three_pairs import from_two
from mnmt_repro.claims import differences, load_claims, read_stored, verify

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = [claim.id for claim in load_claims(ROOT / "data" / "claims")]


@pytest.fixture(scope="module")
def unsupported() -> dict[str, str]:
    """What the stored rows do not support."""
    return differences(verify(ROOT, fresh=True), read_stored(ROOT))


@pytest.mark.parametrize("claim", CLAIMS)
def test_stored_verdict_follows(claim: str, unsupported: dict[str, str]) -> None:
    note = unsupported.get(claim, "")
    assert not note, f"{claim}: {note}; to store what the rows say: mnmt-repro verify --write"


def test_no_verdict_is_stored_without_its_claim(unsupported: dict[str, str]) -> None:
    assert set(unsupported) <= set(CLAIMS)


def test_rules_of_the_first_round_keep_their_date() -> None:
    """A version of the claims that cannot be read any more would make all its rules look new."""
    stored = {item["id"]: item for item in read_stored(ROOT)}
    for claim in ("A5", "A14", "B1", "B2", "B20"):
        first = next(s for s in stored[claim]["scopes"] if s["kind"] == "real text" and s["units"])
        assert first["post_hoc"] is False, claim


def test_pages_compute_the_numbers_of_the_verdicts() -> None:
    """Where a page takes another way to a number than the rule: claims A19 and A20."""
    stored = read_stored(ROOT)

    def judged(claim: str, scope: str, measure: str) -> float:
        scopes = next(each for each in stored if each["id"] == claim)["scopes"]
        units = next(each for each in scopes if each["scope"] == scope)["units"]
        return units["all"]["measures"][measure]["value"]

    early = {"tier": "mini", "cohort": "webtech-en-dezh"}
    rows = results.load(test_set="indomain", domain="all", **early)
    far = corrected_cells(rows, results.load_curves(**early))
    shrinkage = far["after"].abs().mean() / far["before"].abs().mean()
    assert shrinkage == pytest.approx(judged("A19", "En→{De,Zh}, in-domain", "shrinkage"), rel=1e-4)
    steady = results.load(tier="steady", test_set="indomain", domain="all")
    three = "conlang-steady-three"
    found = from_two(steady, three, ["conlang-steady"], alike=True, errors="relative")
    error = judged("A20", "conlang steady, three languages from two", "error")
    assert found.miss.value == pytest.approx(error, rel=1e-4)
