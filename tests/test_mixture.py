"""Mixtures of pairs: weights, temperature, up-sampling, and the two kinds of scalarization."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.papers.effects.derivations import explicit_weights


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"eng-deu": 1.2, "eng-zho": -0.2}, r"eng-deu must lie in \[0, 1\], got 1.2"),
        ({"eng-deu": math.nan, "eng-zho": 1.0}, r"eng-deu must lie in \[0, 1\], got nan"),
        ({"eng-deu": 0.5, "eng-zho": 0.4}, "must sum to one, these sum to 0.9"),
        ({}, "must sum to one"),
    ],
)
def test_impossible_weights_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Mixture.of(weights)


def test_a_mixture_has_one_form_whatever_the_order_and_the_zeros() -> None:
    one = Mixture.of({"eng-zho": 0.7, "eng-deu": 0.3, "eng-fra": 0.0})
    assert one == Mixture.of({"eng-deu": 0.3, "eng-zho": 0.7})
    assert one.pairs == ("eng-deu", "eng-zho")
    assert Mixture.two("eng-deu", "eng-zho", 0.0) == Mixture.of({"eng-zho": 1.0})
    # 1 - 0.95 is not 0.05 in binary; the other weight must be the one that Eq. 5 lists.
    assert Mixture.two("eng-deu", "eng-zho", 0.95).weights["eng-zho"] == 0.05


def test_upsampling_acts_on_sizes_before_ratios_and_temperature() -> None:
    # 4 * 100 = 400 beside 900: roots 20 and 30 at temperature 2. A factor on the ratio, after the
    # root, would have given 40 to 30.
    mixture = Mixture.from_sizes(
        {"eng-deu": 900, "eng-xho": 100}, temperature=2, upsampling={"eng-xho": 4}
    )
    assert mixture.weights == pytest.approx({"eng-deu": 0.6, "eng-xho": 0.4})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"upsampling": {"eng-fra": 2.0}}, "eng-fra, which is not in the mixture"),
        ({"upsampling": {"eng-deu": 0.0}}, "factor of eng-deu must be above 0"),
        ({"temperature": 0.0}, "temperature must be at least 0.05"),
        ({"temperature": math.nan}, "temperature must be at least 0.05, got nan"),
        ({"upsampling": {"eng-deu": 1e300}}, "must be above 0 and at most 1e6"),
    ],
)
def test_impossible_sampling_is_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Mixture.from_sizes({"eng-deu": 10}, **options)
    with pytest.raises(InputError, match="no sentences"):
        Mixture.from_sizes({"eng-deu": 0})


def random_pair(rng: np.random.Generator, lengths: list[int]) -> EncodedPair:
    """Sentences with the given target tokens to predict (end included)."""
    source = [[*rng.integers(4, 20, n + 1).tolist(), 1] for n in lengths]
    target = [[3, *rng.integers(4, 20, n - 1).tolist(), 1] for n in lengths]
    return EncodedPair(Ragged.of(source), Ragged.of(target))


def gradient(model: Transformer, pair: EncodedPair, rows: list[int]) -> torch.Tensor:
    """Gradient of the loss summed over the tokens of some sentences, all parameters in a row."""
    model.zero_grad()
    for row in rows:
        source, target = (
            torch.from_numpy(side.pad(int(side.lengths[0]))) for side in pair.take(np.array([row]))
        )
        model.loss(source, target[:, :-1], target[:, 1:]).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def test_implicit_and_explicit_scalarization_have_the_same_expected_gradient() -> None:
    """Eq. 4 against Paper A's sampling, enumerated over all sentences in float64.

    Implicit: a sentence is drawn from pair i with probability p_i and its token losses are summed.
    Explicit: L = sum of w_i L_i, with L_i the mean loss per token of pair i.
    """
    rng = np.random.default_rng(0)
    pairs = {"eng-deu": random_pair(rng, [9, 4, 7, 12]), "eng-zho": random_pair(rng, [2, 3, 5])}
    mean_tokens = {"eng-deu": 32 / 4, "eng-zho": 10 / 3}
    mixture = Mixture.two("eng-deu", "eng-zho", 0.3)
    model = Transformer(ModelConfig.t5(vocab_size=20, d_model=8, layers=1, heads=2)).double()

    implicit = torch.zeros(())
    for pair, p in mixture.items:
        rows = list(range(pairs[pair].size))
        for row in rows:  # each draw that there can be, times its probability
            implicit = implicit + p / len(rows) * gradient(model, pairs[pair], [row])

    def explicit(weights: dict[str, float]) -> torch.Tensor:
        total = torch.zeros(())
        for pair, w in weights.items():
            tokens = int((pairs[pair].target.lengths - 1).sum())
            rows = list(range(pairs[pair].size))
            total = total + w * gradient(model, pairs[pair], rows) / tokens
        return total

    weights = explicit_weights(mixture.weights, mean_tokens)
    # By hand: 0.3 * 8 = 2.4 and 0.7 * 10 / 3 = 2.3333..., normalised.
    assert weights == pytest.approx({"eng-deu": 7.2 / 14.2, "eng-zho": 7.0 / 14.2})
    tokens_a_draw = 0.3 * 8 + 0.7 * 10 / 3
    torch.testing.assert_close(implicit / tokens_a_draw, explicit(weights), rtol=1e-10, atol=1e-13)
    # With the sampling probabilities themselves the two would not agree: lengths differ.
    assert not torch.allclose(implicit / tokens_a_draw, explicit(mixture.weights), rtol=1e-2)
