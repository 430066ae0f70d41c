"""Worlds of claims A16, B11, B12 and B14: simulated data have the effects that a world states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from stored_claims import ROOT, declared_claims

from mnmt_repro import results
from mnmt_repro.analysis.intervals import NoRowsYet
from mnmt_repro.analysis.published import zoomed
from mnmt_repro.claims.attainability import VariantData, _printed_sides
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.simulators import AnalysisData, MetricData
from mnmt_repro.results import results_root

COHORT = "software25-table3"
RANDOM = np.random.default_rng(0)


def analyses(name: str, units: list[dict[str, str]], models: tuple[str, ...]) -> pd.DataFrame:
    """Analyses of two runs of three seeds, whose values are unlike for each unit and run."""
    records = []
    for model, seed, setting in product(
        models, (1, 2, 3), ("full recipe", "no learning-rate scaling")
    ):
        for place, unit in enumerate(units):
            value = (0.3 + 0.01 * place) * (1 + 0.02 * RANDOM.standard_normal())
            records.append(
                {
                    "run_id": f"{model} {setting} {seed}",
                    "tier": "mini",
                    "cohort": COHORT,
                    "variant": f"{model}, {setting}",
                    "updates_share": 0.3,
                    "seed": seed,
                    "commit": "",
                    "analysis": name,
                    "layer": "",
                    "block": "",
                    "pair": "",
                    "value": value,
                }
                | unit
            )
    return pd.DataFrame(records)


def test_a_world_of_forgetting_has_its_relief_and_its_trend() -> None:
    claim = declared_claims()["B12"]
    pairs = [f"p{number:02}" for number in range(40)]
    frame = pd.DataFrame(
        {
            "pair": pairs,
            "p": np.geomspace(0.1, 0.001, 40),
            "tier": "mini",
            "cohort": "software25-main",
            "variant": "M20",
            "test_set": "indomain",
            "domain": "all",
        }
    )
    found = analyses("substituted", [{"pair": pair} for pair in pairs], ("Mt25-wide", "Mt25"))
    data = AnalysisData(claim, claim.scopes[0], Evidence(frame=frame, analyses=found))
    assert 0.003 < data._value_sd < 0.012  # 2 % of about 0.3 to 0.7, with two of three seeds free
    data._run_sd = data._value_sd = 0.0
    drawn = [data.draw({"relief": 0.25, "smallest": 3.0}, RANDOM).analyses for _ in range(20)]
    table = pd.concat(drawn).pivot_table(index="pair", columns="variant", values="value")
    scaled, unscaled = table["Mt25, full recipe"], table["Mt25, no learning-rate scaling"]
    np.testing.assert_allclose(scaled / unscaled, 0.75)
    line = np.polynomial.Polynomial.fit(np.linspace(0, 1, 40), unscaled[pairs], 1)
    assert line(1) / line(0) == pytest.approx(3.0, rel=0.02)


def test_a_world_of_distances_changes_each_block_as_stated() -> None:
    claim = declared_claims()["B14"]
    places = product(("encoder.0", "encoder.1", "decoder.0"), ("old", "new", "between"))
    units = [{"layer": layer, "block": block} for layer, block in places]
    found = analyses("moved", units, ("Mt25-wide",))
    data = AnalysisData(claim, claim.scopes[0], Evidence(frame=pd.DataFrame(), analyses=found))
    data._run_sd = data._value_sd = 0.0
    drawn = data.draw({"moved": {"old": -0.2, "new": 0.1}}, RANDOM).analyses
    logs = np.log(drawn.pivot_table(index=["block", "layer"], columns="variant", values="value"))
    change = logs["Mt25-wide, full recipe"] - logs["Mt25-wide, no learning-rate scaling"]
    mean = change.groupby("block").mean()
    assert mean["old"] == pytest.approx(-0.2) and mean["new"] == pytest.approx(0.1)
    assert mean["between"] == pytest.approx(0.0)
    assert change.groupby("block").std()["old"] > 1e-3  # as uneven over layers as observed


def test_a_world_of_scores_leaves_the_stated_share_unexplained() -> None:
    claim = declared_claims()["A16"]
    loss = np.linspace(2, 4, 400)
    frame = pd.DataFrame(
        {
            "pair": "eng-deu",
            "p": 0.5,
            "tier": "mini",
            "cohort": "webtech-en-defr",
            "test_set": "indomain",
            "domain": "all",
            "cross_entropy": loss,
            "chrf": 50 - 10 * loss,
        }
    )
    scope = claim.scopes[0]
    drawn = MetricData(claim, scope, Evidence(frame=frame)).draw({"unexplained": 0.2}, RANDOM)
    r = np.corrcoef(loss, drawn.frame["chrf"])[0, 1]
    assert r < 0 and r**2 == pytest.approx(0.8, abs=0.04)
    with pytest.raises(NoRowsYet, match="no run is scored with chrf"):
        MetricData(claim, scope, Evidence(frame=frame.assign(chrf=np.nan)))


def test_a_world_of_two_sides_has_their_gains_over_the_baseline() -> None:
    claim = declared_claims()["B11"]
    evidence = Evidence(frame=results.load(corpus="software25"))
    assert results_root() == ROOT / "data" / "results"
    data = VariantData(claim, claim.scopes[0], evidence)

    def gains(world: dict) -> pd.Series:
        frame = data.draw(world, RANDOM).frame
        whole = frame["updates_share"].eq(1.0) | frame["variant"].eq("Mt25-v1")
        frame = frame[(frame["cohort"] == claim.scopes[0].cohorts[0]) & whole]
        side = np.where(frame["pair"].str.startswith("eng-"), "out", "into")
        loss = np.log(frame["cross_entropy"]).groupby([frame["variant"], side]).mean()
        return 100 * (loss["M25-wide"] - loss["Mt25-v1"])

    measured = gains({"sides": {"out": 6.0, "into": -4.0}})
    assert measured["out"] == pytest.approx(6.0, abs=0.8)
    assert measured["into"] == pytest.approx(-4.0, abs=0.8)
    out = [cell.relative for cell in zoomed() if cell.group.startswith("eng-")]
    assert _printed_sides()["out"] == pytest.approx(np.mean(out))
