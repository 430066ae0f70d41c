"""The tables of verdicts: what a reviewer reads first."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from markupsafe import escape
from synthetic import loss_of

from mnmt_repro import results
from mnmt_repro.claims import load_claims, read_stored
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.errors import InputError
from mnmt_repro.figures.answer import how_sure
from mnmt_repro.figures.badge import Badge
from mnmt_repro.figures.claim_list import claim_list
from mnmt_repro.figures.measures import condition, named
from mnmt_repro.figures.verdicts import (
    anchor,
    badges,
    count,
    scope_table,
)
from mnmt_repro.repository import ROOT


def scope(name: str, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "scope": name,
        "kind": "real text",
        "verdict": verdict,
        "raw_verdict": verdict,
        "undecided": "",
        "measured": 0.95,
        "interval": [0.9, 0.98],
        "decided_by": "eng-deu",
        "reason": "reproduced asks for r2_min >= 0.99 (found 0.95)",
        "post_hoc": False,
        **changes,
    }


def stored(*scopes: dict[str, Any]) -> list[dict[str, Any]]:
    """A2, whose ledger explains *not reproduced* and nothing else."""
    first = {"decided_in": scopes[0]["scope"], "scopes": scopes}
    return [{"id": "A2", "paper": "A", "title": "A law", "measure": "r2_min", **first}]


def test_why_is_the_reason_and_what_was_found_out_about_this_verdict() -> None:
    (claim,) = (c for c in load_claims(ROOT / "data" / "claims") if c.id == "A2")
    explained = claim.explained["not reproduced"].rstrip(".")
    failed = scope("own", "not reproduced")
    other = scope("other", "not reproduced")
    why = scope_table(stored(failed, other))["why"].tolist()
    asked = "reproduced asks for r2_min >= 0.99 (found 0.95)"
    assert why == [f"{asked}. {explained}", asked]  # other settings were not looked into
    doubtful = scope_table(stored(scope("own", "inconclusive")))["why"].tolist()
    assert doubtful == [asked]  # nobody has explained this verdict


def test_a_count_names_the_verdicts_as_the_badges_do() -> None:
    names = ["undecided here", "no rows yet", "reproduced", "no rows yet"]
    stored = [
        {"id": f"A{i}", "verdict": name, "undecided": "regime", "post_hoc": i == 3}
        for i, name in enumerate(names, 1)
    ]
    assert count(stored) == (
        "Of 4 claims: 1 reproduced (post hoc: A3), 1 undecided here, 2 not enough runs yet. "
        "Undecided because of: runs that stopped too early (A1)."
    )


def test_every_measure_of_a_rule_has_a_plain_name() -> None:
    for claim in load_claims(ROOT / "data" / "claims"):
        rules = [claim.rule, claim.cells, *(scope.rule for scope in claim.scopes)]
        tests = [test for rule in rules for step in rule for test in step.when]
        for test in tests:
            assert "_" not in condition(test, claim.id)
        assert "_" not in named(claim.headline, claim.id)
    with pytest.raises(InputError, match="'nothing' has no plain name"):
        named("nothing")


def test_the_list_has_an_entry_with_its_rule_for_every_claim() -> None:
    claims, verdicts = load_claims(ROOT / "data" / "claims"), read_stored(ROOT)
    text = claim_list(verdicts, claims).html
    for claim in claims:
        assert text.count(f'<tbody id="{anchor(claim.id)}"') == 1
        assert escape(" ".join(claim.description.split())) in text
        revisions = [escape(" ".join(change.split())) for change in claim.revised]
        assert all(revision in text for revision in revisions)
    own = [scope for claim in claims for scope in claim.scopes if scope.rule]
    assert own and text.count("<b>The rule in ") == len(own)
    decided = {verdict["id"]: verdict["decided_in"] for verdict in verdicts}
    special = sum(
        scope.name == decided[claim.id] for claim in claims for scope in claim.scopes if scope.rule
    )
    assert text.count("<b>The rule.</b>") == len(claims) - special
    assert (
        text.count("”, which decided.</b>")
        == text.count("<b>The rule of other settings.</b>")
        == special
    )
    assert "spBLEU of M25 and Mt25, all: 31.6, 31.8" in text
    assert "f(0.05) / 0.05 for German: 3 times (more than)" in text
    assert "<unk>" not in text and "embedding of &lt;unk&gt;" in text
    open_ = [v for v in verdicts if v["verdict"] in ("undecided here", "no rows yet")]
    assert open_ and text.count("<small>missing: ") == len(open_)
    failed = next(v for v in verdicts if v["id"] == "A3")
    chance = f"if right, fails in {failed['false_fail']:.0%}"
    assert f"<small>{chance}</small>" in text
    assert text.count("<b>Which came first, by commit.</b> Rule of ") > 20
    for facet in ("Paper A", "Paper B", "undecided here", "generated languages"):
        assert f"<option>{facet}</option>" in text


def test_how_sure_is_of_the_setting_that_is_asked_for() -> None:
    verdicts = read_stored(ROOT)
    decided = how_sure(verdicts, "A3")
    assert decided.startswith("On generated languages. In simulations, a right A3 fails")
    assert how_sure(verdicts, "A3", "conlang-steady", "steady") == decided
    early = how_sure(verdicts, "A3", "webtech-en-dezh", "mini")
    assert early.startswith("On real text, these runs stopped too early")
    assert how_sure(verdicts, "A3", "", "own") == "A3 was not judged on these runs."


def test_a_badge_says_where_the_loaded_rows_differ_from_the_stored_verdict() -> None:
    verdicts = read_stored(ROOT)
    (stored,) = [each["raw_verdict"] for each in verdicts if each["id"] == "A14"]
    frame = results.load(cohort="conlang-steady", tier="steady")

    def badge(rows: pd.DataFrame) -> Badge:
        evidence = Evidence(frame=rows)
        (found,) = badges(verdicts, "A14", cohort=None, tier="mini", evidence=evidence)
        return found

    same = badge(frame)
    assert same.label == "↗ A14 direction only"
    exact = loss_of(frame["p"].clip(lower=0.01), frame["n_non_embedding"])
    other = badge(frame.assign(cross_entropy=exact))
    assert other.label == f"✓ A14 by its rule reproduced on these rows; stored: {stored}"
    assert other.href == same.href
    none = badge(frame.iloc[:0])
    assert none.label == f"… A14 by its rule not enough runs yet on these rows; stored: {stored}"
