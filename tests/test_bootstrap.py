"""Paired bootstrap over sentences, against every possible draw and against the textbook."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mnmt_repro.evaluation.significance import Difference, bootstrap_gaps

System = dict[str, tuple[list[float], list[int]]]
"""Nats and tokens of each sentence, by direction."""


def compared(one: System, two: System, draws: int = 1000) -> Difference:
    """The first system against the second, which has the same tokens."""
    gaps = [np.array(nats) - np.array(two[name][0]) for name, (nats, _) in one.items()]
    return bootstrap_gaps(gaps, [np.array(tokens) for _, tokens in one.values()], draws=draws)


def test_against_every_possible_draw() -> None:
    """Two directions of three and two sentences: 27 x 4 draws, each as likely."""
    one = {"eng_xho": ([4.0, 9.0, 2.0], [2, 3, 1]), "xho_eng": ([5.0, 1.5], [4, 1])}
    two = {"eng_xho": ([5.0, 8.5, 3.5], [2, 3, 1]), "xho_eng": ([7.0, 1.0], [4, 1])}

    def losses(system: System, direction: str, rows: tuple[int, ...]) -> float:
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
    found = compared(one, two, draws=40_000)
    assert found.difference == pytest.approx(whole)
    low, high = np.quantile(every, [0.025, 0.975], method="inverted_cdf")
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    as_far = np.mean(np.abs(np.array(every) - whole) >= abs(whole) - 1e-12)
    assert 0.1 < as_far < 0.5
    assert found.p_value == pytest.approx(as_far, abs=0.005)


def test_both_runs_are_drawn_alike() -> None:
    """Sentences that differ a hundredfold cancel, where both runs meet the same of them."""
    nats = np.geomspace(1, 100, 50)
    longer, long = ({"eng_xho": ((nats + more).tolist(), [1] * 50)} for more in (1, 0))
    found = compared(longer, long)
    assert found.low == pytest.approx(1, abs=1e-5) and found.high == pytest.approx(1, abs=1e-5)
    assert found.p_value == pytest.approx(1 / 1001)
    swapped = compared(long, longer)
    assert (swapped.difference, swapped.low) == (-found.difference, -found.high)
