"""The tiers steady and settled are declared as they should be: text, ways, halves and pilots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.papers.claims import load_claims
from mnmt_repro.papers.cohorts.catalogue import declared
from mnmt_repro.papers.cohorts.grids import Cohort
from mnmt_repro.papers.cohorts.settled import MIDDLE, REAL_WIDTHS, SMALL
from mnmt_repro.repository import ROOT
from mnmt_repro.runs.order import plan
from mnmt_repro.runs.spec import RunSpec

TIERS = ("steady", "settled")
COHORTS = {each.name: each for tier in TIERS for each in declared(tier) if isinstance(each, Cohort)}
SETTLED = [each for each in COHORTS.values() if each.tier == "settled"]
WAYS = [each for each in SETTLED if each.way != "sampled"]
HALVES = [name for name in COHORTS if name.endswith("-half")]
GERMAN = 0.464
"""Share of the target tokens where German and French have as many sentences: in stored runs."""


def size(run: RunSpec) -> int:
    return parameter_counts(run.model)["non_embedding"]


def own_tokens(run: RunSpec, pair: str, long: float = 0.5) -> float:
    """Target tokens of a pair per parameter; `long` is its share of tokens at even weights."""
    p = run.mixture.weights[pair]
    ours, others = p * long, (1 - p) * (1 - long)
    assert run.training.target_tokens is not None
    return run.training.target_tokens * ours / (ours + others) / size(run)


@pytest.mark.parametrize("name", ["conlang-settled", "conlang-settled-many2one"])
def test_the_largest_generated_models_have_as_much_text_as_the_paper_extrapolates_to(
    name: str,
) -> None:
    for cohort in (COHORTS[name], COHORTS[f"{name}-swapped"]):
        runs = list(cohort.runs())
        largest = max(runs, key=size)
        (small,) = (pair for pair, p in largest.mixture.items if p == SMALL)
        assert own_tokens(largest, small) == pytest.approx(65, abs=1)
        assert min(own_tokens(run, small) for run in runs) == own_tokens(largest, small)


def test_real_text_has_as_much_as_the_papers_poorest_cell() -> None:
    found = {
        run.size: own_tokens(run, "eng-deu", GERMAN)
        for run in COHORTS["webtech-settled"].runs()
        if run.mixture.weights["eng-deu"] == SMALL
    }
    sizes = [f"d{width}x1" for width in REAL_WIDTHS]
    assert [found[each] for each in sizes] == pytest.approx([56, 26], abs=0.5)
    assert min(found.values()) > 25


@pytest.mark.parametrize("cohort", WAYS, ids=lambda cohort: cohort.name)
def test_a_way_differs_from_sampled_runs_in_its_draws_alone(cohort: Cohort) -> None:
    sampled = list(replace(cohort, way="sampled").runs())
    wanted = [dict(run.mixture.weights) for run in sampled]
    runs = list(cohort.runs())
    assert {SMALL, 1 - SMALL} == {p for weights in wanted for p in weights.values()}
    for run, plain, weights in zip(runs, sampled, wanted, strict=True):
        how, usual = run.training, plain.training
        even = dict.fromkeys(weights, 0.5)
        assert run.weights == weights  # what rows are stored under
        if cohort.way == "text-matched":
            assert run.mixture.weights == even and how.loss_weights == weights
            assert how.batch_tokens == 2 * usual.batch_tokens
            assert how.target_tokens == 2 * usual.target_tokens
            changed = {"loss_weights": None, "batch_tokens": usual.batch_tokens,
                       "target_tokens": usual.target_tokens}  # fmt: skip
        else:
            assert run.mixture.weights == weights and how.first_weights == even
            assert how.first_share == 0.5
            changed = {"first_weights": None}
        assert replace(how, **changed) == usual
        assert run.config_hash != plain.config_hash
        assert (run.seed, run.model, run.tags) == (plain.seed, plain.model, plain.tags)


def test_claims_read_a_way_beside_the_single_pairs_of_sampled_runs() -> None:
    for claim in load_claims(ROOT / "data" / "claims"):
        for way, setting in claim.robustness.items():
            if way == "half" or setting.tier != "settled":
                continue
            first, *others = (COHORTS[name] for name in setting.cohorts)
            assert first.way == way and {each.way for each in others} == {"sampled"}, claim.id
            assert claim.headline.cohorts[0] in setting.cohorts, claim.id


def test_each_pair_is_small_in_as_many_seeds_as_the_other() -> None:
    for name in ("conlang-settled", "conlang-settled-matched", "conlang-settled-middle"):
        both = [COHORTS[name], COHORTS[f"{name}-swapped"]]
        small = MIDDLE if "middle" in name else SMALL
        first, other = ([run.weights["src-aaa"] for run in each.runs()] for each in both)
        assert set(first) == {small} and set(other) == {1 - small}
        assert len(first) == len(other) and not set(both[0].seeds) & set(both[1].seeds)
        assert both[1].repeats in (name, both[0].repeats)  # its rows are read with the first's


@pytest.mark.parametrize("name", HALVES)
def test_the_whole_budget_goes_on_from_half_of_it(name: str, tmp_path: Path) -> None:
    half, whole = COHORTS[name], COHORTS[name.removesuffix("-half")]
    names = list(COHORTS)
    assert names.index(name) < names.index(whole.name) or "-pilot" in name
    assert set(half.seeds) <= set(whole.seeds)
    assert half.tier == "steady" or half.seeds == whole.seeds
    runs = list(half.runs())
    longer = {run.trajectory: run for run in whole.runs()}
    for run in runs:
        assert run.training.planned_tokens * 2 == longer[run.trajectory].training.planned_tokens
    tasks = plan([*longer.values(), *runs], frozenset(), tmp_path)
    waits = {task.spec.run_id: task.after for task in tasks}
    for run in runs:
        assert waits[longer[run.trajectory].run_id] == {run.run_id} and not waits[run.run_id]


def test_runs_whose_weights_change_at_a_share_of_the_budget_start_anew(tmp_path: Path) -> None:
    runs = list(COHORTS["conlang-settled-equal-first"].runs())[:1]
    short = replace(runs[0], training=replace(runs[0].training, target_tokens=24_000_000))
    assert not any(task.after for task in plan([short, *runs], frozenset(), tmp_path))
