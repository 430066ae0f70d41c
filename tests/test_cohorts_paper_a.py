"""The cohorts that Paper A's appendices and open questions need, declared as data."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest

from mnmt_repro import results
from mnmt_repro.cohorts.catalogue import MINI_COHORTS, get_cohort, membership
from mnmt_repro.cohorts.grids import GRIDS, Cohort
from mnmt_repro.cohorts.names import cohort_name, pair_name
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.encoding import first_syllable
from mnmt_repro.repository import ROOT
from mnmt_repro.results import frames
from mnmt_repro.results.schema import RUN_FIELDS
from mnmt_repro.runs.spec import RunSpec

NAMES = [c.name for c in MINI_COHORTS if c.name.startswith(("webtech-", "conlang-", "shared-"))]
MAINS = ("webtech-en-dezh", "webtech-en-defr", "webtech-dezh-en")


def sizes(cohort: Cohort) -> set[str]:
    return {run.size for run in cohort.runs()}


def by_cell(cohort: Cohort) -> dict[tuple, RunSpec]:
    return {(run.size, tuple(run.mixture.weights.items())): run for run in cohort.runs()}


def test_runs_come_in_the_order_in_which_they_matter() -> None:
    order = [
        MAINS,
        ("conlang-sim0", "conlang-sim1", "conlang-many2one"),
        ("webtech-en-defrzh", "conlang-three"),
        tuple(f"{name}-seeds" for name in MAINS),
        ("conlang-sim025", "conlang-sim05", "conlang-sim075"),
        ("conlang-five",),
    ]
    for before, after in itertools.pairwise(order):
        assert max(map(NAMES.index, before)) < min(map(NAMES.index, after))
    assert len(set(NAMES)) == len(NAMES)


def test_no_two_declared_runs_have_one_identity() -> None:
    runs = {}
    for cohort in MINI_COHORTS:
        for run in cohort.runs():
            assert runs.setdefault(run.run_id, run.config_hash) == run.config_hash
            assert math.fsum(run.mixture.weights.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_pages_have_a_name_for_every_cohort_and_pair(name: str) -> None:
    assert cohort_name(name) != name
    for pair in get_cohort(name).pairs:
        assert not set(pair_name(pair).split("→")) & set(pair.split("-"))


def test_three_pair_mixtures_are_balanced_over_the_simplex() -> None:
    cohort = get_cohort("webtech-en-defrzh")
    assert cohort.corpus == get_cohort("webtech-en-dezh").corpus  # one vocabulary, one budget
    mixtures = {tuple(run.mixture.weights.values()) for run in cohort.runs()}
    third = 1 / 3
    assert mixtures == {
        (third, third, third),
        (0.5, 0.25, 0.25), (0.25, 0.5, 0.25), (0.25, 0.25, 0.5),
        (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8),
    }  # fmt: skip
    assert len(list(cohort.runs())) == 7 * 5


@pytest.mark.parametrize("name", MAINS)
def test_more_seeds_repeat_cells_of_their_cohort(name: str) -> None:
    again, main = get_cohort(f"{name}-seeds"), get_cohort(name)
    firsts = by_cell(main)
    runs = list(again.runs())
    assert len(runs) == 2 * 3 * 4
    for run in runs:
        first = firsts[run.size, tuple(run.mixture.weights.items())]
        changed = {k for k in run.config if run.config[k] != first.config[k]}
        assert changed == {"seed"}
        assert membership()[run.config_hash] == (name, again.name)
    counted = Counter(run.mixture.weights[main.pairs[0]] for run in runs)
    assert counted == {0.1: 8, 0.5: 8, 0.9: 8}
    assert {run.seed for run in runs} == {2, 3}
    assert {run.seed for run in main.runs()} == {1}  # the main grid itself is as it was


def test_rows_of_more_seeds_are_read_with_their_cohort(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = next(get_cohort("webtech-en-dezh-seeds").runs())
    content = {
        "run": dict.fromkeys(RUN_FIELDS, 0) | {
            "run_id": run.run_id, "config_hash": run.config_hash, "seed": run.seed,
            "mixture": run.mixture.weights, "tier": "mini",
        },
        "rows": [{"pair": pair, "p": p, "cross_entropy": 3.0} for pair, p in run.mixture.items],
        "curve": [],
    }  # fmt: skip
    monkeypatch.setattr(frames, "load_runs", lambda root=None: [content])
    read = results.load(root=tmp_path, cohort="webtech-en-dezh")
    assert list(read["seed"]) == [2, 2]
    assert len(results.load(root=tmp_path, cohort="webtech-en-dezh-seeds")) == 2


def test_the_controlled_contrast_differs_in_its_text_and_budget_only() -> None:
    names = ("shared-en-dezh", "shared-en-defr", "shared-dezh-en")
    for name, main in zip(names, MAINS, strict=True):
        cohort = get_cohort(name)
        assert cohort.pairs == get_cohort(main).pairs
        assert cohort.tags == get_cohort(main).tags
        assert cohort.corpus.name == "webtech-shared"
        assert cohort.corpus.vocabulary == get_cohort(main).corpus.vocabulary
        assert len(list(cohort.runs())) == 5 * 4
        run = next(cohort.runs())
        assert run.data_hash != next(get_cohort(main).runs()).data_hash
    dezh, defr = ({run.run_id for run in get_cohort(name).runs()} for name in names[:2])
    assert len(dezh & defr) == 4  # German alone, one a size


def test_similarities_between_lie_on_the_grids_of_the_ends() -> None:
    related, unrelated = get_cohort("conlang-sim1"), get_cohort("conlang-sim0")
    found = []
    for name in ("conlang-sim025", "conlang-sim05", "conlang-sim075"):
        cohort = get_cohort(name)
        found.append(cohort.corpus.conlang.similarity)
        assert cohort.corpus.pieces == related.corpus.pieces == unrelated.corpus.pieces
        assert len(sizes(cohort)) == 5 and sizes(cohort) <= sizes(related)
        assert by_cell(cohort).keys() <= by_cell(unrelated).keys()
        for pair in cohort.pairs:
            weights = {run.mixture.weights.get(pair) for run in cohort.runs()} - {None}
            assert weights == {0.1, 0.5, 0.9, 1.0}
    assert found == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(("name", "count"), [("conlang-three", 3), ("conlang-five", 5)])
def test_more_languages_leave_the_first_two_as_they_were(name: str, count: int) -> None:
    """Laws of conlang-sim0 are used for larger families: the languages must be the same."""
    cohort, two = get_cohort(name), get_cohort("conlang-sim0")
    assert len(cohort.pairs) == count
    large, small = Conlang(cohort.corpus.conlang), Conlang(two.corpus.conlang)
    assert small.config.languages == large.config.languages[:3]
    for language in small.config.languages:
        assert (large.spellings[language] == small.spellings[language]).all()
    for pair in two.pairs:  # and so are their sentences, as ids of syllables
        for one, other in zip(
            small.sentences(pair, 0, 20), large.sentences(pair, 0, 20), strict=True
        ):
            assert (one.flat == other.flat).all()
    # Only the tables grow: a tag and an inventory of syllables for each further language.
    assert first_syllable(large.config) - first_syllable(small.config) == count - 2
    more = (count - 2) * (1 + small.config.syllables)
    assert cohort.corpus.pieces - two.corpus.pieces == more
    assert cohort.corpus.training == two.corpus.training
    alone = [run for run in cohort.runs() if run.mixture.weights == {"src-aaa": 1.0}]
    assert {run.size for run in alone} == sizes(cohort)
    assert sizes(cohort) <= sizes(two)


def test_every_size_of_a_smaller_grid_is_one_of_the_tier() -> None:
    tier = sizes(get_cohort("webtech-en-dezh"))
    for cohort in GRIDS:
        if cohort.tier == "mini":
            assert sizes(cohort) <= tier


def test_stored_runs_still_belong_to_their_cohorts() -> None:
    stored = [each["run"] for each in results.load_runs(ROOT / "data" / "results")]
    assert len(stored) >= 82
    orphans = [run["run_id"] for run in stored if run["config_hash"] not in membership(run["tier"])]
    assert orphans == []
