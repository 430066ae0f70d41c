"""The faster training step of `TrainingConfig.compile`: the same formulas, rounded otherwise.

- `torch.compile` makes one program of the encoder and the decoder, for batches of any shape. So
  batches are padded to their longest sentence, and not to a multiple of 8.
- The loss normalises scores after the products and not before them, which saves four passes over
  tokens times pieces. With `precision` bfloat16 it takes the products of scores in bfloat16, too.
- Adafactor updates all parameters of one shape together.

PyTorch keeps compiled programs in the user's cache, so that a grid compiles each size of its models
once.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from mnmt_repro.architecture import SLICE_TOKENS
from mnmt_repro.corpora.vocabulary import PAD
from mnmt_repro.model import (
    LinearCrossEntropy,
    Transformer,
    linear_cross_entropy,
    weighted_loss,
)
from mnmt_repro.repository import cache_root
from mnmt_repro.training.checkpoint import adafactor_state


def can_compile(device: str) -> bool:
    """Whether `torch.compile` works here: for a processor it needs a C++ compiler."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_root() / "compiled"))
    try:
        torch.compile(lambda x: x + 1)(torch.zeros(1, device=device))
    except torch._dynamo.exc.TorchDynamoException:
        return False
    return True


def has_bfloat16() -> bool:
    """Whether this processor multiplies in bfloat16 itself; others imitate it slowly."""
    return any(getattr(torch.cpu, f"_is_{name}_supported", bool)() for name in _PRODUCTS)


_PRODUCTS = ("avx512_bf16", "amx_tile")
"""What a processor of that kind has, as PyTorch calls it."""

_EXAMPLE = (12, 24, 40)
"""Sentences, source and target tokens of the batch that a program is compiled for."""

_WIDE = 32
"""Width from which layers gain from bfloat16 on a processor; below it, conversions take longer."""


def compiled_loss(network: Transformer) -> Callable[..., Tensor]:
    """`network.loss`, compiled when it is first called."""
    hidden = torch.compile(network.hidden, dynamic=True)
    parameters = list(network.parameters())
    compiled = False

    def compile_once() -> None:
        # The program's rounding depends on the batch that it is compiled for. With an example whose
        # sizes all differ, and may all change, a resumed run has the program that it began with. On
        # one thread it ends with the same weights; several threads add up in any order.
        nonlocal compiled
        sentences, *tokens = _EXAMPLE
        source, target = (parameters[0].new_ones((sentences, n), dtype=torch.long) for n in tokens)
        with (
            torch.random.fork_rng(),
            torch.fx.experimental._config.patch(use_duck_shape=False),  # type: ignore[attr-defined]
            torch._dynamo.config.patch(specialize_float=True),  # otherwise it is traced twice
        ):
            torch.autograd.grad(hidden(source, target).sum(), parameters, allow_unused=True)
        compiled = True

    def loss(
        source: Tensor,
        target_in: Tensor,
        target_out: Tensor,
        label_smoothing: float = 0.0,
        factors: Tensor | None = None,
    ) -> Tensor:
        lower = torch.is_autocast_enabled("cpu")
        with (
            sdpa_kernel(SDPBackend.MATH),  # the plain formula, whose parts the compiler fuses
            torch.autocast("cpu", enabled=lower and network.config.d_model >= _WIDE),
        ):
            if not compiled:
                compile_once()
            states = hidden(source.contiguous(), target_in.contiguous())
        products = torch.get_autocast_dtype("cpu") if lower else torch.float32

        def of_tokens(chosen: Tensor) -> Tensor:
            inputs = states[chosen], network.output_weight, target_out[chosen], label_smoothing
            if states.is_cuda:
                return linear_cross_entropy(*inputs)
            return _CrossEntropy.apply(*inputs, products)

        return weighted_loss(of_tokens, target_out != PAD, factors)

    return loss


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on the first call: importing the compiler takes seconds."""
    return torch.compile(function, dynamic=True)


def _exponentials(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Replace scores (n, V) by their exponentials over the likeliest piece's.

    Returns
    -------
    The likeliest piece's scores (n, 1), and sums of the exponentials (n, 1), in float32.
    """
    top = scores.amax(1, keepdim=True).float()
    exponentials = (scores.float() - top).exp().to(scores.dtype)
    scores.copy_(exponentials)
    return top, exponentials.float().sum(1, keepdim=True)


class _CrossEntropy(LinearCrossEntropy):
    """The same loss and gradients with fewer passes over the scores.

    With e = exp(score - top) and their sum z, softmax is e / z. The products are taken with e, and
    the division and the target's -1 are made in their results, which are V / d times smaller. The
    target's own score, all sums and both gradients are float32, whatever the products are.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(
        ctx: Any,
        hidden: Tensor,  # (n, d)
        weight: Tensor,  # (V, d)
        targets: Tensor,  # (n,)
        label_smoothing: float,
        products: torch.dtype,
    ) -> Tensor:
        keep, even = 1.0 - label_smoothing, label_smoothing / len(weight)
        by_width = weight.T.contiguous().to(products)  # (d, V)
        own = weight[targets]
        grad_hidden = own * -keep
        grad_weight = hidden.new_zeros(by_width.shape)
        size = SLICE_TOKENS * hidden.itemsize // by_width.itemsize  # as many bytes of scores
        buffer = by_width.new_empty(min(size, len(hidden)), len(weight))
        total = -keep * (hidden * own).sum()
        for start in range(0, len(hidden), size):
            h = hidden[start : start + size]
            scores = torch.mm(h.to(products), by_width, out=buffer[: len(h)])
            top, z = _compiled(_exponentials)(scores)
            total += (top + z.log()).sum()
            grad_hidden[start : start + size] += (by_width @ scores.T).T / z
            if products == torch.float32:
                grad_weight.addmm_((h / z).T, scores)
            else:
                grad_weight += (h / z).T.to(products) @ scores
        grad_weight = grad_weight.T.contiguous().index_add_(0, targets, hidden, alpha=-keep)
        if even:
            all_pieces, all_hidden = weight.sum(0), hidden.sum(0)
            total -= even * (all_hidden @ all_pieces)
            grad_hidden -= even * all_pieces
            grad_weight -= even * all_hidden
        ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *LinearCrossEntropy.backward(ctx, *grads), None


_LARGE = 50_000
"""Values of a parameter above which it is updated alone, because copying it takes longer."""


class GroupedAdafactor(torch.optim.Adafactor):
    """`torch.optim.Adafactor` with the same state, for all parameters of one shape together."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            together: dict[tuple[torch.Size, float, int], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter]
                    if not state:
                        state.update(adafactor_state(parameter))
                    state["step"] += 1
                    alone = id(parameter) if parameter.numel() > _LARGE else 0
                    key = parameter.shape, float(state["step"]), alone
                    together.setdefault(key, []).append(parameter)
            for (_, step, _), parameters in together.items():
                self._update(parameters, step, group)

    def _update(self, parameters: list[Tensor], step: float, group: dict[str, Any]) -> None:
        share = step ** group["beta2_decay"]
        least = group["eps"][0] or torch.finfo(parameters[0].dtype).eps
        size = math.sqrt(parameters[0].numel())

        def averaged(name: str, values: Tensor) -> Tensor:
            """Move an average of the state towards new values, (parameters, ...)."""
            old = [self.state[parameter][name] for parameter in parameters]
            torch._foreach_lerp_(old, list(values.unbind()), share)
            return torch.stack(old)

        if len(parameters) == 1:  # neither is written to, so no copy is needed
            gradient, weights = parameters[0].grad[None], parameters[0][None]  # type: ignore[index]
        else:
            gradient = torch.stack([p.grad for p in parameters])  # type: ignore[misc]
            weights = torch.stack(parameters)
        over = tuple(range(1, weights.ndim))
        rate = torch.linalg.vector_norm(weights, dim=over, keepdim=True).div_(size)
        rate = rate.clamp_(min=group["eps"][1]).mul_(min(group["lr"], step**-0.5))
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        if weights.ndim > 2:
            square = gradient * gradient
            row = averaged("row_var", square.mean(-1, keepdim=True))
            column = averaged("col_var", square.mean(-2, keepdim=True))
            row = row.div_(row.mean(-2, keepdim=True).clamp_(min=least))
            update = torch.mul(row, column, out=square)
        else:
            update = averaged("variance", gradient * gradient)
        update = update.clamp_(min=least * least).rsqrt_().mul_(gradient)
        length = torch.linalg.vector_norm(update, dim=over, keepdim=True).div_(size * group["d"])
        update.mul_(rate.div_(length.clamp_(min=1.0)))
        torch._foreach_sub_(parameters, list(update.unbind()))
