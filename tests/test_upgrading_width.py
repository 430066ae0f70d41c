"""Wider feed-forward layers: the units match across matrices, and the function stays."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.model import FeedForward
from mnmt_repro.upgrading.config import WidthConfig
from mnmt_repro.upgrading.width import widen

T5 = ModelConfig.t5(vocab_size=8, d_model=6, layers=1, heads=2, d_ff=10)
FAIRSEQ = ModelConfig.fairseq(vocab_size=8, d_model=6, layers=1, heads=2, d_ff=10)
GATED_BIAS = dataclasses.replace(FAIRSEQ, feed_forward="gated-gelu")
SHAPES = {"gated": T5, "relu": FAIRSEQ, "gated with biases": GATED_BIAS}


def layer(ff: int, *, gated: bool = False, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"up.weight": (ff, 3), "up.bias": (ff,), "out.weight": (3, ff), "out.bias": (3,)}
    if gated:
        shapes |= {"gate.weight": (ff, 3), "gate.bias": (ff,)}
    return {k: torch.randn(s, generator=generator, dtype=torch.float64) for k, s in shapes.items()}


def noise(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@torch.no_grad()
def function_gap(config: ModelConfig, wider: float, width: WidthConfig, *, seed: int = 0) -> float:
    """Norm of the change of a random layer's output over its own, on 256 Gaussian inputs."""
    generator = torch.Generator().manual_seed(seed)
    wide = dataclasses.replace(config, d_ff=round(config.d_ff * wider))
    old, new = FeedForward(config).double(), FeedForward(wide).double()
    for layer in (old, new):
        for tensor in layer.parameters():
            drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            tensor.copy_(drawn / math.sqrt(tensor.shape[-1]))
    weights, _ = widen(dict(old.named_parameters()), dict(new.named_parameters()), width, generator)
    new.load_state_dict(weights)
    x = torch.randn(256, config.d_model, generator=generator, dtype=torch.float64)
    before, after = old.eval()(x), new.eval()(x)
    return float((after - before).norm() / before.norm())


# --- the function ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wider", [1, 1.5, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_function_is_kept_without_noise(shape: str, wider: int) -> None:
    config = WidthConfig(noise=0.0, normalisation="function")
    assert function_gap(SHAPES[shape], wider, config) < 1e-12


@pytest.mark.parametrize("normalisation", ["function-shared", "frobenius"])
def test_relu_keeps_it_when_both_matrices_share_the_scale(normalisation: str) -> None:
    assert function_gap(FAIRSEQ, 2, WidthConfig(noise=0.0, normalisation=normalisation)) < 1e-12


@pytest.mark.parametrize("shape", ["gated", "gated with biases"])
def test_the_published_normalisation_changes_a_gated_layer(shape: str) -> None:
    """Three matrices over sqrt(2), of which the output is 2 / sqrt(8) times less, and more in that
    GELU bends.
    """
    gap = function_gap(SHAPES[shape], 2, WidthConfig(noise=0.0, normalisation="frobenius"))
    assert 1 - 2 / math.sqrt(8) < gap < 1


# --- the units ------------------------------------------------------------------------------------


def test_concatenation_by_hand() -> None:
    old = layer(4, gated=True)
    config = WidthConfig(normalisation="none")
    wide, units = widen(old, layer(8, gated=True), config, noise())
    assert units.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    for name in ("up.weight", "gate.weight", "up.bias", "gate.bias"):
        assert torch.equal(wide[name][:4], old[name])
    assert torch.equal(wide["out.weight"][:, :4], old["out.weight"])
    for name in ("up.bias", "gate.bias"):  # no noise on biases
        assert torch.equal(wide[name][4:], old[name])
    assert torch.equal(wide["out.bias"], old["out.bias"])
    assert not torch.equal(wide["up.weight"][4:], old["up.weight"])
    torch.testing.assert_close(wide["out.weight"][:, 4:], old["out.weight"], rtol=0, atol=0.06)


def test_noise_has_the_given_standard_deviation_and_is_the_seeds() -> None:
    old = {"up.weight": torch.zeros(400, 50), "out.weight": torch.zeros(50, 400)}
    fresh = {"up.weight": torch.ones(800, 50), "out.weight": torch.ones(50, 800)}
    config = WidthConfig(noise=0.01, normalisation="none")
    wide, _ = widen(old, fresh, config, noise())
    for new in (wide["up.weight"][400:], wide["out.weight"][:, 400:]):
        # 20,000 draws: the estimate's standard error is 0.5 % of it
        assert new.std().item() == pytest.approx(0.01, rel=0.03)
        assert abs(new.mean().item()) < 5 * 0.01 / math.sqrt(20_000)
    again, _ = widen(old, fresh, config, noise())
    other, _ = widen(old, fresh, config, noise(2))
    assert torch.equal(again["up.weight"], wide["up.weight"])
    assert not torch.equal(other["up.weight"], wide["up.weight"])


def test_interpolation_by_hand() -> None:
    old = {
        "up.weight": torch.tensor([[0.0], [2.0], [8.0]]),
        "up.bias": torch.tensor([1.0, 3.0, 5.0]),
        "out.weight": torch.tensor([[10.0, 20.0, 40.0]]),
        "out.bias": torch.tensor([7.0]),
    }
    fresh = {k: torch.zeros(s) for k, s in
             {"up.weight": (6, 1), "up.bias": (6,), "out.weight": (1, 6)}.items()}  # fmt: skip
    config = WidthConfig(init="interpolation", normalisation="none")
    wide, units = widen(old, fresh, config, noise())
    assert units.tolist() == [0, -1, 1, -1, 2, -1]
    assert wide["up.weight"].flatten().tolist() == [0, 1, 2, 5, 8, 8]
    assert wide["up.bias"].tolist() == [1, 2, 3, 4, 5, 5]
    assert wide["out.weight"].flatten().tolist() == [10, 15, 20, 30, 40, 40]
    assert wide["out.bias"].tolist() == [7]


def test_random_keeps_the_old_units_and_draws_the_others() -> None:
    old, fresh = layer(4), layer(8, seed=3)
    wide, units = widen(old, fresh, WidthConfig(init="random"), noise())
    assert units.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    assert torch.equal(wide["up.weight"], torch.cat([old["up.weight"], fresh["up.weight"][4:]]))
    assert torch.equal(wide["up.bias"], torch.cat([old["up.bias"], fresh["up.bias"][4:]]))
    expected = torch.cat([old["out.weight"], fresh["out.weight"][:, 4:]], 1)
    assert torch.equal(wide["out.weight"], expected)


@pytest.mark.parametrize("init", ["concatenation", "interpolation"])
def test_frobenius_norms_are_the_old_ones(init: str) -> None:
    old, config = layer(4, gated=True), WidthConfig(init=init, normalisation="frobenius")
    wide, _ = widen(old, layer(8, gated=True), config, noise())
    for name in ("up.weight", "gate.weight", "out.weight"):
        assert wide[name].norm().item() == pytest.approx(old[name].norm().item())
    if init == "concatenation":
        ratio = wide["up.weight"][0, 0] / old["up.weight"][0, 0]
        torch.testing.assert_close(wide["up.bias"][:4], ratio * old["up.bias"])
        assert ratio.item() == pytest.approx(1 / math.sqrt(2), rel=0.01)


def test_what_cannot_be_widened_is_refused() -> None:
    with pytest.raises(InputError, match="narrower: 4 units to 3"):
        widen(layer(4), layer(3), WidthConfig(), noise())
    with pytest.raises(InputError, match="whole multiple of the old 4 units, got 6"):
        widen(layer(4), layer(6), WidthConfig(init="interpolation"), noise())
    gated = layer(4, gated=True), layer(8, gated=True)
    with pytest.raises(InputError, match="function of a ReLU layer only"):
        widen(*gated, WidthConfig(normalisation="function-shared"), noise())
