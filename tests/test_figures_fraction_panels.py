"""Figure 6 on rows whose fractions are known, by both estimators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.effects import fractions as panels
from mnmt_repro.papers.effects.grids import read_grid

COHORT = "webtech-en-dezh"
WEIGHTS = (0.05, 0.3, 0.5, 1.0)
JOINT, DIRECT = panels.ESTIMATORS["eq10"], panels.ESTIMATORS["eq8"]


def tripled(p: float) -> float:
    """f(1) = 1 and f(0.05) = 0.15: three times the weight."""
    return p ** (np.log(0.15) / np.log(0.05))


def lines(fraction=tripled, *, panel="domain", line="in-domain", **options):
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=fraction)

    stored = rows(COHORT, loss=loss, noise=0.0, weights=WEIGHTS, **options)
    grid = read_grid(stored, COHORT)
    return panels.fraction_lines(grid, panel=panel, line=line)


def test_both_estimators_find_the_fraction():
    found = lines()
    assert set(found["estimator"]) == {JOINT, DIRECT}
    assert set(found["language"]) == {"German", "Chinese"}
    np.testing.assert_allclose(found["f"], found["p"].map(tripled), rtol=2e-3)
    joint = found[found["estimator"] == JOINT]
    assert len(joint) == 2 * 4
    assert (joint["sizes"] == 8).all()
    assert (joint["f_low"] <= joint["f"]).all() and (joint["f"] <= joint["f_high"]).all()


def test_the_range_of_the_direct_estimator_is_over_sizes():
    # f = p**(1 + 0.1 log(n / n_least)): p at the least size, smaller above it, 1 at p = 1.
    def fraction(p: float, n: float) -> float:
        return p ** (1 + 0.1 * np.log(n / SIZES[0]))

    def loss(p: float, n: float) -> float:
        return loss_of(fraction(p, n), n)

    grid = read_grid(rows(COHORT, loss=loss, noise=0.0, weights=WEIGHTS), COHORT)
    found = panels.fraction_lines(grid, panel="a", line="b")
    found = found[found["language"] == "German"]
    half = found[(found["estimator"] == DIRECT) & (found["p"] == 0.5)].iloc[0]
    # Only sizes whose effective size is among those trained can be solved for.
    kept = [fraction(0.5, n) for n in SIZES if fraction(0.5, n) * n >= SIZES[0]]
    assert half["sizes"] == len(kept) == 6
    assert half["f_high"] == pytest.approx(max(kept), rel=2e-3)
    assert half["f_low"] == pytest.approx(min(kept), rel=2e-3)
    assert half["f"] == pytest.approx(np.median(kept), rel=2e-3)


def test_relative_capacity_is_three_where_it_was_put_in():
    both = pd.concat([lines(), lines(panel="direction"), lines(line="other", fraction=np.sqrt)])
    table = panels.capacity_ratios(both)
    assert len(table) == 4  # in two panels, yet once
    assert list(table["what"]) == ["in-domain", "in-domain", "other", "other"]
    own = table[table["what"] == "in-domain"]
    np.testing.assert_allclose(own[["f / p", "f / p directly"]], 3.0, rtol=2e-3)
    np.testing.assert_allclose(own["f"], 0.15, rtol=2e-3)
    other = table[table["what"] == "other"]
    np.testing.assert_allclose(other["f / p"], np.sqrt(0.05) / 0.05, rtol=2e-3)
    assert (table["sizes"] > 0).all()


def test_the_ratio_of_two_lines_with_and_without_the_text():
    """The second line has half the fraction at every weight below one, and 0.8 of the text."""
    base = lines().assign(w=lambda frame: frame["p"])
    half = np.where(base["p"] < 1, 0.5, 1.0)
    other = base.assign(line="other", f=base["f"] * half, w=base["p"] * np.where(half < 1, 0.8, 1))
    ratios = panels.line_ratios(pd.concat([base, other]).astype({"f": object}))
    assert set(ratios["language"]) == {"German", "Chinese"}
    assert set(ratios["line"]) == {"other"} and set(ratios["weights"]) == {3}
    np.testing.assert_allclose(ratios["ratio of f"], 0.5)
    np.testing.assert_allclose(ratios["ratio of f / w"], 0.5 / 0.8)
    assert panels.line_ratios(base).empty


def test_the_same_runs_under_two_labels_are_one_row_that_names_both():
    found = lines()
    again = found[found["language"] == "German"].assign(panel="direction", line="one to many")
    table = panels.capacity_ratios(pd.concat([found, again]))
    assert dict(zip(table["language"], table["what"], strict=True)) == {
        "German": "in-domain, one to many",
        "Chinese": "in-domain",
    }


def test_a_weight_that_nobody_trained_has_no_capacity():
    assert panels.capacity_ratios(lines(), 0.2).empty


def test_capacity_that_only_the_joint_law_gives_has_no_range():
    found = lines()
    table = panels.capacity_ratios(found[found["estimator"] == JOINT])
    assert table["f / p"].notna().all()
    assert table["f / p directly"].isna().all()
    assert (table["sizes"] == 0).all()


@pytest.mark.parametrize("tier", panels.SIMILARITY_COHORTS)
def test_grids_of_different_similarity_differ_in_nothing_else(tier):
    cohorts = panels.SIMILARITY_COHORTS[tier].items()
    found = {value: get_cohort(name, tier) for value, name in cohorts}
    unrelated = found[0.0]
    for similarity, cohort in found.items():
        config = replace(unrelated.corpus.conlang, similarity=similarity)
        assert cohort.corpus == replace(unrelated.corpus, name=cohort.name, conlang=config)
        assert (cohort.pairs, cohort.tags) == (unrelated.pairs, unrelated.tags)


def test_a_comparison_draws_what_there_is_and_names_what_there_is_not():
    stored = pd.concat(
        [
            rows(COHORT, weights=WEIGHTS, noise=0.0),
            rows("webtech-dezh-en", ("deu-eng", "zho-eng"), sizes=SIZES[:2]),
        ]
    )
    wanted = [
        panels.Line(panel="domain", label="in-domain", cohort=COHORT, pairs=("eng-deu",)),
        panels.Line(panel="direction", label="out of English", cohort=COHORT),
        panels.Line(panel="direction", label="into English", cohort="webtech-dezh-en"),
        panels.Line(panel="similarity", label="beside French", cohort="webtech-en-defr"),
        panels.Line(panel="direction", label="again", cohort="webtech-en-defr"),
    ]
    found = panels.compare_lines(stored, wanted)
    drawn = found.lines.groupby("panel", sort=False)["line"].unique()
    assert {panel: list(names) for panel, names in drawn.items()} == {
        "domain": ["in-domain"],
        "direction": ["out of English"],
    }
    domain = found.lines[found.lines["panel"] == "domain"]
    assert set(domain["language"]) == {"German"}
    assert set(found.rows["cohort"]) == {COHORT}


def test_the_lines_of_a_panel_rest_on_the_same_cells():
    """A grid of five sizes and four weights beside a whole one: f of both is read off 5 by 4."""
    few = {"sizes": SIZES[:5], "weights": (0.05, 0.5, 0.9, 1.0)}
    whole = rows(COHORT, noise=0.05, seed=1)
    stored = pd.concat([whole, rows("webtech-dezh-en", ("deu-eng", "zho-eng"), **few)])
    wanted = [
        panels.Line(panel="direction", label="out of English", cohort=COHORT),
        panels.Line(panel="direction", label="into English", cohort="webtech-dezh-en"),
        panels.Line(panel="alone", label="out of English", cohort=COHORT),
    ]
    found = panels.compare_lines(stored, wanted)
    beside = found.lines[found.lines["panel"] == "direction"]
    assert set(beside["p"]) == {0.05, 0.5, 0.9, 1.0}
    assert beside["sizes"].max() == 5
    kept = whole[whole["n_non_embedding"].isin(SIZES[:5]) & whole["p"].isin(few["weights"])]
    own = panels.fraction_lines(read_grid(kept, COHORT), panel="direction", line="out of English")
    mine = beside[beside["line"] == "out of English"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, own)
    assert set(found.lines.loc[found.lines["panel"] == "alone", "p"]) > set(beside["p"])
    far = stored[(stored["cohort"] == COHORT) | (stored["n_non_embedding"] < SIZES[4])]
    far = far[(far["cohort"] != COHORT) | (far["n_non_embedding"] > SIZES[1])]
    apart = panels.compare_lines(far, wanted)
    assert "direction" not in set(apart.lines["panel"])  # too few weights and sizes in common


def test_a_comparison_of_nothing_is_empty():
    found = panels.compare_lines(
        rows("some-cohort", weights=(1.0,)),
        [panels.Line(panel="a", label="b", cohort="conlang-five")],
    )
    assert found.lines.empty and found.rows.empty
