"""Claims files: what is in them, and that each mistake names file, claim and field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stored_claims import ROOT, declared_claims, entry, write_claims

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.measures import named
from mnmt_repro.papers.claims import load_claims
from mnmt_repro.papers.claims.judging import EFFECTS

CLAIMS = declared_claims()


def test_the_claims_of_both_papers_are_there() -> None:
    numbers = [f"A{k}" for k in range(2, 22)] + [f"B{k}" for k in range(1, 24) if k not in (4, 22)]
    assert list(CLAIMS) == numbers
    for claim in CLAIMS.values():
        assert claim.id.startswith(claim.paper) and claim.effect in EFFECTS
        kinds = {each.kind for each in claim.judged}
        assert len(kinds) == len(claim.judged)  # beside is of the other kind of text


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_claim_leads_to_a_page_that_shows_its_verdict(claim: Any) -> None:
    text = (ROOT / "book" / f"{claim.page}.ipynb").read_text(encoding="utf-8")
    assert f'"{claim.id}\\"' in text
    assert named(claim.measure, claim.id)  # or the page of verdicts fails


def test_a_setting_is_one_of_the_file_or_differs_from_one(tmp_path: Path) -> None:
    robust = {"half": {"like": "there", "name": "there, half", "options": {"a": 3}}}
    beside = {"like": "there", "cohorts": ["other"]}
    write_claims(tmp_path, entry(beside=beside, robustness=robust, options={"a": 1, "b": 2}))
    (claim,) = load_claims(tmp_path / "data" / "claims")
    assert {role: each.name for role, each in claim.settings.items()} == {
        "headline": "here", "beside": "there", "half": "there, half",
    }  # fmt: skip
    assert claim.beside is not None and claim.beside.cohorts == ("other",)
    half = claim.settings["half"]
    assert half.cohorts == ("webtech-en-defr",)  # of the one that it is like
    assert claim.in_setting(half).options == {"a": 3, "b": 2}
    assert claim.judged == (claim.headline, claim.beside)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda e: e.pop("where"), "where: Field required"),
        (lambda e: e.update(wher="x"), "wher: Unexpected"),
        (lambda e: e.update(side=">"), "side: .*got '>'"),
        (lambda e: e.update(limit="3"), "limit.*got '3'"),
        (lambda e: e.update(limit=float("nan")), "limit: .*finite, got nan"),
        (lambda e: e.update(limit=[-1, 1]), "limit: a pair of numbers goes with side: within"),
        (lambda e: e.update(limit=[1, -1], side="within"), "limit: .*first end must be below"),
        (lambda e: e.update(headline="away"), "headline: no setting 'away'; there are here, there"),
        (lambda e: e.update(robustness={"third": "there"}), "robustness.third"),
        (lambda e: e.update(beside="here"), "beside: the setting 'here' is named twice"),
        (lambda e: e.update(headline={"like": "here", "n": "n_all"}), "headline.n: .*'n_non_emb"),
    ],
)
def test_a_mistake_names_file_claim_and_field(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], message: str
) -> None:
    broken = entry()
    damage(broken)
    path = write_claims(tmp_path, entry("Z0"), broken)
    with pytest.raises(InputError, match=rf"test\.yml: claim Z1: {message}"):
        load_claims(path.parent)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = write_claims(tmp_path, entry())
    whole = path.read_text(encoding="utf-8")
    for text, message in (
        ("schema: 2\nclaims: [", "not YAML"),
        (whole.replace("schema: 2", "schema: 1"), "needs schema: 2"),
        ("schema: 2\nclaims: []", "claims must be a list"),
        (whole.replace("paper: Z", "paper: 3"), "needs a paper"),
        (whole.replace("id: Z1", "id: 3"), "every claim needs an id"),
        ("schema: 2\npaper: Z\nsettings: {}\nclaims: [&a [*a]]", "no plain data"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=rf"test\.yml: {message}"):
            load_claims(path.parent)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"test\.yml: not UTF-8"):
        load_claims(path.parent)
    write_claims(tmp_path, entry(), entry())
    with pytest.raises(InputError, match="claim Z1 is given twice"):
        load_claims(path.parent)
    with pytest.raises(InputError, match="no claims"):
        load_claims(tmp_path)
