"""The cohorts that Paper A's appendices and open questions need, declared as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_repro import results
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.encoding import first_syllable
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.cohorts.grids import Cohort
from mnmt_repro.results import frames
from mnmt_repro.results.schema import RUN_FIELDS


def sizes(cohort: Cohort) -> set[str]:
    return {run.size for run in cohort.runs()}


def test_rows_of_more_seeds_are_read_with_their_cohort(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = next(get_cohort("webtech-en-dezh-seeds").runs())
    content = {
        "run": dict.fromkeys(RUN_FIELDS, 0) | {
            "run_id": run.run_id, "config_hash": run.config_hash, "seed": run.seed,
            "mixture": run.mixture.weights, "tier": "mini", "config": {},
        },
        "rows": [
            {"pair": pair, "p": p, "cross_entropy": 3.0, "test_set": "indomain", "domain": "all"}
            for pair, p in run.mixture.items
        ],
        "curve": [],
    }  # fmt: skip
    monkeypatch.setattr(frames, "each_run", lambda root=None: [content])
    read = results.load(root=tmp_path, cohort="webtech-en-dezh")
    assert list(read["seed"]) == [2, 2]
    assert len(results.load(root=tmp_path, cohort="webtech-en-dezh-seeds")) == 2


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
