"""A training step with `torch.compile` against the same step without, and when it pays.

Both take the gradient of the same loss on the same batches in one run, turn by turn. Batches come
in a few padded shapes, as in training, and each is compiled by itself. *Pays after* is how many
steps must follow before the time that compiling took has been won back.

    OMP_NUM_THREADS=1 python benchmarks/compile.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.model import PAD, Transformer, linear_cross_entropy

Hidden = Callable[[Tensor, Tensor], Tensor]


def step(model: Transformer, hidden: Hidden, source: Tensor, target: Tensor) -> float:
    """Seconds of one forward and backward pass."""
    began = time.perf_counter()
    states, out = hidden(source, target[:, :-1]), target[:, 1:]
    real = out != PAD
    linear_cross_entropy(states[real], model.output_weight, out[real]).backward()
    model.zero_grad(set_to_none=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, nargs="+", default=[16, 40, 128])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pieces", type=int, default=4000)
    parser.add_argument("--tokens", type=int, default=1024, help="target tokens a step")
    parser.add_argument("--lengths", type=int, nargs="+", default=[8, 16, 24, 40])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print(f"{options.tokens} tokens a step, {torch.get_num_threads()} thread(s)")
    print("width  plain ms  compiled ms  ratio  compiling s  pays after steps")
    for width in options.width:
        config = ModelConfig.t5(
            vocab_size=options.pieces, d_model=width, layers=options.layers, heads=4
        )
        model = Transformer(config, seed=0)
        compiled = torch.compile(model.hidden, dynamic=False)
        batches = []
        for length in options.lengths:
            shape = (options.tokens // length, length)
            generator = torch.Generator().manual_seed(length)
            source = torch.randint(4, options.pieces, shape, generator=generator)
            target = torch.randint(4, options.pieces, (shape[0], length + 1), generator=generator)
            batches.append((source, target))
        warm = sum(step(model, compiled, *batch) for batch in batches)
        best = {"plain": 0.0, "compiled": 0.0}
        for batch in batches:
            times: dict[str, list[float]] = {"plain": [], "compiled": []}
            for _ in range(options.repeats):
                times["plain"].append(step(model, model.hidden, *batch))
                times["compiled"].append(step(model, compiled, *batch))
            for name, taken in times.items():
                best[name] += min(taken) / len(batches)
        plain, fast = best["plain"], best["compiled"]
        after = f"{warm / (plain - fast):,.0f}" if plain > fast else "never"
        print(
            f"{width:5}  {plain * 1e3:8.1f}  {fast * 1e3:11.1f}  {plain / fast:5.2f}  "
            f"{warm:11.1f}  {after:>16}"
        )


if __name__ == "__main__":
    main()
