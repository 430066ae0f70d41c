"""The tables of verdicts: what a reviewer reads first."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from mnmt_repro.claims import load_claims
from mnmt_repro.figures.verdicts import scope_table, show_claims
from mnmt_repro.repository import ROOT


def scope(name: str, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "scope": name,
        "verdict": verdict,
        "measured": 0.95,
        "interval": [0.9, 0.98],
        "decided_by": "eng-deu",
        "reason": "reproduced asks for r2_min >= 0.99 (found 0.95)",
        "post_hoc": False,
        **changes,
    }


def stored(*scopes: dict[str, Any]) -> list[dict[str, Any]]:
    """A2, whose ledger explains *not reproduced* and nothing else."""
    return [{"id": "A2", "paper": "A", "title": "A law", "measure": "r2_min", "scopes": scopes}]


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
    table = show_claims(found, name="t", caption="c", only_own=True, to_book="../")
    assert list(table.shown) == ["claim", "title", "verdict", "measured", "why"]
    badge = table.shown["verdict"].iloc[0]
    assert badge.href == "../paper-a/scaling-laws.html"
    assert badge.label == "✗ not reproduced; post hoc"
    assert table.shown["measured"].tolist() == ["r2_min 0.95 (0.9 to 0.98)"]


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
    assert show_claims(found, name="t", caption="c", only_own=True).shown.shape[0] == 1
