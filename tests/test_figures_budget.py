"""Longer runs against shorter ones, on cells whose law is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import rows

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.budget import budget_laws_chart, fraction_against_budget
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.effects import settled

COHORTS = ("webtech-en-dezh", "webtech-en-dezh-8m", "webtech-en-dezh-16m")
ALPHA = 0.3


def tilted(p: float, n: float) -> float:
    """Eq. 11 with f = p N^-0.2: a fraction that falls with size."""
    f = p * (n / 2_000) ** -0.2 if p < 1 else 1.0
    return 20.0 * (f * n) ** -ALPHA


def frames(**options) -> pd.DataFrame:
    short = rows(COHORTS[0], noise=0.0, loss=tilted)
    longer = [
        rows(name, noise=0.0, weights=(0.1, 0.5, 1.0), loss=lambda p, n: 20.0 * (p * n) ** -ALPHA)
        for name in COHORTS[1:]
    ]
    return pd.concat([short, *longer], ignore_index=True).assign(passes=1.0, **options)


def cells() -> pd.DataFrame:
    return settled.cells_of(settled.common_rows(frames(), COHORTS))


def test_a_cohort_is_complete_with_all_its_runs_and_not_before():
    hashes = [run.config_hash for run in get_cohort(COHORTS[1]).runs()]
    assert settled.is_complete(pd.DataFrame({"config_hash": hashes}), COHORTS[1])
    assert not settled.is_complete(pd.DataFrame({"config_hash": hashes[1:]}), COHORTS[1])


def test_only_cells_that_all_budgets_have_are_compared():
    found = cells()
    assert sorted(found["budget"].unique()) == [4e6, 8e6, 16e6]
    assert set(found["p"]) == {0.1, 0.5, 1.0}
    assert (found.groupby("budget").size() == 2 * 3 * 8).all()


def test_without_common_cells_it_says_so():
    with pytest.raises(InputError, match="in all of"):
        settled.common_rows(frames(), [*COHORTS, "webtech-en-defr"])


def test_a_page_names_what_the_laws_table_holds():
    laws = settled.laws_by_budget(cells())
    shown = settled.budget_laws(laws)
    names = ["pair", "p", "budget", "α", "L∞", "L∞ at its bound", "R²", "slope of log f"]
    assert list(shown) == [*names, "low", "high", "sizes"]
    assert set(shown["pair"]) == {"English→German", "English→Chinese"}
    assert (shown["α"] == laws["alpha"]).all()


def test_laws_and_slopes_are_those_built_in():
    table = settled.laws_by_budget(cells())
    at = table.set_index(["pair", "p", "budget"])
    assert at.loc[("eng-deu", 0.5, 4e6), "slope"] == pytest.approx(-0.2, abs=1e-3)
    assert at.loc[("eng-deu", 0.5, 16e6), "slope"] == pytest.approx(0.0, abs=1e-3)
    # loss = 20 (p c N^0.8)^-0.3, an exponent of 0.24
    assert at.loc[("eng-zho", 0.1, 4e6), "alpha"] == pytest.approx(0.24, abs=1e-3)
    assert at.loc[("eng-zho", 0.1, 8e6), "alpha"] == pytest.approx(ALPHA, abs=1e-3)
    assert np.isnan(at.loc[("eng-deu", 1.0, 4e6), "slope"])


def test_fractions_are_those_built_in():
    found = settled.fractions_by_budget(cells())
    long = found[(found["budget"] == 16e6) & (found["p"] == 0.5)]
    np.testing.assert_allclose(long["f"], 0.5, rtol=1e-3)
    assert (found["p"] < 1).all()


def test_changes_count_and_subtract():
    table = pd.DataFrame(
        {
            "pair": "eng-deu",
            "p": [0.5, 1.0] * 2,
            "budget": [4e6, 4e6, 16e6, 16e6],
            "alpha": [0.1, 0.3, 0.25, 0.3],
            "at_bound": [True, True, False, True],
            "slope": [-0.4, np.nan, -0.1, np.nan],
        }
    )
    (row,) = settled.changes(table).to_dict("records")
    assert row["spread_before"] == pytest.approx(0.2)
    assert row["spread_after"] == pytest.approx(0.05)
    assert (row["at_bound_before"], row["at_bound_after"]) == (2, 1)
    assert (row["slope_before"], row["slope_after"]) == (-0.4, -0.1)


def test_charts_hold_every_pair_and_weight():
    found = cells()
    fractions = settled.fractions_by_budget(found)
    chart = fraction_against_budget(fractions).to_dict()
    assert [len(row["concat"]) for row in chart["vconcat"]] == [2, 2]
    laws = budget_laws_chart(settled.laws_by_budget(found)).to_dict()
    assert len(laws["concat"]) == 4
    for shown in laws["datasets"].values():  # slopes stand beside their weights
        assert all(abs(row["beside"] - row["p"]) < 0.03 for row in shown if "p" in row)
