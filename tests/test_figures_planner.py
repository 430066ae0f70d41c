"""The planner's chart computes what the law in Python predicts."""

from __future__ import annotations

import re

import pytest
import vl_convert
from synthetic import loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.figures import capacity, scaling
from mnmt_repro.figures.planner import STEP, planner, sizes_offered, weights_covered
from mnmt_repro.laws import Importance, recommend_weights

LABEL = re.compile(
    r">N = ([\d.]+)k: weight ([\d.]+) for English→German<.*>losses ([\d.]+) and ([\d.]+)<",
    re.DOTALL,
)


@pytest.fixture(scope="module", params=["eq12", "eq13"])
def laws(request):
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=lambda q: q + 0.3 * q * (1 - q))

    points = scaling.observed(rows("some-cohort", loss=loss))
    return capacity.fraction_fits(points, request.param)


def test_the_recommended_mixture_is_that_of_the_law(laws):
    chart = planner(laws)
    exponent = next(p["value"] for p in chart.to_dict()["params"] if p["name"] == "n")
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    thousands, weight, first, second = map(float, LABEL.search(svg).groups())
    assert 1000 * thousands == pytest.approx(10**exponent, rel=5e-3)
    preference = Importance(weights={"eng-deu": 0.5, "eng-zho": 0.5})
    expected = recommend_weights(laws, 10**exponent, preference)
    assert weight == pytest.approx(expected.weights["eng-deu"], abs=STEP)
    assert first == pytest.approx(laws["eng-deu"].predict(weight, 10**exponent)[0], abs=6e-4)
    assert second == pytest.approx(laws["eng-zho"].predict(1 - weight, 10**exponent)[0], abs=6e-4)


def test_the_axes_are_those_of_all_sizes(laws):
    chart = planner(laws).to_dict()
    low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
    sizes = list(sizes_offered(laws["eng-deu"].n).values())
    for n in sizes:
        assert all(low < laws["eng-deu"].predict(p, n)[0] < high for p in (0.05, 0.5, 0.95))


def test_nothing_is_recommended_outside_the_trained_weights(laws):
    assert weights_covered(laws) == pytest.approx((0.05, 0.95))
    spec = planner(laws).to_dict()
    next(p for p in spec["params"] if p["name"] == "w")["value"] = 0.01
    svg = vl_convert.vegalite_to_svg(spec)
    assert "No recommendation: the best weight" in svg
    assert "is not among those trained, 0.05 to 0.95" in svg
    assert not LABEL.search(svg)


def test_three_pairs_are_refused(laws):
    with pytest.raises(InputError, match="two pairs"):
        planner({**laws, "eng-fra": laws["eng-deu"]})
