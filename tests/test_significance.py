from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.significance import paired_bootstrap

WORDS = [f"w{i}" for i in range(40)]


def corpus(error_rate: float, seed: int, sentences: int = 60) -> tuple[list[str], list[str]]:
    """Sentences of ten words, and a copy in which some words are replaced by one never seen."""
    references = np.random.default_rng(0).choice(WORDS, (sentences, 10))
    wrong = np.random.default_rng(seed).random(references.shape) < error_rate
    hypotheses = np.where(wrong, "x", references)
    return [" ".join(row) for row in hypotheses], [" ".join(row) for row in references]


def test_bootstrap_is_sacrebleu_s_with_its_seed() -> None:
    (system, references), (baseline, _) = corpus(0.20, 1), corpus(0.25, 2)
    done = paired_bootstrap(system, baseline, references, target_language="eng", samples=500)
    for text, score in ((system, done.score), (baseline, done.baseline)):
        assert score == pytest.approx(sacrebleu.corpus_bleu(text, [references]).score)
    assert done.difference == done.score - done.baseline > 0
    assert 0.002 < done.p_value < 0.9  # neither end, where any code would agree
    assert "bs:500" in done.signature and "seed:12345" in done.signature


def test_bootstrap_refuses() -> None:
    with pytest.raises(InputError, match="1 hypotheses, but 2 references"):
        paired_bootstrap(["a", "b"], ["a"], ["a", "b"], target_language="eng")
