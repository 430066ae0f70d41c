"""The compiled training step: the same formulas as the plain one."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from small_runs import EVEN, same_weights, small_data, t5

from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training import loop
from mnmt_repro.training.compiled import GroupedAdafactor, can_compile, compiled_loss
from mnmt_repro.training.config import TrainingConfig

CONFIG = TrainingConfig(
    learning_rate=0.1, warmup_steps=2, batch_tokens=128, steps=6, curve_points=3, compile=True
)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.05)])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_the_plain_step(
    label_smoothing: float, width: int, precision: str, tolerance: float
) -> None:
    torch.manual_seed(0)
    plain = Transformer(t5(d_model=width))
    other = copy.deepcopy(plain)
    source, target = torch.randint(1, 40, (60, 9)), torch.randint(1, 40, (60, 8))
    source[::3, 5:], target[::2, 6:] = 0, 0
    factors = torch.tensor([0.1, 1.9]).repeat(30)
    given = source, target[:, :-1], target[:, 1:], label_smoothing, factors
    expected = plain.loss(*given)
    expected.backward()
    lower = precision == "bfloat16"
    with (
        torch.compiler.set_stance("force_eager"),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=lower),
    ):
        found = compiled_loss(other)(*given)
    (3 * found).backward()
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=tolerance / 10)
    exact = True
    for a, b in zip(plain.parameters(), other.parameters(), strict=True):
        assert b.grad.dtype is torch.float32
        assert torch.linalg.vector_norm(3 * a.grad - b.grad) <= tolerance * (
            torch.linalg.vector_norm(b.grad) + 1e-3
        )
        exact = exact and torch.allclose(3 * a.grad, b.grad, rtol=1e-4, atol=1e-4)
    assert exact is not lower


def test_adafactor_of_shapes_together_is_torch_s() -> None:
    plain = Transformer(t5())
    other = copy.deepcopy(plain)
    settings = {"lr": 0.05, "weight_decay": 0.1}
    ours = GroupedAdafactor(other.parameters(), **settings)
    peer = torch.optim.Adafactor(plain.parameters(), **settings)
    for step in range(4):
        torch.manual_seed(step)
        for a, b in zip(plain.parameters(), other.parameters(), strict=True):
            a.grad = torch.randn_like(a) * 10 ** (step - 2)
            b.grad = a.grad.clone()
        next(iter(other.parameters())).grad = next(iter(plain.parameters())).grad = None
        peer.step()
        ours.step()
        for a, b in zip(plain.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        ours.load_state_dict(
            copy.deepcopy(peer.state_dict())
        )  # either goes on from the other's state


def test_a_compiled_run_ends_near_an_interpreted_one_and_resumes_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, config: TrainingConfig, **more):
        return loop.train(
            t5(), config, small_data(), EVEN, tmp_path / name, seed=3, progress_bar=False, **more
        )

    if not can_compile("cpu"):
        pytest.skip("there is no C++ compiler")
    monkeypatch.setattr(loop, "can_compile", lambda device: True)  # which each run would try
    compiled = run("compiled", CONFIG)
    with torch.compiler.set_stance("force_eager"):
        interpreted = run("interpreted", CONFIG)
    losses = [[p["train_loss"] for p in progress.curve] for _, progress in (interpreted, compiled)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    asked = iter([False, True])
    run("stopped", CONFIG, stop=lambda: next(asked))
    assert same_weights(run("stopped", CONFIG)[0], compiled[0])


def test_without_a_compiler_a_compiled_run_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(loop, "can_compile", lambda device: False)
    with pytest.raises(InputError, match="needs a C\\+\\+ compiler.*--exact"):
        loop.train(t5(), CONFIG, small_data(), EVEN, tmp_path, seed=3)
