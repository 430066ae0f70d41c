"""The planner's chart draws what the law in Python predicts, and its page carries the tables."""

from __future__ import annotations

import io
import json
import re

import pandas as pd
import pytest
from synthetic import loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.laws import Importance, recommend_weights
from mnmt_repro.papers.charts.display import show
from mnmt_repro.papers.charts.planner import (
    datasets,
    loss_axis,
    losses_csv,
    planner,
    planner_coefficients,
    weights_covered,
    with_controls,
)
from mnmt_repro.papers.effects import fractions, scaling

N = 20_000


@pytest.fixture(scope="module")
def points():
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=lambda q: q + 0.3 * q * (1 - q))

    return scaling.observed(rows("some-cohort", loss=loss))


@pytest.fixture(scope="module")
def laws(points):
    return fractions.fraction_fits(points)


def test_the_recommended_mixture_is_that_of_the_law(laws):
    found = datasets(laws, N, 0.5, 0.3)
    expected = recommend_weights(laws, N, Importance(by_pair={"eng-deu": 0.5, "eng-zho": 0.5}))
    (chosen,) = found["chosen"]
    assert chosen["p"] == pytest.approx(expected.weights["eng-deu"], abs=1e-4)
    ends = [expected.weights_low["eng-deu"], expected.weights_high["eng-deu"]]
    assert [chosen["low"], chosen["high"]] == pytest.approx(ends, abs=1e-4)
    assert found["baseline"] == [{"p": 0.3}]
    curve = pd.DataFrame(found["curve"]).set_index(["name", "p"])
    half = curve.loc[("English→Chinese", 0.3)]
    assert half["loss"] == pytest.approx(laws["eng-zho"].predict(0.7, N)[0], abs=1e-4)
    assert half["low"] < half["loss"] < half["high"]
    mean = pd.DataFrame(found["mean"])
    assert mean.loc[mean["loss"].idxmin(), "p"] == pytest.approx(chosen["p"], abs=0.011)


def test_observed_points_stand_at_the_weight_of_the_first_pair(laws):
    found = pd.DataFrame(datasets(laws, N, 0.5, 0.5)["points"])
    assert len(found) == sum(law.observations for law in laws.values())
    chinese = found[found["name"] == "English→Chinese"]
    assert set(chinese["p"]) == {0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95}
    assert found[found["near"]]["n"].nunique() == 1
    assert abs(found[found["near"]]["n"].iloc[0] / N - 1) < 0.5


def test_the_axes_are_those_of_all_sizes(laws):
    chart = planner(laws, N).to_dict()
    scales = {
        json.dumps(part["encoding"].get("y", {}).get("scale"))
        for part in chart["vconcat"][0]["layer"]
    }
    low, high = loss_axis(laws, N)
    assert scales == {"null", json.dumps({"domain": [low, high], "nice": False, "zero": False})}
    for n in (min(laws["eng-deu"].law.n), 10 * max(laws["eng-deu"].law.n)):
        assert all(low < laws["eng-deu"].predict(p, n)[0] < high for p in (0.1, 0.5, 0.95))
        assert loss_axis(laws, n) == pytest.approx((low, high), rel=0.01)
    small = min(laws["eng-deu"].law.n) / 100
    assert loss_axis(laws, small)[1] > laws["eng-deu"].predict(0.1, small)[0] > high


def test_what_is_extrapolated_is_hatched(laws):
    lines = datasets(laws, N, 0.5, 0.5)["hatch"]
    inside = {(round(line["x"], 9), round(line["x2"], 9)) for line in lines}
    assert inside == {(0.0, 0.05), (0.95, 1.0)}
    beyond = datasets(laws, 10 * max(laws["eng-deu"].law.n), 0.5, 0.5)["hatch"]
    assert {(line["x"], line["x2"]) for line in beyond} == {(0.0, 1.0)}


def test_nothing_is_recommended_outside_the_trained_weights(laws):
    assert weights_covered(laws) == pytest.approx((0.05, 0.95))
    assert datasets(laws, N, 0.01, 0.5)["chosen"] == []


def test_nothing_is_recommended_where_a_fraction_is_not_identified(laws, points):
    without_alone = fractions.fraction_fits(points[points["p"] < 1], form="eq13")
    assert all(law.identified and law.doubts() for law in without_alone.values())
    assert datasets(laws, N, 0.5, 0.5)["chosen"]
    assert datasets(without_alone, N, 0.5, 0.5)["chosen"] == []


def test_three_pairs_and_laws_without_an_answer_are_refused(laws, points):
    with pytest.raises(InputError, match="two pairs"):
        planner({**laws, "eng-fra": laws["eng-deu"]}, N)
    one_size = fractions.fraction_fits(points[points["n"] == points["n"].min()])
    with pytest.raises(InputError, match="eng-deu: its law is not identified"):
        planner(one_size, N)


def test_the_page_carries_the_tables_that_the_browser_fits(laws, points):
    figure = show(
        planner(laws, N),
        name="planner",
        alt="Losses.",
        data=planner_coefficients(laws),
        provenance="Made up.",
    )
    tables = {"a </script>": losses_csv(points)}
    text = with_controls(figure, tables, settings={"n": N}, names={}).html
    content = json.loads(re.search(r'planner-tables">(.*?)</script>', text)[1])
    table = pd.read_csv(io.StringIO(content["tables"]["a </script>"]))
    assert list(table.columns) == ["pair", "p", "n", "loss"] and len(table) == len(points)
    assert table["loss"].to_numpy() == pytest.approx(points["loss"].to_numpy(), abs=1e-6)
    assert figure.to_html() in text
