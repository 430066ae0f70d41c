"""Loss and gradients from hidden states: ours in slices against PyTorch over full logits.

Both do the same work in one run, turn by turn: value, gradient of the hidden states and gradient of
the output matrix, float32. The ratio is PyTorch's best time over ours; above 1, ours is faster.

    python benchmarks/linear_cross_entropy.py
    OMP_NUM_THREADS=1 python benchmarks/linear_cross_entropy.py --vocabulary 32000 --width 512
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from mnmt_repro.model import linear_cross_entropy


def full_logits(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(hidden @ weight.T, targets, reduction="sum")


def timed(
    loss: Callable[[Tensor, Tensor, Tensor], Tensor], *inputs: Tensor
) -> tuple[float, list[Tensor]]:
    hidden, weight, targets = inputs
    began = time.perf_counter()
    value = loss(hidden, weight, targets)
    gradients = torch.autograd.grad(value, [hidden, weight])
    return time.perf_counter() - began, [value.detach(), *gradients]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2048, help="target tokens (default: 2048)")
    parser.add_argument("--width", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[4096, 16384])
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    print(
        f"{options.tokens} tokens, {torch.get_num_threads()} thread(s), torch {torch.__version__}"
    )
    print("width  pieces  ours ms  PyTorch ms  ratio")
    for width in options.width:
        for pieces in options.vocabulary:
            generator = torch.Generator().manual_seed(0)
            hidden = torch.randn(options.tokens, width, generator=generator).requires_grad_()
            weight = torch.randn(pieces, width, generator=generator) * width**-0.5
            weight.requires_grad_()
            targets = torch.randint(pieces, (options.tokens,), generator=generator)
            best = {linear_cross_entropy: float("inf"), full_logits: float("inf")}
            for _ in range(1 + options.repeats):
                results = {}
                for loss in best:
                    seconds, results[loss] = timed(loss, hidden, weight, targets)
                    best[loss] = min(best[loss], seconds)
            torch.testing.assert_close(*results.values(), rtol=1e-4, atol=1e-4)
            ours, peer = best.values()
            print(
                f"{width:5}  {pieces:6}  {ours * 1e3:7.1f}  {peer * 1e3:10.1f}  {peer / ours:5.2f}"
            )


if __name__ == "__main__":
    main()
