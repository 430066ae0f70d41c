"""Learning-rate scaling: each block's update is its factor times what it would have been."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.upgrading.config import Gamma, Ramp
from mnmt_repro.upgrading.learning_rate import (
    NEW,
    OLD,
    diagonal_fisher,
    fisher_groups,
    scale_updates,
)

ROWS = torch.tensor([[OLD]] * 3 + [[NEW]] * 2, dtype=torch.uint8)  # block of a (5, 4) matrix
COLUMNS = torch.tensor([[OLD, NEW, OLD, NEW]], dtype=torch.uint8)
GROUPS = {
    "rows": ROWS,
    "columns": COLUMNS,
    "bias": torch.tensor([OLD, NEW, NEW, OLD, NEW], dtype=torch.uint8),
    "old": torch.tensor([[OLD]], dtype=torch.uint8),
    "new": torch.tensor([[NEW]], dtype=torch.uint8),
}


def parameters(seed: int = 0) -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"rows": (5, 4), "columns": (5, 4), "bias": (5,), "old": (2, 3), "new": (2, 3)}
    shapes["free"] = (3, 2)  # in no group
    return {
        name: nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))
        for name, shape in shapes.items()
    }


def gradients(step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1000 + step)
    return {
        name: (1 + 10 * (step == 1)) * torch.randn(p.shape, generator=generator, dtype=p.dtype)
        for name, p in parameters().items()
    }


def optimiser_of(kind: str, values: dict[str, nn.Parameter]) -> torch.optim.Optimizer:
    if kind == "adafactor":
        return torch.optim.Adafactor(values.values(), lr=0.05, weight_decay=0.1)
    return torch.optim.AdamW(values.values(), lr=0.05, betas=(0.9, 0.98), weight_decay=0.1)


def step(values: dict[str, nn.Parameter], optimiser: torch.optim.Optimizer, number: int) -> None:
    for name, gradient in gradients(number).items():
        values[name].grad = gradient
    nn.utils.clip_grad_norm_(values.values(), 1.0)
    optimiser.step()


def run(
    kind: str, factors: tuple[Gamma, Gamma], steps: int
) -> tuple[dict[str, nn.Parameter], torch.optim.Optimizer]:
    values = parameters()
    optimiser = optimiser_of(kind, values)
    scale_updates(optimiser, values, GROUPS, factors)
    for number in range(1, steps + 1):
        step(values, optimiser, number)
    return values, optimiser


@pytest.mark.parametrize("kind", ["adamw", "adafactor"])
@pytest.mark.parametrize("factors", [(1.0, 0.5), (5.0, 0.5), (1.0, 0.0), (5.0, 5.0)])
def test_each_blocks_update_is_its_factor_times_what_it_would_be(
    kind: str, factors: tuple[float, float]
) -> None:
    """What it would be: one step of a plain optimiser from the same weights and moments."""
    values = parameters()
    optimiser = optimiser_of(kind, values)
    scale_updates(optimiser, values, GROUPS, factors)
    for number in range(1, 5):
        before = {name: p.detach().clone() for name, p in values.items()}
        twin = {name: nn.Parameter(p.detach().clone()) for name, p in values.items()}
        plain = optimiser_of(kind, twin)
        state = copy.deepcopy(optimiser.state_dict())
        state["state"].pop(-1)
        plain.load_state_dict(state)
        step(twin, plain, number)
        step(values, optimiser, number)
        for name, parameter in values.items():
            would_be = twin[name].detach() - before[name]
            assert would_be.abs().min() > 1e-6
            group = GROUPS.get(name)
            gamma = torch.ones_like(would_be)
            if group is not None:
                gamma = torch.where(group == OLD, factors[1], factors[0]) * gamma
            torch.testing.assert_close(
                parameter.detach() - before[name], gamma * would_be, rtol=0, atol=1e-9
            )


@pytest.mark.parametrize("kind", ["adamw", "adafactor"])
def test_factors_of_one_change_no_bit(kind: str) -> None:
    values, _ = run(kind, (1.0, 1.0), 3)
    plain = parameters()
    optimiser = optimiser_of(kind, plain)
    for number in range(1, 4):
        step(plain, optimiser, number)
    assert all(torch.equal(values[name], plain[name]) for name in plain)
    # Nor do they in a step where only the other group's factor differs.
    half, _ = run(kind, (1.0, 0.5), 1)
    once, _ = run(kind, (1.0, 1.0), 1)
    assert torch.equal(half["new"], once["new"])
    assert torch.equal(half["rows"][3:], once["rows"][3:])
    assert not torch.equal(half["rows"][:3], once["rows"][:3])


def test_a_ramp_by_hand() -> None:
    """Plain gradient descent, rate 1, gradient 1: the parameter falls by the factor itself."""
    ramp = Ramp(start=0.05, end=0.5, steps=4)
    assert [ramp.at(i) for i in (1, 2, 3, 4, 50)] == pytest.approx([0.05, 0.2, 0.35, 0.5, 0.5])
    parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = torch.optim.SGD([parameter], lr=1.0)
    old = {"p": torch.tensor([OLD], dtype=torch.uint8)}
    scale_updates(optimiser, {"p": parameter}, old, (1.0, ramp))
    seen = []
    for _ in range(5):
        parameter.grad = torch.ones_like(parameter)
        optimiser.step()
        seen.append(-parameter.item())
    assert seen == pytest.approx([0.05, 0.25, 0.6, 1.1, 1.6])


def test_impossible_scalings_are_refused() -> None:
    values = parameters()
    optimiser = optimiser_of("adamw", values)
    with pytest.raises(InputError, match="names other, which the model does not have"):
        scale_updates(optimiser, values, {"other": ROWS}, (1.0, 1.0))
    with pytest.raises(InputError, match=r"rows has shape \(4, 1\), the parameter \(5, 4\)"):
        scale_updates(optimiser, values, {"rows": ROWS[:4]}, (1.0, 1.0))
    with pytest.raises(InputError, match="rows has group 1, but there are only 1 factors"):
        scale_updates(optimiser, values, {"rows": ROWS}, (1.0,))
    with pytest.raises(InputError, match="factor must be at least 0, got -0.5"):
        scale_updates(optimiser, values, GROUPS, (1.0, -0.5))


# --- Fisher information ---------------------------------------------------------------------------

T5 = ModelConfig.t5(vocab_size=11, d_model=8, layers=1, heads=2, dropout=0.3)
PAIRS = [([5, 6, 1], [3, 7, 8, 1]), ([9, 1], [3, 4, 1])]


def test_fisher_information_is_the_mean_square_of_each_pairs_gradient() -> None:
    model = Transformer(T5, seed=2).double()
    pairs = [(torch.tensor(s), torch.tensor(t)) for s, t in PAIRS]
    fisher = diagonal_fisher(model, pairs)
    assert model.training  # as it was
    model.eval()
    squares = torch.zeros_like(model.output.weight)
    for source, target in pairs:
        hidden = model.hidden(source[None], target[None, :-1])[0]  # (T, d)
        error = (hidden @ model.output.weight.T).softmax(-1)  # d(-log p) / d(logits) by hand
        error = error - F.one_hot(target[1:], 11)
        squares += (error.T @ hidden).square()
    torch.testing.assert_close(fisher["output.weight"], squares.detach() / 5)  # 3 + 2 tokens
    assert fisher.keys() == dict(model.named_parameters()).keys()
    with pytest.raises(InputError, match="at least one sentence pair"):
        diagonal_fisher(model, [])


def test_thresholds_choose_old_entries_only() -> None:
    fisher = {"w": torch.tensor([[1e-7, 1e-5], [1e-3, 1e-3]])}
    groups = {"w": torch.tensor([[OLD], [NEW]], dtype=torch.uint8)}
    assert fisher_groups(fisher, groups, (1e-6,))["w"].tolist() == [[1, 2], [0, 0]]
    all_old = {"w": torch.tensor([[OLD]], dtype=torch.uint8)}
    assert fisher_groups(fisher, all_old, (1e-6, 1e-4))["w"].tolist() == [[1, 2], [3, 3]]
