"""The tables of verdicts: what a reviewer reads first."""

from __future__ import annotations

import html
import io
from typing import Any

import pandas as pd
import pytest
from synthetic import loss_of

from mnmt_repro import results
from mnmt_repro.claims import load_claims, read_stored
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.errors import InputError
from mnmt_repro.figures.claim_list import claim_list
from mnmt_repro.figures.measures import condition, named
from mnmt_repro.figures.verdicts import (
    anchor,
    badges,
    count,
    scope_table,
    show_claims,
    stored_measures,
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


def test_a_verdict_leads_to_its_page_and_says_when_its_rule_came_late() -> None:
    found = stored(scope("own", "not reproduced", post_hoc=True))
    table = show_claims(found, name="t", caption="c", settings="own", to_book="../")
    assert list(table.shown) == [
        "claim",
        "title",
        "evidence",
        "verdict",
        "by the rule",
        "measured",
        "why",
    ]
    badge = table.shown["verdict"].iloc[0]
    assert badge.href == "../paper-a/scaling-laws.html"
    assert badge.label == "✗ not reproduced; post hoc"
    assert table.shown["measured"].tolist() == ["r2_min 0.95 (0.9 to 0.98), English→German"]


def test_without_verdicts_the_table_is_empty() -> None:
    assert show_claims([], name="t", caption="c").shown.empty


def test_settings_without_runs_are_in_the_csv_alone() -> None:
    empty = {"measured": None, "interval": None, "decided_by": "", "post_hoc": None}
    own = scope("own", "no rows yet", **empty)
    waiting = scope("waiting", "no rows yet", **empty)
    found = stored(own, scope("other", "reproduced"), waiting)
    table = show_claims(found, "A2", name="t", caption="c")
    assert table.shown["setting"].tolist() == ["own", "other"]  # its own is never left out
    assert table.shown["measured"].tolist()[0] == "–"
    everything = pd.read_csv(io.StringIO(table.csv))
    assert everything["setting"].tolist() == ["own", "other", "waiting"]
    assert everything["rule first"].tolist() == ["–", "yes", "–"]
    assert show_claims(found, name="t", caption="c", settings="own").shown.shape[0] == 1
    others = show_claims(found, name="t", caption="c", settings="others").shown
    assert others["setting"].tolist() == ["other"] and "title" not in others


def test_the_reason_stands_below_its_claim_and_a_reader_is_told_that_runs_are_missing() -> None:
    page = show_claims(stored(scope("own", "no rows yet")), name="t", caption="c").to_html()
    assert '<td class="mnmt-below" colspan="7"><div><b>why:</b> reproduced asks for' in page
    assert "… not enough runs yet" in page and ">… no rows yet" not in page


def test_a_count_names_the_verdicts_as_the_badges_do() -> None:
    names = ["undecided here", "no rows yet", "reproduced", "no rows yet"]
    assert count([{"verdict": name} for name in names]) == (
        "Of 4 claims: 1 reproduced, 1 undecided here, 2 not enough runs yet."
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
    text = claim_list(verdicts, claims).to_html()
    for claim in claims:
        assert text.count(f'<tbody id="{anchor(claim.id)}"') == 1
        assert html.escape(" ".join(claim.description.split())) in text
        revisions = [html.escape(" ".join(change.split())) for change in claim.revised]
        assert all(revision in text for revision in revisions)
    assert text.count("<b>The rule.</b>") == len(claims)
    assert "spBLEU of M25 and Mt25, all: 31.6, 31.8" in text
    assert "f(0.05) / 0.05 for German: 3 times (more than)" in text
    assert "<unk>" not in text and "embedding of &lt;unk&gt;" in text
    for facet in ("Paper A", "Paper B", "undecided here", "generated languages"):
        assert f"<option>{facet}</option>" in text


MEASURED = [
    {
        "id": "A3",
        "measure": "shift",
        "decided_in": "first",
        "scopes": [
            {
                "scope": "first",
                "verdict": "not reproduced",
                "reason": "too far",
                "units": {
                    "eng-deu": {
                        "verdict": "not reproduced",
                        "measures": {
                            "shift": {"value": 0.3, "interval": [0.1, 0.5]},
                            "power": {"value": 0.9, "interval": None},
                        },
                    },
                    "aaa-src against src-aaa": {
                        "verdict": "inconclusive",
                        "measures": {"shift": {"value": None, "interval": None}},
                    },
                },
            },
            {"scope": "second", "verdict": "inconclusive", "reason": "no fit", "units": {}},
            {"scope": "third", "verdict": "no rows yet", "reason": "none", "units": {}},
        ],
    }
]


def test_stored_measures_have_a_row_a_setting_and_pair() -> None:
    table = stored_measures(MEASURED, "A3")
    assert list(table.columns) == [
        "setting",
        "pair",
        "shift",
        "power",
        "low",
        "high",
        "verdict",
        "why",
    ]
    assert list(table["setting"]) == ["first", "first", "second"]
    assert table.loc[0, ["pair", "shift", "power", "low", "high"]].tolist() == [
        "English→German", 0.3, 0.9, 0.1, 0.5,
    ]  # fmt: skip
    assert table.loc[1, "pair"] == "aaa-src against src-aaa"
    assert table.loc[2, "why"] == "no fit"
    with pytest.raises(InputError, match="A9 has no stored verdict"):
        stored_measures(MEASURED, "A9")


def test_a_badge_says_where_the_loaded_rows_differ_from_the_stored_verdict() -> None:
    verdicts = read_stored(ROOT)
    frame = results.load(cohort="webtech-en-dezh", tier="mini")
    (stored_badge,) = badges(verdicts, "A14")
    (same,) = badges(verdicts, "A14", evidence=Evidence(frame=frame))
    assert same == stored_badge
    exact = loss_of(frame["p"].clip(lower=0.01), frame["n_non_embedding"])
    (other,) = badges(verdicts, "A14", evidence=Evidence(frame=frame.assign(cross_entropy=exact)))
    assert other.label == "✓ A14 by its rule reproduced on these rows; stored: not reproduced"
    assert other.href == stored_badge.href
    (none,) = badges(verdicts, "A14", evidence=Evidence(frame=frame.iloc[:0]))
    assert (
        none.label == "… A14 by its rule not enough runs yet on these rows; stored: not reproduced"
    )
