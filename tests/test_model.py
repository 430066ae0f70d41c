from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mnmt_repro.architecture import PAPER_A, ModelConfig, flops_per_target_token, parameter_counts
from mnmt_repro.model import Transformer, linear_cross_entropy

T5 = ModelConfig(
    vocab_size=23, d_model=12, d_ff=20, heads=3, head_dim=5, encoder_layers=2, decoder_layers=3
)
FAIRSEQ = ModelConfig.fairseq(vocab_size=23, d_model=12, layers=2, heads=3, d_ff=20)
SHAPES = {"t5": T5, "fairseq": FAIRSEQ}

SOURCE = torch.tensor([[5, 6, 7, 8, 1], [9, 10, 1, 0, 0]])
TARGET = torch.tensor([[3, 11, 12, 13, 1], [3, 14, 15, 1, 0]])


@pytest.fixture(params=SHAPES)
def model(request: pytest.FixtureRequest) -> Transformer:
    """A small model in float64, so that what must be equal is equal to the last digits."""
    return Transformer(SHAPES[request.param], seed=1).double().eval()


# --- counts and FLOPs ---------------------------------------------------------------------------

OTHER_SHAPES = {
    "untied fairseq": dataclasses.replace(FAIRSEQ, tie_output=False),
    "gated with biases": dataclasses.replace(FAIRSEQ, feed_forward="gated-gelu"),
    "relu without biases": dataclasses.replace(T5, feed_forward="relu", tie_output=True),
    "few buckets": dataclasses.replace(T5, relative_buckets=8),
}


@pytest.mark.parametrize("name", {**SHAPES, **OTHER_SHAPES})
def test_counts_are_those_of_the_real_parameters(name: str) -> None:
    config = {**SHAPES, **OTHER_SHAPES}[name]
    groups = {"encoder": 0, "decoder": 0, "embedding": 0, "output": 0}
    for parameter, value in Transformer(config).named_parameters():
        groups[parameter.split(".")[0].split("_")[0]] += value.numel()
    assert parameter_counts(config) == {
        "encoder": groups["encoder"],
        "decoder": groups["decoder"],
        "input_embedding": groups["embedding"],
        "output_projection": groups["output"],
        "non_embedding": groups["encoder"] + groups["decoder"],
        "total": sum(groups.values()),
    }


def test_published_counts_of_paper_a() -> None:
    """Fifteen of sixteen agree; the total at d = 1280 is printed 327,680 (256 x 1280) too high."""
    assert [row.config.d_model for row in PAPER_A] == [512, 768, 768, 768, 1024, 1024, 1280, 1536]
    differences = [
        (
            row.published_total - parameter_counts(row.config)["total"],
            row.published_non_embedding - parameter_counts(row.config)["non_embedding"],
        )
        for row in PAPER_A
    ]
    assert differences == [(0, 0)] * 6 + [(327_680, 0)] + [(0, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("source, target", [(24, 16), (8, 32)])
def test_flops_against_the_counter_of_torch(shape: str, source: int, target: int) -> None:
    """Equal to the last one once norms, biases and position tables, no products, are taken off."""
    model, sentences = Transformer(SHAPES[shape]), 3
    ids = torch.ones(sentences, source + target, dtype=torch.long)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(ids[:, :source], ids[:, source:]).sum().backward()
    formula = flops_per_target_token(model.config, source_length=source, target_length=target)
    no_products = sum(
        parameter.numel() * (source if name.startswith("encoder") else target)
        for name, parameter in model.named_parameters()
        if parameter.ndim == 1 or "positions" in name
    )
    expected = counter.get_total_flops() / sentences + 6 * no_products
    assert formula * target == pytest.approx(expected, rel=1e-12)


# --- loss ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("slice_tokens", [7, 40, 256])
def test_linear_cross_entropy(
    label_smoothing: float, slice_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnmt_repro.model.SLICE_TOKENS", slice_tokens)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(41, 6, dtype=torch.float64, generator=generator).requires_grad_()
    weight = torch.randn(17, 6, dtype=torch.float64, generator=generator).requires_grad_()
    targets = torch.randint(17, (41,), generator=generator)
    expected = F.cross_entropy(
        hidden @ weight.T, targets, reduction="sum", label_smoothing=label_smoothing
    )
    gradients = torch.autograd.grad(1.7 * expected, [hidden, weight])
    found = linear_cross_entropy(hidden, weight, targets, label_smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)
    found_gradients = torch.autograd.grad(1.7 * found, [hidden, weight])
    torch.testing.assert_close(found_gradients, gradients, rtol=1e-12, atol=1e-13)


def test_linear_cross_entropy_of_scores_too_large_for_exp() -> None:
    hidden, weight = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0], [0.5]])
    found = linear_cross_entropy(hidden, weight, torch.tensor([1]))
    assert found.item() == 2000.0


def test_loss_is_the_sum_over_real_target_tokens(model: Transformer) -> None:
    logits = model(SOURCE, TARGET[:, :-1])
    expected = sum(
        -logits[row, step].log_softmax(0)[TARGET[row, step + 1]]
        for row, step in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    )
    torch.testing.assert_close(model.loss(SOURCE, TARGET[:, :-1], TARGET[:, 1:]), expected)


# --- what a sentence may depend on --------------------------------------------------------------


def test_padding_changes_no_loss_and_no_gradient(model: Transformer) -> None:
    def loss_and_gradients(
        source: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        loss = model.loss(source, target[:, :-1], target[:, 1:])
        return loss.detach(), torch.autograd.grad(loss, list(model.parameters()))

    plain = loss_and_gradients(SOURCE, TARGET)
    columns = loss_and_gradients(F.pad(SOURCE, (0, 3)), F.pad(TARGET, (0, 4)))
    rows = loss_and_gradients(F.pad(SOURCE, (0, 0, 0, 2)), F.pad(TARGET, (0, 0, 0, 2)))
    torch.testing.assert_close(columns, plain, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(rows, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("steps", [(1, 1, 1, 1), (3, 1)])
def test_cached_decoding_equals_decoding_at_once(
    model: Transformer, steps: tuple[int, ...]
) -> None:
    at_once = model.hidden(SOURCE, TARGET[:, :-1])
    cache = model.start(*model.encode(SOURCE))
    parts = [model.decode(part, cache) for part in TARGET[:, :-1].split(steps, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), at_once, rtol=1e-12, atol=1e-12)


# --- seeds and dropout --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_the_seed_alone_decides_the_weights(shape: str) -> None:
    first = Transformer(SHAPES[shape], seed=5).state_dict()
    torch.rand(7)
    second = Transformer(SHAPES[shape], seed=5).state_dict()
    other = Transformer(SHAPES[shape], seed=6).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(not torch.equal(first[name], other[name]) for name in first if first[name].ndim == 2)


def test_making_a_model_leaves_the_initial_weights_to_its_seed_and_scale() -> None:
    """T5: std 1 for the table, 1/sqrt(fan-in) for maps, queries also over sqrt(head_dim)."""
    config = ModelConfig.t5(vocab_size=400, d_model=64, layers=1, heads=4)
    weights = Transformer(config).state_dict()
    assert weights["embedding.weight"].std().item() == pytest.approx(1, rel=0.05)
    assert weights["output.weight"].std().item() == pytest.approx(1 / 8, rel=0.05)
    assert weights["encoder.0.attention.k.weight"].std().item() == pytest.approx(1 / 8, rel=0.05)
    assert weights["encoder.0.attention.q.weight"].std().item() == pytest.approx(1 / 32, rel=0.05)
    assert weights["decoder.0.feed_forward.out.weight"].std().item() == pytest.approx(
        1 / 16, rel=0.05
    )


@pytest.mark.parametrize("field", ["dropout", "attention_dropout"])
@pytest.mark.parametrize("shape", SHAPES)
def test_dropout_acts_in_training_only(shape: str, field: str) -> None:
    model = Transformer(dataclasses.replace(SHAPES[shape], **{field: 0.5}), seed=1)
    plain = Transformer(SHAPES[shape], seed=1)(SOURCE, TARGET)
    assert torch.equal(model.eval()(SOURCE, TARGET), plain)
    model.train()
    assert not torch.allclose(model(SOURCE, TARGET), model(SOURCE, TARGET), atol=1e-3)
