"""The steady tier: what is declared, and worlds whose truth its claims' estimands must find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stored_claims import declared_claims

from mnmt_repro.analysis.intervals import Measures, NoRowsYet
from mnmt_repro.architecture import parameter_counts
from mnmt_repro.claims.attainability import GridData, _planned
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.judging import judge
from mnmt_repro.claims.schema import Scope
from mnmt_repro.cohorts import steady
from mnmt_repro.cohorts.catalogue import declared, find_cohort
from mnmt_repro.runs.parents import plan

NAMES = {cohort.name for cohort in declared("steady")}
ALPHA, L_INF = 0.3, 0.2145


def pilot(noise: float, seed: int = 0) -> Evidence:
    """Rows of the pilot's cohorts: f(p) is the root of p."""
    random = np.random.default_rng(seed)
    records = []
    for name in ("conlang-pilot", "conlang-pilot-seeds"):
        for run in find_cohort(name, "steady").runs():
            n = parameter_counts(run.model)["non_embedding"]
            for pair, p in run.mixture.items:
                loss = L_INF + 13.5 * (p**0.5 * n) ** -ALPHA
                loss *= np.exp(noise * random.standard_normal())
                records.append(
                    {
                        "cohort": "conlang-pilot",
                        "tier": "steady",
                        "test_set": "indomain",
                        "domain": "all",
                        "pair": pair,
                        "p": p,
                        "n_non_embedding": n,
                        "cross_entropy": loss,
                    }
                )
    return Evidence(frame=pd.DataFrame(records))


ONE, MANY, SIM = "conlang-steady", "conlang-steady-many2one", "conlang-steady-sim"
COHORTS = {
    "A9": (ONE, f"{SIM}05"),
    "A10": (ONE, MANY),
    "A12": (MANY,),
    "A20": (ONE, "conlang-steady-three"),
    "A21": (ONE, f"{SIM}025", f"{SIM}05", f"{SIM}075", f"{SIM}1"),
}
FEW = {"sizes": 4, "weights": 4, "span": 25}
OPTIONS = {
    "A9": {"needs": FEW, "weights": [0.1, 0.5, 0.9]},
    "A20": {"alike": True, "needs_predicted": {"sizes": 4, "mixtures": 3}},
    "A21": {"needs": FEW},
}


def steady_scope(claim: str) -> Scope:
    """A claim on the steady cohorts."""
    return Scope(
        name="steady",
        cohorts=COHORTS.get(claim, (ONE,)),
        tier="steady",
        options={"errors": "relative"} | OPTIONS.get(claim, {}),
    )


def measured(claim: str, world: dict[str, object]) -> Measures:
    """What a claim's estimand finds in a planned grid with next to no noise."""
    entry, where = declared_claims()[claim], steady_scope(claim)
    data = GridData(entry, where, pilot(1e-5))
    outcome = judge(entry, where, data.draw(world, np.random.default_rng(0)))
    assert outcome.units, outcome.reason
    return outcome.units[outcome.unit]


@pytest.mark.parametrize(
    ("claim", "world", "measure", "truth"),
    [
        ("A3", {"alpha": 0.4}, "shift", 0.4),
        ("A3", {"alpha": -0.4}, "shift", -0.4),
        ("A4", {"l_inf": 0.05}, "shift", 0.05),
        ("A5", {"spread": 0}, "log_ratio", 0.5 * ALPHA * np.log(20)),  # f = root of p
        ("A5", {"f": 1.0}, "log_ratio", 0.0),
        ("A7", {"slope": 0}, "slope", 0.0),
        ("A7", {"slope": 0.1}, "slope", 0.1),
        ("A9", {"contrast": 0.446}, "mean_log_ratio", 0.446),
        ("A10", {"contrast": 0.416}, "mean_log_ratio", 0.416),
        ("A11", {"f_over_p": {0.05: 3.75}}, "capacity", 3.75),
        ("A12", {"f_over_p": {0.05: 7.5}}, "capacity", 7.5),
        ("A13", {"f_over_p": {"all": 0.64}}, "mean_log_ratio", np.log(0.64)),
        ("A14", {"f": "eq12"}, "error", 0.0),
        ("A15", {"f": "eq13"}, "error", 0.0),
        ("A20", {"f": "eq12", "contrast": 0.0}, "error", 0.0),
        ("A21", {"slope_of_similarity": 0.446}, "slope", 0.446),
    ],
)
def test_an_estimand_finds_the_truth_of_a_world(
    claim: str, world: dict[str, object], measure: str, truth: float
) -> None:
    assert measured(claim, world)[measure].value == pytest.approx(truth, abs=2e-3)


def test_worlds_that_are_not_so_are_seen() -> None:
    assert measured("A6", {"spread": 0.0})["r2_joint"].value > 0.9999
    assert measured("A6", {"spread": 0.2})["error_ratio"].value > 2
    assert measured("A14", {"f": "eq12", "spread": 0.2})["error"].value > 0.01
    assert measured("A20", {"f": "eq12", "contrast": 0.405})["error"].value > 0.03


def test_a_fraction_is_interpolated_where_single_pairs_have_its_losses() -> None:
    assert measured("A11", {"f_over_p": {0.05: 3.75}})["interpolated"].value >= 3
    assert measured("A11", {"f_over_p": {0.05: 0.4}})["interpolated"].value < 3


def test_a_grid_is_planned_only_while_it_lacks_cells_of_its_own() -> None:
    claim, scope, before = declared_claims()["A5"], steady_scope("A5"), pilot(0.01)
    plan = _planned(scope, before)
    assert not plan["own"].all()  # further seeds and sizes are declared beside it
    scatter = np.exp(0.1 * np.random.default_rng(0).standard_normal(len(plan)))
    own = plan.assign(cross_entropy=plan["cross_entropy"] * scatter)[plan["own"]]

    def noise(rows: pd.DataFrame) -> float:
        evidence = Evidence(frame=pd.concat([before.frame, rows], ignore_index=True))
        return float(GridData(claim, scope, evidence)._noise.mean())

    assert noise(own) == pytest.approx(0.1, rel=0.2)
    assert noise(own[own["p"] != 0.05]) < 0.03


def test_the_noise_of_a_plan_is_what_the_law_of_the_pilot_leaves() -> None:
    claim, scope = declared_claims()["A5"], steady_scope("A5")
    found = [GridData(claim, scope, pilot(0.03, seed))._noise.mean() for seed in range(40)]
    assert np.exp(np.log(found).mean()) == pytest.approx(0.03, rel=0.1)
    with pytest.raises(NoRowsYet, match="no rows of conlang-pilot"):
        GridData(claim, scope, Evidence(frame=pilot(0.03).frame.iloc[:0]))


def test_every_half_is_its_cohorts_first_seed_and_is_gone_on_from(tmp_path: Path) -> None:
    cohorts = {cohort.name: cohort for cohort in declared("steady")}
    halves = [name for name in cohorts if name.endswith("-half")]
    assert len(halves) > 8
    for name in halves:
        whole = {run.trajectory: run for run in cohorts[name.removesuffix("-half")].runs()}
        for half in cohorts[name].runs():
            longer = whole[half.trajectory].training
            assert half.training.planned_tokens * 2 == longer.planned_tokens
            assert half.seed == 1
    grid = cohorts["conlang-steady"]
    tasks = plan(
        [*cohorts["conlang-steady-half"].runs(), *replace(grid, seeds=(1,)).runs()],
        frozenset(),
        tmp_path,
    )
    assert sum(bool(task.after) for task in tasks) == len(tasks) / 2


def test_sizes_span_a_factor_of_25_in_equal_steps_with_one_layer_each() -> None:
    runs = list(find_cohort("conlang-steady", "steady").runs())
    n = sorted({parameter_counts(run.model)["non_embedding"] for run in runs})
    assert len(runs) == 9 * 8 * 3 and len(n) == 8 and n[-1] / n[0] > 25
    assert {run.model.encoder_layers for run in runs} == {1}
    steps = np.diff(np.log(n))
    assert steps.max() / steps.min() < 1.7


def test_no_run_of_the_pilot_is_one_that_a_claim_reads() -> None:
    pilots = {name for name in NAMES if "-pilot" in name}
    assert len(pilots) == 7
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for cohort in declared("steady"):
        runs = list(cohort.runs())  # on real text, the pilot shares its corpus and no run
        seen[cohort.name in pilots] |= {run.data_hash for run in runs if run.conlang}
        seen[cohort.name in pilots] |= {run.config_hash for run in runs}
    assert not seen[True] & seen[False]
    assert set(steady.RATES) == set(steady.BUDGETS)
    for width, rates in steady.TRIALS.items():
        assert min(rates) < steady.RATES[width] < max(rates)
