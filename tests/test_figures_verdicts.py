"""Verdicts on pages: badges, boxes, lists and counts, also of what is not measured yet."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from stored_claims import NAN, declared_claims, made_verdict, stored_table

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.claim_list import change_list, claim_list
from mnmt_repro.papers.charts.forest import claim_figure
from mnmt_repro.papers.charts.opening import also_says
from mnmt_repro.papers.charts.scoreboard import (
    claim_effects,
    effects_chart,
    scoreboard,
    what_is_missing,
)
from mnmt_repro.papers.charts.verdicts import anchor, badge, how_sure, tally
from mnmt_repro.papers.claims.report import claim_measures
from mnmt_repro.papers.claims.schema import Exhibit

CLAIMS = declared_claims()


@pytest.fixture
def stored(tmp_path: Path) -> pd.DataFrame:
    """A11 robust; A18 out of reach; B1 without rows; B5 refuted, late; B16 within its limits."""
    same = (4.0, 3.9, 4.1)
    verdicts = [
        made_verdict(CLAIMS["A11"], headline=same, beside=same, half=same, text_matched=same),
        made_verdict(CLAIMS["A18"]),
        made_verdict(CLAIMS["B1"]),
        made_verdict(CLAIMS["B5"], post_hoc=True, headline=(-0.8, -0.9, -0.7)),
        made_verdict(CLAIMS["B16"], headline=(0.05, -0.1, 0.2)),
    ]
    result = verdicts[1].headline
    gone = replace(result.outcome, verdict="out of reach", why="BLEURT's weights | <none>")
    verdicts[1] = replace(
        verdicts[1], results={**verdicts[1].results, "headline": replace(result, outcome=gone)}
    )
    return stored_table(tmp_path, *verdicts)


def test_a_badge_says_verdict_effect_and_where_it_leads(stored: pd.DataFrame) -> None:
    first = badge(stored, "A11")
    assert first.label == "✓ A11 reproduced" and first.href == "../verdicts.html#claim-a11"
    assert "4.00 times (3.90 to 4.10)" in first.title
    assert badge(stored, "B5").label == "✗ B5 not reproduced, post hoc"
    assert badge(stored, "B1").title.endswith("no rows yet")
    assert "BLEURT&#x27;s weights | &lt;none&gt;" in badge(stored, "A18").to_html()
    with pytest.raises(InputError, match="claim A2 has no stored verdict"):
        badge(stored, "A2")


def test_how_sure_falls_where_a_way_disagrees(tmp_path: Path) -> None:
    effect = (4.0, 3.9, 4.1)
    found = made_verdict(CLAIMS["A11"], headline=effect, half=effect, text_matched=(1.0, 0.9, 1.1))
    assert how_sure(stored_table(tmp_path, found), "A11").startswith("**Low**: not robust")
    alone = made_verdict(
        CLAIMS["A11"], headline=effect, half=effect, text_matched=effect, beside=(1.0, 0.9, 1.1)
    )
    assert how_sure(stored_table(tmp_path, alone), "A11").startswith("**Medium**: robust")
    found = made_verdict(CLAIMS["A14"], headline=(0.04, 0.03, 0.05), half=(0.06,))
    assert "the effect is 6 %" in how_sure(stored_table(tmp_path, found), "A14")
    found = made_verdict(CLAIMS["A3"], **{"sensitivity 1": (-0.2, -0.3, -0.1)})
    also = also_says(stored_table(tmp_path, found), "A3").replace("\u00a0", " ")
    assert "Earlier runs, not judged" in also and also.endswith("−20 % (−30 to −10 %).")


def test_how_sure_of_draws_at_an_end_and_of_what_is_open(tmp_path: Path) -> None:
    found = [made_verdict(CLAIMS["B13"], headline=(10.0, 10.0, 10.0))]
    found += [made_verdict(CLAIMS["B16"], headline=(0.5, 0.0, 1.5))]
    stored = stored_table(tmp_path, *found).assign(seeds=6)
    assert how_sure(stored.assign(seeds=5), "B13").startswith("**Low**: all draws lie at an end")
    assert how_sure(stored, "B13").startswith("**Medium**: 6 old models agree")
    assert how_sure(stored, "B16").startswith("**Low**: the interval includes the limit")


def test_a_badge_says_that_an_interval_ends_near_its_limit(tmp_path: Path) -> None:
    found = made_verdict(CLAIMS["A11"], headline=(4.0, 3.01, 5.0))  # the limit is 3
    assert "A11 barely reproduced" in badge(stored_table(tmp_path, found), "A11").label


def test_the_list_has_an_entry_for_every_stored_claim(stored: pd.DataFrame) -> None:
    shown = claim_list(stored, list(CLAIMS.values()))
    for claim in ("A11", "A18", "B1", "B5", "B16"):
        assert shown.html.count(f'<tbody id="{anchor(claim)}"') == 1
    assert f'<tbody id="{anchor("A2")}"' not in shown.html
    assert "nan" not in shown.html.replace("NaN", "nan").partition("<script")[0].lower()
    assert "&lt;none&gt;" in shown.html and "<none>" not in shown.html
    assert "at least 3 times" in shown.html and "no rows yet" in shown.html
    assert "B5  not reproduced" in shown.words
    assert shown.html.count("<b>Robust.</b>") == 1  # of the others it is not known
    note = f'<td colspan="4">{CLAIMS["A11"].note}'  # of a reproduced claim, outside of the fold
    assert " ".join(note.split()) in " ".join(shown.html.split())


def test_a_count_shows_only_the_claims_of_its_verdict(stored: pd.DataFrame) -> None:
    shown = claim_list(stored, list(CLAIMS.values())).html
    counts = {each.verdict: each for each in tally(stored, "verdicts.html")}
    assert "undecided" not in counts  # B1 has no value, so its badge has another word
    assert counts["not measured yet"].text == "1 not measured yet"
    table = base64.b64decode(re.findall(r'base64,([^"]*)"', shown)[-1]).decode()
    assert re.search("^B1,headline,.*,not measured yet,", table, re.MULTILINE)
    for verdict, each in counts.items():
        page, _, place = each.href.partition("#")
        assert page == "verdicts.html" and shown.count(f'id="{place}"') == 1
        hidden = f'#{place}:target) #mnmt-claims tbody[data-paper]:not([data-verdict="{verdict}"])'
        assert hidden in shown
        rows = re.findall(rf'<tbody id="[^"]+" [^>]*data-verdict="{verdict}">', shown)
        assert len(rows) == int(each.text.split()[0])


def test_a_claim_leads_to_its_changes(stored: pd.DataFrame) -> None:
    shown = claim_list(stored, list(CLAIMS.values())).html
    links = re.findall(r'after-seeing-data.html#([^"]+)', shown)
    assert links == [f"changes-{claim}" for claim in ("a11", "a18", "b1", "b5", "b16")]
    kinds = ("date", "kind", "change", "known", "commit")
    changes = pd.DataFrame([dict.fromkeys(kinds, "x") | {"claims": "A2 B3"}])
    html = change_list(changes, ["B3"]).html
    assert 'id="changes-b3"' in html and "#changes-b3:target" in html
    assert 'class="A2 B3"' in html and "tbody:not(.B3, .all)" in html


def test_the_scoreboard_answers_with_the_measured_effect(stored: pd.DataFrame) -> None:
    exhibits = [
        Exhibit(id="B Table 1", shows="x", claims=("B5", "B1"), page="p", chart="c",
                answer="it costs {B5}, and {B1 on 'software25, main condition'}."),
        Exhibit(id="B Figure 1", shows="x", reason="a drawing"),
        Exhibit(id="B Table 2", shows="x", page="p", chart="c", answer="languages.",
                reason="a list"),
        Exhibit(id="B Table 3", shows="x", claims=("A18",), page="p", chart="c", answer="{A18}"),
        Exhibit(id="A Figure 1", shows="x", claims=("A11",), page="p", chart="c", answer="{A11}"),
        Exhibit(id="A Figure 9", shows="x", claims=("A11",), page="p", chart="c",
                answer="{A11 on 'settled, En→{De,Fr}'}", reason="stopped early"),
    ]  # fmt: skip
    board = scoreboard(exhibits, stored, "B")
    first, second, *others = board.words.splitlines()
    assert first.startswith("B Table 1: It costs −0.8") and "not measured yet." in first
    assert second == "B Figure 1: Not re-made: a drawing"
    assert others[0] == "B Table 2: Languages."  # no claim, and so nothing that could be missing
    assert others[1] == "B Table 3: Out of reach: BLEURT's weights | <none>."
    assert 'data-verdict="not reproduced"' in board.html and "A Figure 1" not in board.html
    board = scoreboard(exhibits, stored, "A")
    assert (
        board.words.count("4.00 times (3.90 to 4.10)") == 2
        and "real text, not judged" in board.html
    )
    assert board.html.count("verdicts.html#claim-a11") == 1  # the verdict is not of the second
    assert what_is_missing(exhibits, stored).data.splitlines() == [
        "- **Not re-made**: Paper B, Figure 1 (a drawing).",
        "- **Out of reach**: Paper B, Table 3 (BLEURT's weights | <none>).",
        "- **Drawn from earlier runs, not judged yet**: none.",
        "- **Re-made in part**: Paper B, Table 1 (B1 is not measured yet).",
        "- **Re-made, not judged**: Paper B, Table 2 (a list); Paper A, Figure 9 (stopped early).",
    ]


def test_measures_of_settings_are_those_that_are_stored(stored: pd.DataFrame) -> None:
    table = claim_measures(stored, "A11")
    assert table["value"].tolist() == [4.0] * 4
    assert table["role"].tolist() == ["headline", "beside", "half", "text-matched"]
    assert set(table["tier"]) == {"settled"} and table["cohort"].str.len().min() > 0
    assert claim_measures(stored, "B1").empty and claim_measures(stored, "A11", "none").empty
    with pytest.raises(InputError, match="no claim Z9"):
        claim_measures(stored, "Z9")
    drawn = claim_figure(stored, "A11", "capacity", "f over p", "It is larger.")
    assert drawn.name == "capacity-a11" and drawn.svg.startswith("<svg")


def test_effects_lie_right_of_their_limit_where_the_claim_holds(tmp_path: Path) -> None:
    effects = {
        "A11": (6.0, 3.0, 12.0),  # at least 3, a ratio: one half-width above
        "A14": (0.04, 0.03, 0.05),  # at most 0.025
        "B16": (-0.5, -1.5, 0.5),  # from -1 to 1: the nearer end counts, and 0 lies farthest inside
        "B1": (NAN,),  # has no row
    }
    verdicts = [made_verdict(CLAIMS[name], headline=effect) for name, effect in effects.items()]
    table = claim_effects(stored_table(tmp_path, *verdicts)).set_index("claim")
    assert table.loc["A11", ["value", "low", "high"]].tolist() == pytest.approx([1, 0, 2])
    assert table.loc["A14", ["value", "low", "high"]].tolist() == pytest.approx([-1.5, -2.5, -0.5])
    assert table.loc["B16", ["value", "low", "high"]].tolist() == pytest.approx([0.5, -0.5, 1])
    assert set(table.index) == {"A11", "A14", "B16"}
    assert table.loc["A11", "ours"] == "✓ 6 times (3 to 12); at least 3 times"
    assert len(effects_chart(table.reset_index()).to_dict()["vconcat"]) == 2  # papers A and B
