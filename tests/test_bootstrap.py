"""Paired bootstrap over sentences, against every possible draw and against the textbook."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mnmt_repro.evaluation.significance import bootstrap_gaps


def test_against_every_possible_draw() -> None:
    """Four sentences: 256 draws, each as likely."""
    gaps, tokens = np.array([-1.0, 0.5, -1.5, -2.0]), np.array([2.0, 3.0, 1.0, 4.0])
    draws = np.array([*itertools.product(range(4), repeat=4)])
    every = gaps[draws].sum(1) / tokens[draws].sum(1)
    found = bootstrap_gaps(gaps, tokens, draws=40_000)
    assert found.difference == pytest.approx(-4 / 10)
    low, high = np.quantile(every, [0.025, 0.975], method="inverted_cdf")
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    as_far = np.mean(np.abs(every + 0.4) >= 0.4 - 1e-12)
    assert found.p_value == pytest.approx(as_far, abs=0.005)
    swapped = bootstrap_gaps(-gaps, tokens, draws=40_000)
    assert (swapped.difference, swapped.low) == (-found.difference, -found.high)


def test_sentences_are_drawn_with_their_tokens() -> None:
    """Gaps of a nat for every token leave nothing to chance, however long the sentences are."""
    tokens = np.geomspace(1, 100, 50)
    found = bootstrap_gaps(tokens, tokens)
    assert found.low == pytest.approx(1) and found.high == pytest.approx(1)
    assert found.p_value == pytest.approx(1 / 1001)
