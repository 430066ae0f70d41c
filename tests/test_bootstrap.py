"""Paired bootstrap over sentences, against every possible draw and against the textbook."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from mnmt_repro.analysis.bootstrap import bootstrap_losses
from mnmt_repro.errors import InputError
from mnmt_repro.results.sentences import SentenceLosses


def run(name: str, **directions: tuple[list[float], list[int]]) -> SentenceLosses:
    """Nats and tokens by direction; `eng_xho` is eng-xho."""
    named = {pair.replace("_", "-"): values for pair, values in directions.items()}
    return SentenceLosses(
        run_id=name,
        commit="c0ffee",
        test_set="indomain",
        most=500,
        nats={pair: np.array(nats, np.float32) for pair, (nats, _) in named.items()},
        tokens={pair: np.array(tokens, np.int16) for pair, (_, tokens) in named.items()},
    )


def test_against_every_possible_draw() -> None:
    """Two directions of three and two sentences: 27 x 4 draws, each as likely."""
    one = {"eng_xho": ([4.0, 9.0, 2.0], [2, 3, 1]), "xho_eng": ([5.0, 1.5], [4, 1])}
    two = {"eng_xho": ([5.0, 8.5, 3.5], [2, 3, 1]), "xho_eng": ([7.0, 1.0], [4, 1])}

    def losses(system: dict, direction: str, rows: tuple[int, ...]) -> float:
        nats, tokens = system[direction]
        return sum(nats[i] for i in rows) / sum(tokens[i] for i in rows)

    every = []
    for first in itertools.product(range(3), repeat=3):
        for second in itertools.product(range(2), repeat=2):
            gaps = [
                losses(one, direction, rows) - losses(two, direction, rows)
                for direction, rows in (("eng_xho", first), ("xho_eng", second))
            ]
            every.append(sum(gaps) / 2)
    # As a whole: (15 - 17) / 6 and (6.5 - 8) / 5, their mean.
    whole = (-2 / 6 - 1.5 / 5) / 2
    found = bootstrap_losses(run("a", **one), run("b", **two), draws=40_000)
    assert found.difference == pytest.approx(whole)
    assert (found.directions, found.sentences) == (2, 5)
    low, high = np.quantile(every, [0.025, 0.975], method="inverted_cdf")
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    as_far = np.mean(np.abs(np.array(every) - whole) >= abs(whole) - 1e-12)
    assert 0.1 < as_far < 0.5
    assert found.p_value == pytest.approx(as_far, abs=0.005)


def test_many_sentences_of_one_token_are_a_paired_z_test() -> None:
    random = np.random.default_rng(5)
    count = 500
    before = random.gamma(2.0, size=count)
    noise = 0.4 * random.standard_normal(count)
    gap = 0.03 + noise - noise.mean()
    ones = [1] * count
    found = bootstrap_losses(
        run("a", eng_xho=((before + gap).tolist(), ones)),
        run("b", eng_xho=(before.tolist(), ones)),
        draws=4_000,
    )
    error = stats.sem(gap)
    assert found.difference == pytest.approx(gap.mean(), rel=1e-5)
    assert found.low == pytest.approx(gap.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(gap.mean() + 1.96 * error, abs=0.15 * error)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(gap.mean() / error), abs=0.02)
    assert 0.01 < found.p_value < 0.2


def test_both_runs_are_drawn_alike() -> None:
    """Sentences that differ a hundredfold cancel, where both runs meet the same of them."""
    nats = np.geomspace(1, 100, 50)
    long, longer = (
        run(n, eng_xho=((nats + d).tolist(), [1] * 50)) for n, d in (("a", 1), ("b", 0))
    )
    found = bootstrap_losses(long, longer)
    assert found.low == pytest.approx(1, abs=1e-5) and found.high == pytest.approx(1, abs=1e-5)
    assert found.p_value == pytest.approx(1 / 1001)
    swapped = bootstrap_losses(longer, long)
    assert (swapped.difference, swapped.low) == (-found.difference, -found.high)


def test_directions_can_be_chosen_and_must_be_there() -> None:
    one = run("a", eng_xho=([1.0, 2.0], [1, 1]), xho_eng=([1.0], [1]))
    two = run("b", eng_xho=([3.0, 4.0], [1, 1]))
    assert bootstrap_losses(one, two, ("eng-xho",)).difference == pytest.approx(-2)
    with pytest.raises(InputError, match="run b: no losses of xho-eng"):
        bootstrap_losses(one, two)
    with pytest.raises(InputError, match="run a: no losses of eng-zul"):
        bootstrap_losses(one, two, ("eng-zul",))


def test_losses_in_other_pieces_are_not_compared() -> None:
    one, two = run("a", eng_xho=([1.0], [1])), run("b", eng_xho=([1.0], [2]))
    with pytest.raises(InputError, match="runs of one vocabulary"):
        bootstrap_losses(one, two)
    fewer = run("c", eng_xho=([1.0, 2.0], [1, 1]))
    with pytest.raises(InputError, match="other sentences"):
        bootstrap_losses(one, fewer)
