from __future__ import annotations

import numpy as np
import pytest
import torch

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.model import Transformer
from mnmt_repro.scoring import cross_entropy, sentence_losses

SHAPES = {
    "t5": ModelConfig.t5(vocab_size=30, d_model=8, layers=1, heads=2, dropout=0.3),
    "fairseq": ModelConfig.fairseq(vocab_size=30, d_model=8, layers=1, heads=2, dropout=0.3),
}


@pytest.fixture(params=SHAPES)
def model(request: pytest.FixtureRequest) -> Transformer:
    return Transformer(SHAPES[request.param], seed=2).double()


@pytest.fixture
def pair() -> EncodedPair:
    """Sixteen sentence pairs of unequal length, the shortest an end of sentence alone."""
    rng = np.random.default_rng(0)

    def side(lengths: np.ndarray) -> Ragged:
        return Ragged.of([rng.integers(4, 30, n).tolist() for n in lengths])

    source, target = side(rng.integers(0, 20, 16)), side(np.r_[0, rng.integers(0, 20, 15)])
    return EncodedPair(source.affix(last=1), target.affix(first=3, last=1))


def reference(model: Transformer, pair: EncodedPair, row: int) -> float:
    """Nats of one sentence, alone and unpadded, a token at a time."""
    source, target = (torch.tensor(side.take(np.array([row])).flat).long() for side in (
        pair.source, pair.target,
    ))  # fmt: skip
    total = 0.0
    for step in range(1, len(target)):
        scores = model(source[None], target[None, :step])[0, -1]
        total -= scores.log_softmax(0)[target[step]].item()
    return total


def test_every_sentence_gets_its_own_nats(model: Transformer, pair: EncodedPair) -> None:
    losses = [sentence_losses(model, pair, batch_tokens=n) for n in (1, 50, 4096)]
    model.eval()
    with torch.no_grad():
        expected = [reference(model, pair, row) for row in range(pair.size)]
    for nats, tokens in losses:
        np.testing.assert_allclose(nats, expected, rtol=1e-10)
        assert tokens.tolist() == (pair.target.lengths - 1).tolist()
        assert tokens[0] == 1


def test_cross_entropy_weighs_tokens_alike(model: Transformer, pair: EncodedPair) -> None:
    nats, tokens = sentence_losses(model, pair)
    assert cross_entropy(model, pair) == nats.sum() / tokens.sum()
    assert cross_entropy(model, pair) != pytest.approx((nats / tokens).mean(), rel=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_while_scoring_and_as_before_afterwards(
    pair: EncodedPair, training: bool
) -> None:
    model = Transformer(SHAPES["t5"]).train(training)
    first, second = (sentence_losses(model, pair)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert model.training is training
