"""The planner's chart computes what the laws in Python predict."""

from __future__ import annotations

import pytest
from synthetic import loss_of, rows

from mnmt_repro.laws import recommend_weights
from mnmt_repro.papers.charts.planner import STEP, best_weights, planner, sizes_offered
from mnmt_repro.papers.effects import fractions, scaling


@pytest.fixture(scope="module")
def laws():
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=lambda q: q + 0.3 * q * (1 - q))

    return fractions.fraction_fits(scaling.observed(rows("some-cohort", loss=loss)))


def test_the_best_weights_are_those_of_recommend(laws) -> None:
    best = best_weights(laws, draws=500).set_index(["n", "importance"])
    sizes = sizes_offered(laws)
    assert sizes[-1] <= 4 * max(laws["eng-deu"].law.n) < sizes[-1] + sizes[0]
    for n, importance in ((sizes[1], 0.5), (sizes[-1], 0.7)):
        wish = {"eng-deu": importance, "eng-zho": 1 - importance}
        expected = recommend_weights(laws, n, wish)
        row, other = best.loc[(n, importance)], expected.table.loc["eng-deu"]
        assert row["best"] == pytest.approx(other["p"], abs=STEP)
        ends = [other["p_low"], other["p_high"]]
        assert [row["low"], row["high"]] == pytest.approx(ends, abs=3 * STEP)


def test_the_chart_evaluates_the_laws_exactly(laws) -> None:
    chart = planner(laws, best_weights(laws, draws=20), 20_000).to_dict()
    formulas = [
        step["calculate"].replace("datum.p", "p")
        for layer in chart["layer"]
        if "mark" in layer and layer["mark"]["type"] == "line"
        for step in layer["transform"]
        if step.get("as") in ("first", "second", "mean")
    ]
    p, n, importance = 0.3, 50_000, 0.7
    names = {"pow": pow, "p": p, "size": n, "importance": importance}
    first, second, mean = (eval(formula, names) for formula in formulas)
    expected = laws["eng-deu"].predict(p, n)[0], laws["eng-zho"].predict(1 - p, n)[0]
    assert (first, second) == pytest.approx(expected, rel=1e-12)
    assert mean == pytest.approx(0.7 * expected[0] + 0.3 * expected[1], rel=1e-12)
