"""What pages read of a cohort that is whole, half there, or not there."""

from __future__ import annotations

import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.papers.effects.grids import load_rows, read_grid

COHORT = "webtech-en-dezh"


def test_a_whole_grid_is_read_whole():
    grid = read_grid(rows(COHORT), COHORT)
    # Two pairs, eight weights above zero and eight sizes.
    assert len(grid.points) == len(grid.rows) == 128
    assert grid.name == "English→{German, Chinese}"
    assert set(grid.fits) == {"eng-deu", "eng-zho"}
    assert grid.n == "n_non_embedding"


def test_other_cohorts_test_sets_and_zero_shot_rows_are_left_out():
    zero = rows(COHORT).assign(p=0.0)
    stored = pd.concat(
        [rows(COHORT), zero, rows(COHORT, test_set="newstest21"), rows("webtech-en-defr")]
    )
    grid = read_grid(stored, COHORT, "newstest21")
    assert len(grid.rows) == 128
    assert set(grid.rows["test_set"]) == {"newstest21"}
    assert grid.name == "English→{German, Chinese}, newstest21"


def test_size_may_count_the_embeddings():
    points = read_grid(rows(COHORT), COHORT, n="n_total").points
    assert points["n"].min() == SIZES[0] + 100_000


def test_weights_with_too_few_sizes_are_left_out():
    stored = rows(COHORT)
    few = (stored["p"] == 0.3) & (stored["n_non_embedding"] > SIZES[2])  # three sizes remain
    grid = read_grid(stored[~few], COHORT)
    assert 0.3 not in set(grid.points["p"])
    assert len(grid.points) == 112  # eight less for each pair


def test_pairs_without_the_single_pair_or_any_other_weight_are_left_out():
    stored = rows(COHORT)
    german = stored["pair"] == "eng-deu"
    only_one = stored[~german | (stored["p"] == 1)]
    assert set(read_grid(only_one, COHORT).points["pair"]) == {"eng-zho"}
    without_one = stored[~german | (stored["p"] < 1)]
    assert set(read_grid(without_one, COHORT).points["pair"]) == {"eng-zho"}


def test_each_pair_may_have_a_test_set_of_its_own():
    pairs = ("eng-deu", "eng-fra")
    stored = pd.concat(
        [
            rows("webtech-en-defr", pairs),
            rows("webtech-en-defr", pairs, test_set="newstest21", noise=0.0),
            rows("webtech-en-defr", pairs[1:], test_set="newstest22-pivot", loss=lambda p, n: 9.0),
        ]
    )
    sets = {"eng-deu": "newstest21", "eng-fra": "newstest22-pivot"}
    grid = read_grid(stored, "webtech-en-defr", sets)
    assert grid.test_set == "newstest21 and newstest22-pivot"
    losses = grid.points.groupby("pair")["loss"]
    assert losses.min()["eng-deu"] == pytest.approx(loss_of(1, SIZES[-1]))
    assert losses.median()["eng-fra"] == pytest.approx(9.0, rel=0.01)
    assert set(read_grid(stored, "webtech-en-defr", {"eng-deu": "newstest21"}).fits) == {"eng-deu"}


def test_an_unknown_count_of_parameters_is_named():
    with pytest.raises(InputError, match="n = 'n_params': .* n_non_embedding or n_total"):
        read_grid(rows(COHORT), COHORT, n="n_params")


def test_the_filter_that_leaves_nothing_is_named():
    message = "seed = 99: no such rows are stored among those with cohort = 'conlang-three'; values"
    with pytest.raises(InputError, match=message):
        load_rows(cohort="conlang-three", seed=99)
