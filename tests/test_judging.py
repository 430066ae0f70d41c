"""One sentence decides a claim: its interval against its limit. And how robust that is."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from stored_claims import NAN, ROOT, NoHistory, declared_claims, made_claim, made_verdict, setting
from synthetic import rows

from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims import judging
from mnmt_repro.papers.claims.judging import EFFECTS, Outcome, evaluate, judge, verdict_of
from mnmt_repro.papers.claims.schema import Claim
from mnmt_repro.papers.effects.evidence import Evidence
from mnmt_repro.papers.effects.noise import Measure, NoRowsYet, NotIdentified, OutOfRegime

YES, NO, OPEN = "reproduced", "not reproduced", "undecided"
NOTHING = Evidence(frame=pd.DataFrame())


@pytest.mark.parametrize(
    ("limit", "side", "low", "high", "verdict"),
    [
        (3, ">=", 3.5, 5, YES),
        (3, ">=", 3, 5, YES),  # an end on the limit lies on the claim's side
        (3, ">=", 2.9, 5, OPEN),
        (3, ">=", 1, 2.9, NO),
        (3, "<=", 1, 3, YES),
        ((-0.1, 0.1), "within", -0.1, 0.1, YES),
        ((-0.1, 0.1), "within", -0.05, 0.2, OPEN),
        ((-0.1, 0.1), "within", 0.11, 0.2, NO),
        (3, ">=", NAN, NAN, OPEN),
        (3, ">=", 4, math.inf, OPEN),  # no interval either
    ],
)
def test_a_verdict_is_an_interval_against_a_limit(limit, side, low, high, verdict) -> None:
    assert verdict_of(Measure(value=4, low=low, high=high), limit, side) == verdict


def judged(claim: Claim, monkeypatch: pytest.MonkeyPatch, found: object) -> Outcome:
    """The claim's outcome where its effect finds these units, or raises."""

    def effect(*_: object) -> object:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setitem(EFFECTS, "made", effect)
    return judge(claim, claim.headline, NOTHING)


def parts(**ends: tuple[float, float, float]) -> dict[str, dict[str, Measure]]:
    return {
        name: {"capacity": Measure(value=value, low=low, high=high)}
        for name, (value, low, high) in ends.items()
    }


@pytest.mark.parametrize(
    ("changes", "units", "part", "verdict"),
    [
        ({}, parts(a=(5, 4, 6), b=(2, 1, 2.5)), "b", NO),
        ({}, parts(a=(5, 4, 6), b=(9, 8, 10)), "a", YES),
        ({"side": "<="}, parts(a=(5, 4, 6), b=(2, 1, 2.5)), "a", NO),
        ({"side": "within", "limit": (4, 6)}, parts(a=(4.9, 4, 5), b=(7, 6.5, 8)), "b", NO),
        ({}, parts(all=(5, 4, 6), b=(2, 1, 2.5)), "all", YES),
        ({}, parts(a=(5, 4, 6), b=(NAN, NAN, NAN)), "b", OPEN),
    ],
)
def test_the_part_that_speaks_least_for_a_claim_decides(
    changes, units, part, verdict, monkeypatch
) -> None:
    found = judged(made_claim(**changes), monkeypatch, units)
    assert (found.part, found.verdict) == (part, verdict)
    assert found.units == units and bool(found.why) == math.isnan(found.effect.low)


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [(NoRowsYet, OPEN), (NotIdentified, OPEN), (OutOfRegime, "out of reach")],
)
def test_without_an_effect_the_reason_is_told(reason, verdict, monkeypatch) -> None:
    found = judged(made_claim(), monkeypatch, reason("too few sizes"))
    assert (found.verdict, found.why) == (verdict, "too few sizes")
    assert math.isnan(found.effect.value)


def test_what_cannot_be_had_here_is_out_of_reach(monkeypatch) -> None:
    claim = made_claim(out_of_reach="BLEURT's weights")
    found = judged(claim, monkeypatch, parts(all=(5, 4, 6)))
    assert (found.verdict, found.why) == ("out of reach", "BLEURT's weights")


def test_a_claim_that_names_what_is_not_there_is_refused(monkeypatch) -> None:
    with pytest.raises(InputError, match="claim Z1: effect guess does not exist"):
        judged(made_claim(effect="guess"), monkeypatch, {})
    with pytest.raises(InputError, match="claim Z1: made measures no 'luck'"):
        judged(made_claim(measure="luck"), monkeypatch, parts(all=(5, 4, 6)))
    asks = made_claim(effect="metric_linear")
    with pytest.raises(InputError, match="Z1.options lacks 'metric'"):
        judge(asks, asks.headline, NOTHING)


@pytest.mark.parametrize("claim", declared_claims().values(), ids=lambda claim: claim.id)
def test_without_rows_no_claim_is_decided(claim: Claim) -> None:
    columns = ["cohort", "tier", "test_set", "domain", "p", "seed", "run_id", "commit", "pair"]
    frame = pd.DataFrame(columns=[*columns, "cross_entropy", "n_non_embedding", "n_total"])
    frame = frame.astype({"p": float, "cross_entropy": float})
    found = evaluate(claim, Evidence(frame=frame), NoHistory(ROOT))
    assert set(found.results) == set(claim.settings)
    for result in found.results.values():
        assert result.outcome.verdict in (OPEN, "out of reach") and result.outcome.why
    assert found.robust == "not known"


def test_seeds_are_those_of_a_cell_that_the_effect_reads() -> None:
    cell = dict.fromkeys(("updates_share", "mixture", "pair", "n_non_embedding", "test_set"), 1)
    runs = [("table", "new", 1), ("table", "old, copied", 2), ("noise", "other", 5)]
    rows = pd.DataFrame(
        cell | {"cohort": cohort, "variant": variant, "seed": seed}
        for cohort, variant, seeds in runs
        for seed in range(seeds)
    )
    named = judging._read(rows, {"contrasts": {"a": {"treated": "new"}}}, "all")
    assert judging._seeds(named) == 1
    assert judging._seeds(judging._read(rows, {}, "old")) == 2
    assert judging._seeds(judging._read(rows[rows["cohort"] == "noise"], {}, "all")) == 5


# --- how robust --------------------------------------------------------------------------------

WAYS = {name: setting(name) for name in ("half", "text-matched", "equal-first")}


def robust(claim: Claim, headline, half, matched) -> str:
    return made_verdict(claim, headline=headline, half=half, text_matched=matched).robust


@pytest.mark.parametrize(
    ("half", "matched", "known"),
    [
        ((4.0, 3.9, 4.1), (5.0, 4.0, 6.0), "yes"),
        ((4.5, 4.4, 4.6), (5.0, 4.0, 6.0), "no"),  # moves by 11 %
        ((4.0, 3.9, 4.1), (2.0, 1.0, 2.5), "no"),  # another verdict
        ((4.0, 3.0, 5.0), (5.0, 4.0, 6.0), "not known"),  # a standard error of 13 %
        ((4.0, 3.9, 4.1), (NAN,), "not known"),
        ((0.0, -0.1, 0.1), (5.0, 4.0, 6.0), "not known"),  # no share of nothing
    ],
)
def test_a_ratio_moves_by_a_share_of_itself(half, matched, known) -> None:
    assert robust(made_claim(robustness=WAYS), (4.0, 3.9, 4.1), half, matched) == known


@pytest.mark.parametrize(
    ("half", "known"),
    [
        ((0.03, 0.02, 0.04), "yes"),  # three times as much, but 0.02 in its own unit
        ((0.15, 0.14, 0.16), "no"),
        ((0.03, -0.2, 0.26), "not known"),
    ],
)
@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": (-0.2, 0.2), "side": "within"}])
def test_a_slope_that_may_be_zero_moves_in_its_own_unit(half, known, limits) -> None:
    claim = made_claim(robustness=WAYS, **limits)
    assert robust(claim, (0.01, 0.005, 0.015), half, (0.02, 0.01, 0.03)) == known


def test_without_both_ways_robustness_is_not_known() -> None:
    effects = {"headline": (4.0, 3.9, 4.1), "half": (4.0, 3.9, 4.1), "text_matched": (4, 3.9, 4.1)}
    for missing in ("half", "text-matched"):
        kept = {name: each for name, each in WAYS.items() if name != missing}
        assert made_verdict(made_claim(robustness=kept), **effects).robust == "not known"


# --- translation quality -----------------------------------------------------------------------


def test_a_metric_is_judged_by_its_correlation_with_the_loss() -> None:
    frame = rows("c", ("eng-deu",), noise=0.0)
    random = np.random.default_rng(0)
    claim = made_claim(
        effect="metric_linear",
        measure="correlation",
        limit=-0.975,
        side="<=",
        options={"metric": "chrf", "pairs": ["eng-deu"], "needs": {"cells": 16}},
    )

    def with_scores(scores: object) -> Outcome:
        evidence = Evidence(frame=frame.assign(chrf=scores))
        return judge(claim, claim.headline, evidence)

    line = with_scores(70 - 10 * frame["cross_entropy"])
    assert line.verdict == YES and line.effect.value == pytest.approx(-1)
    assert line.units["eng-deu"]["metric_range"].value > 10
    assert with_scores(30 + 10 * random.standard_normal(len(frame))).verdict == NO
    missing = with_scores(math.nan)
    assert missing.verdict == OPEN and "no run has been decoded" in missing.why
    few = with_scores((70 - 10 * frame["cross_entropy"]).where(frame.index < 8))
    assert few.verdict == OPEN and "8 of 16 cells are decoded" in few.why
