from __future__ import annotations

import math

import numpy as np
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.significance import paired_bootstrap, paired_t_test

WORDS = [f"w{i}" for i in range(40)]


def corpus(error_rate: float, seed: int, sentences: int = 60) -> tuple[list[str], list[str]]:
    """Sentences of ten words, and a copy in which some words are replaced by one never seen."""
    references = np.random.default_rng(0).choice(WORDS, (sentences, 10))
    wrong = np.random.default_rng(seed).random(references.shape) < error_rate
    hypotheses = np.where(wrong, "x", references)
    return [" ".join(row) for row in hypotheses], [" ".join(row) for row in references]


def ngram_statistics(hypotheses: list[str], references: list[str]) -> np.ndarray:
    """Matches of orders 1 to 4 for each sentence, (sentences, 4)."""
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        h, r = hypothesis.split(), reference.split()
        row = []
        for n in (1, 2, 3, 4):
            have = [tuple(r[i : i + n]) for i in range(len(r) - n + 1)]
            matched = 0
            for gram in (tuple(h[i : i + n]) for i in range(len(h) - n + 1)):
                if gram in have:
                    have.remove(gram)
                    matched += 1
            row.append(matched)
        rows.append(row)
    return np.array(rows)


def bleu(matched: np.ndarray) -> np.ndarray:
    """BLEU of samples (..., sentences, 4) of ten-word sentences: no brevity penalty."""
    possible = matched.shape[-2] * np.array([10, 9, 8, 7])
    return 100 * np.exp(np.log(matched.sum(-2) / possible).mean(-1))


def test_bootstrap_against_one_written_out() -> None:
    """Same resamples (numpy's generator, seed 12345), other code for BLEU and for the p-value."""
    (system, references), (baseline, _) = corpus(0.20, 1), corpus(0.25, 2)
    found = paired_bootstrap(system, baseline, references, target_language="eng", samples=500)

    ours, theirs = (ngram_statistics(side, references) for side in (system, baseline))
    draws = np.random.default_rng(12345).choice(60, (500, 60), replace=True)
    differences = np.abs(bleu(ours[draws]) - bleu(theirs[draws]))
    observed = abs(bleu(ours) - bleu(theirs))
    beyond = int((differences - differences.mean() > observed).sum())
    assert found.p_value == pytest.approx((beyond + 1) / 501, rel=1e-12)
    assert 0.002 < found.p_value < 0.9  # neither end, where any code would agree
    assert found.score == pytest.approx(float(bleu(ours)), rel=1e-6)
    assert found.baseline == pytest.approx(float(bleu(theirs)), rel=1e-6)
    assert found.difference == pytest.approx(float(bleu(ours) - bleu(theirs)), rel=1e-6)
    assert "bs:500" in found.signature and "seed:12345" in found.signature


def test_bootstrap_refuses() -> None:
    with pytest.raises(InputError, match="1 hypotheses, but 2 references"):
        paired_bootstrap(["a", "b"], ["a"], ["a", "b"], target_language="eng")
    with pytest.raises(InputError, match="samples"):
        paired_bootstrap(["a"], ["a"], ["a"], target_language="eng", samples=0)
    with pytest.raises(InputError, match="metric"):
        paired_bootstrap(["a"], ["a"], ["a"], target_language="eng", metric="ter")


def test_t_test_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, t = 2 sqrt(3) with two degrees of freedom.

    With two degrees of freedom p = 1 - t / sqrt(2 + t^2), and the quantile of the 95 % interval is
    0.95 sqrt(2 / (1 - 0.95^2)).
    """
    found = paired_t_test([11.0, 22.0, 33.0], [10.0, 20.0, 30.0])
    t = 2 * math.sqrt(3)
    assert found.difference == 2.0
    assert found.t == pytest.approx(t, rel=1e-12)
    assert found.p_value == pytest.approx(1 - t / math.sqrt(2 + t**2), rel=1e-10)
    margin = 0.95 * math.sqrt(2 / (1 - 0.95**2)) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((2 - margin, 2 + margin), rel=1e-10)


@pytest.mark.parametrize(
    "system, baseline, message",
    [
        ([1.0], [2.0], "two directions or more"),
        ([1.0, 2.0], [2.0], "got 2 and 1"),
        ([1.0, math.nan], [1.0, 1.0], "a score is not"),
        ([1.0, 2.0], [0.5, 1.5], "all differences are equal"),
    ],
)
def test_t_test_refuses(system: list[float], baseline: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired_t_test(system, baseline)
