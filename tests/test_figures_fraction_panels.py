"""Figure 6 on rows whose fractions are known, by the joint law."""

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


def tripled(p: float) -> float:
    """f(1) = 1 and f(0.05) = 0.15: three times the weight."""
    return p ** (np.log(0.15) / np.log(0.05))


def lines(fraction=tripled, *, panel="domain", line="in-domain", **options):
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=fraction)

    stored = rows(COHORT, loss=loss, noise=0.0, weights=WEIGHTS, **options)
    grid = read_grid(stored, COHORT)
    return panels.fraction_lines(grid, panel=panel, line=line)


def test_the_joint_law_finds_the_fraction():
    found = lines()
    assert set(found["language"]) == {"German", "Chinese"}
    np.testing.assert_allclose(found["f"], found["p"].map(tripled), rtol=2e-3)
    assert len(found) == 2 * 4 and (found["sizes"] == 8).all()
    assert found["f"].between(found["f_low"], found["f_high"]).all()


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
