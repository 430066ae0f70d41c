"""Analyses of upgraded models, with expectations by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.errors import InputError
from mnmt_repro.model import ModelConfig, Transformer
from mnmt_repro.upgrading.analyses import (
    distances,
    fisher_by_layer,
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


def test_the_other_way_round_and_one_table_alone() -> None:
    old, new = model("t5", 7, 1), model("t5", 8, 2)
    made = substitute_embeddings(old, new, PIECES, into="new", tables=("output.weight",))
    found, olds, news = (each.state_dict() for each in (made, old, new))
    assert torch.equal(found["output.weight"][NEW_ROWS], olds["output.weight"][OLD_ROWS])
    assert torch.equal(found["output.weight"][[5, 7]], news["output.weight"][[5, 7]])
    assert torch.equal(found["embedding.weight"], news["embedding.weight"])


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


def test_substitutions_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="have 7 and 8 pieces, their vocabularies 7 and 7"):
        substitute_embeddings(model("t5", 7, 1), model("t5", 8, 1))
    with pytest.raises(InputError, match="no table encoder"):
        substitute_embeddings(model("t5", 7, 1), model("t5", 7, 1), tables=("encoder",))
    wide = Transformer(ModelConfig.t5(vocab_size=7, d_model=16, layers=1, heads=2))
    with pytest.raises(InputError, match="width 16 do not fit a model of 8"):
        substitute_embeddings(model("t5", 7, 1), wide)


# --- distances (Figure 5, Appendix C) -----------------------------------------------------------


def test_distances_by_layer_block_and_part() -> None:
    before = {
        "embedding.weight": torch.tensor([[1.0, 2.0], [0.0, 0.0]]),
        "encoder.0.attention_norm.weight": torch.tensor([2.0]),
        "encoder.0.attention.q.weight": torch.tensor([[1.0, 0.0]]),
        "decoder_norm.weight": torch.tensor([1.0]),
    }
    after = {
        "embedding.weight": torch.tensor([[4.0, 6.0], [0.0, 5.0]]),
        "encoder.0.attention_norm.weight": torch.tensor([1.0]),
        "encoder.0.attention.q.weight": torch.tensor([[3.0, 2.0]]),
        "decoder_norm.weight": torch.tensor([1.0]),
    }
    rows = distances(before, after)
    assert [(r["stack"], r["layer"], r["block"], r["part"], r["entries"]) for r in rows] == [
        ("tables", None, "embedding", "all", 4),
        ("encoder", 0, "attention", "all", 3),
        ("decoder", None, "norm", "all", 1),
    ]
    assert [r["distance"] for r in rows] == pytest.approx([math.sqrt(50), 3.0, 0.0])
    assert [r["norm"] for r in rows] == pytest.approx([math.sqrt(5), math.sqrt(5), 1.0])

    groups = {name: torch.tensor([OLD], dtype=torch.uint8) for name in before}
    groups["embedding.weight"] = torch.tensor([[OLD], [NEW]], dtype=torch.uint8)
    table = distances(before, after, groups)[:2]
    assert [(r["part"], r["distance"], r["entries"]) for r in table] == [
        ("old", 5.0, 2), ("new", 5.0, 2),
    ]  # fmt: skip

    with pytest.raises(InputError, match=r"decoder_norm.weight is \(1,\) and None"):
        distances(before, {k: t for k, t in after.items() if k != "decoder_norm.weight"})
    with pytest.raises(InputError, match="no group of decoder_norm.weight"):
        del groups["decoder_norm.weight"]
        distances(before, after, groups)


UP, OUT = "encoder.0.feed_forward.up.weight", "encoder.0.feed_forward.out.weight"


def test_halves_of_widened_matrices() -> None:
    narrow = {UP: torch.tensor([[1.0, 1.0]]), OUT: torch.tensor([[2.0], [0.0]])}
    wide = {UP: torch.tensor([[4.0, 5.0], [1.0, 1.0]]), OUT: torch.tensor([[2.0, 5.0], [0.0, 4.0]])}
    # M1 - M = (3, 4) and M2 = M for `up`; M1 = M and M2 - M = (3, 4) for `out`.
    expected = [("up", 5.0, 0.0, 5.0, math.sqrt(2)), ("out", 0.0, 5.0, 5.0, 2.0)]
    rows = half_distances(narrow, wide)
    assert [(r["stack"], r["layer"]) for r in rows] == [("encoder", 0)] * 2
    for row, (matrix, *numbers) in zip(rows, expected, strict=True):
        assert row["matrix"] == matrix
        found = [row[name] for name in ("old_half", "new_half", "between", "norm")]
        assert found == pytest.approx(numbers)
    # From the upgraded model before it was trained on, whose old half is M.
    start = {
        UP: torch.tensor([[1.0, 1.0], [9.0, 9.0]]),
        OUT: torch.tensor([[2.0, 9.0], [0.0, 9.0]]),
    }
    assert half_distances(start, wide) == rows


def test_halves_that_are_none_are_refused() -> None:
    up = {UP: torch.ones(2, 3)}
    with pytest.raises(InputError, match="only where the width was doubled"):
        half_distances(up, {UP: torch.ones(3, 3)})
    with pytest.raises(InputError, match="only where the width was doubled"):
        half_distances({UP: torch.ones(3, 3)}, {UP: torch.ones(3, 3)})
    with pytest.raises(InputError, match="both need the same layers"):
        half_distances({}, up)
    with pytest.raises(InputError, match="no feed-forward matrix"):
        half_distances({}, {"embedding.weight": torch.ones(2, 2)})


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


def test_fisher_information_by_layer() -> None:
    layer, output = fisher_by_layer(FISHER)
    assert (layer["stack"], layer["layer"], layer["block"]) == ("encoder", 1, "feed_forward")
    assert layer["mean"] == pytest.approx(10.01e-5 / 6)
    assert (layer["largest"], layer["entries"]) == (pytest.approx(4e-5), 6)
    assert (output["block"], output["mean"]) == ("output", 1.0)
    old, new, table = fisher_by_layer(FISHER, GROUPS)
    assert (old["part"], old["entries"], old["mean"]) == ("old", 4, pytest.approx(9.01e-5 / 4))
    assert (new["part"], new["entries"], new["mean"]) == ("new", 2, pytest.approx(0.5e-5))
    assert (table["block"], table["part"]) == ("output", "new")


def test_distribution_of_fisher_information() -> None:
    rows = fisher_histogram(FISHER, (1e-6, 1.5e-5, 0.5))
    assert [(r["low"], r["high"], r["count"]) for r in rows] == [
        (0.0, 1e-6, 2), (1e-6, 1.5e-5, 1), (1.5e-5, 0.5, 3), (0.5, math.inf, 1),
    ]  # fmt: skip
    assert [r["share"] for r in rows] == pytest.approx([2 / 7, 1 / 7, 3 / 7, 1 / 7])
    parts = fisher_histogram(FISHER, (1e-6,), GROUPS)
    assert [(r["part"], r["count"], r["share"]) for r in parts] == [
        ("old", 1, 0.25), ("old", 3, 0.75), ("new", 1, pytest.approx(1 / 3)),
        ("new", 2, pytest.approx(2 / 3)),
    ]  # fmt: skip
    with pytest.raises(InputError, match="must rise from above 0"):
        fisher_histogram(FISHER, (1e-5, 1e-6))


def test_an_edge_belongs_to_the_bin_above() -> None:
    values = torch.from_numpy(np.array([0.25, 0.5], dtype=np.float32))
    counts = [row["count"] for row in fisher_histogram({"output.weight": values}, (0.25, 0.5))]
    assert counts == [0, 1, 1]
