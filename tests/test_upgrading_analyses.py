"""Analyses of upgraded models, with expectations by hand."""

from __future__ import annotations

import math

import pytest
import torch

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.model import Transformer
from mnmt_repro.upgrading.analyses import (
    fisher_histogram,
    half_distances,
    loss_rise,
    substitute_embeddings,
)
from mnmt_repro.upgrading.learning_rate import NEW, OLD
from mnmt_repro.upgrading.vocabulary import Piece, match_meanings

SPECIAL = [Piece(kind="special", text=role) for role in ("pad", "eos", "unk", "bos")]
A, B, C, X = (Piece(kind="text", text=text) for text in "abcx")
PIECES = match_meanings([*SPECIAL, A, B, C], [*SPECIAL, B, X, A, X])  # c dropped, x added twice
OLD_ROWS, NEW_ROWS = [0, 1, 2, 3, 5, 4], [0, 1, 2, 3, 4, 6]


def model(shape: str, pieces: int, seed: int, **options: int) -> Transformer:
    kind = ModelConfig.t5 if shape == "t5" else ModelConfig.fairseq
    config = kind(vocab_size=pieces, d_model=8, layers=1, heads=2, **options)
    return Transformer(config, seed=seed).eval()


# --- embeddings substituted back (Figures 3 and 6 left) -----------------------------------------


@pytest.mark.parametrize("shape", ["t5", "fairseq"])
def test_the_old_model_gets_the_new_ones_rows_of_shared_pieces(shape: str) -> None:
    old, new = model(shape, 7, 1), model(shape, 8, 2, d_ff=64)
    before = {name: tensor.clone() for name, tensor in old.state_dict().items()}
    made = substitute_embeddings(old, new, PIECES)
    tables = ["embedding.weight"] + ["output.weight"] * (shape == "t5")
    for name, tensor in made.state_dict().items():
        assert torch.equal(old.state_dict()[name], before[name])  # the original stays
        if name not in tables:
            assert torch.equal(tensor, before[name])
            continue
        assert torch.equal(tensor[OLD_ROWS], new.state_dict()[name][NEW_ROWS])
        assert torch.equal(tensor[6], before[name][6])  # c, which the new vocabulary dropped
    assert made.config == old.config


def test_loss_rise_is_the_difference_of_two_cross_entropies() -> None:
    old, new = model("t5", 7, 1), model("t5", 7, 2)
    text = EncodedPair(Ragged.of([[4, 5, 1], [6, 1]]), Ragged.of([[3, 5, 1], [3, 4, 6, 1]]))
    made = substitute_embeddings(old, new)
    rise = loss_rise(old, made, {"eng-deu": text})
    losses = []
    for network in (old, made):
        nats = [
            -network(torch.tensor([s]), torch.tensor([t[:-1]])).log_softmax(-1)[0, i, t[i + 1]]
            for s, t in (([4, 5, 1], [3, 5, 1]), ([6, 1], [3, 4, 6, 1]))
            for i in range(len(t) - 1)
        ]
        losses.append(sum(nats).item() / 5)
    assert rise == {"eng-deu": pytest.approx(losses[1] - losses[0], abs=1e-5)}
    assert abs(rise["eng-deu"]) > 0.01
    assert loss_rise(old, substitute_embeddings(old, old), {"eng-deu": text}) == {"eng-deu": 0.0}


# --- distances (Figure 5) -----------------------------------------------------------------------

UP, OUT = "encoder.0.feed_forward.up.weight", "encoder.0.feed_forward.out.weight"


def test_halves_of_widened_matrices() -> None:
    start = {
        UP: torch.tensor([[1.0, 1.0], [9.0, 9.0]]),
        OUT: torch.tensor([[2.0, 9.0], [0.0, 9.0]]),
    }
    wide = {UP: torch.tensor([[4.0, 5.0], [1.0, 1.0]]), OUT: torch.tensor([[2.0, 5.0], [0.0, 4.0]])}
    # M1 - M = (3, 4) and M2 = M for `up`; M1 = M and M2 - M = (3, 4) for `out`.
    expected = {"old": 5.0, "new": 5.0, "between": math.sqrt(50)}
    assert half_distances(start, wide) == {
        ("encoder.0", block): pytest.approx(value) for block, value in expected.items()
    }


# --- Fisher information (Figure 6 right) --------------------------------------------------------

FISHER = {
    "encoder.1.feed_forward.up.weight": torch.tensor([[1e-7, 3e-5], [0.0, 1e-5]]),
    "encoder.1.feed_forward_norm.weight": torch.tensor([2e-5, 4e-5]),
    "output.weight": torch.tensor([[1.0]]),
}
GROUPS = {
    "encoder.1.feed_forward.up.weight": torch.tensor([[OLD], [NEW]], dtype=torch.uint8),
    "encoder.1.feed_forward_norm.weight": torch.tensor([2], dtype=torch.uint8),  # old, informed
    "output.weight": torch.tensor([[NEW]], dtype=torch.uint8),
}


def test_distribution_of_fisher_information() -> None:
    all_old = {name: torch.full_like(values, OLD) for name, values in FISHER.items()}
    rows = fisher_histogram(FISHER, (1e-6, 1.5e-5, 0.5), all_old)
    assert [(r["low"], r["high"], r["count"]) for r in rows] == [
        (0.0, 1e-6, 2), (1e-6, 1.5e-5, 1), (1.5e-5, 0.5, 3), (0.5, math.inf, 1),
    ]  # fmt: skip
    assert [r["share"] for r in rows] == pytest.approx([2 / 7, 1 / 7, 3 / 7, 1 / 7])
    some = fisher_histogram(FISHER, (1e-6,), GROUPS)
    assert [(r["count"], r["share"]) for r in some] == [(1, 0.25), (3, 0.75)]
