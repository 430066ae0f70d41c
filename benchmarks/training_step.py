"""A training step of ours against the same step of Hugging Face's T5 v1.1.

Both models hold the same weights and read the same batches in float32. A step is the forward pass,
the loss, the backward pass and the update by `torch.optim.Adafactor`. The two take turns in one
run, and the best time of each counts. The time is that of the processor, so that other programs on
the machine disturb little. Above 1, ours is faster. Hugging Face's model is not compiled. *Share of
peak* is the floating-point operations a second of our step over those of the best large matrix
product of the same run. With `--compile` our compiled step takes its turn, too, in float32 and with
the precision bfloat16. Needs the test tier (transformers).

    OMP_NUM_THREADS=1 python benchmarks/training_step.py [--compile]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
from stored import keep
from torch import Tensor

from mnmt_repro.architecture import ModelConfig, flops_per_target_token, parameter_counts
from mnmt_repro.interchange import from_transformers
from mnmt_repro.model import autocast
from mnmt_repro.training.config import usual_training
from mnmt_repro.training.loop import make_loss, make_optimiser

Step = Callable[[], float]
CASES = [(4000, width) for width in (16, 24, 40, 64, 128, 256)] + [(300, 16), (300, 40)]
"""Pieces and width."""
RATE = 1e-3
STEPS: dict[str, dict[str, Any]] = {
    "ours": {},
    "compiled": {"compile": True},
    "compiled, bfloat16": {"compile": True, "precision": "bfloat16"},
}
"""Our steps, and their training settings."""


def peer_of(pieces: int, width: int, layers: int) -> Any:
    """Hugging Face's T5 v1.1 of the same shape."""
    heads = 4 if width % 4 == 0 else 2
    config = transformers.T5Config(
        vocab_size=pieces, d_model=width, d_ff=4 * width, num_heads=heads, d_kv=width // heads,
        num_layers=layers, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        dropout_rate=0.0, decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).train()


def step_of(loss: Callable[[], Tensor], optimiser: torch.optim.Optimizer) -> Step:
    def step() -> float:
        value = loss()
        value.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return value.item()

    return step


def steps_of(
    pieces: int, width: int, layers: int, shape: tuple[int, int], compiled: bool
) -> tuple[dict[str, Step], ModelConfig]:
    """A step of each system on one batch of sentences, from the same weights."""
    torch.manual_seed(0)
    peer = peer_of(pieces, width, layers)
    source, target = torch.randint(4, pieces, shape), torch.randint(4, pieces, shape)
    read = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)
    there = {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": target}
    adafactor = torch.optim.Adafactor(peer.parameters(), lr=RATE, weight_decay=0.0)
    steps = {"peer": step_of(lambda: peer(**there).loss, adafactor)}
    torch.compiler.reset()  # the programs of the last shape
    for name in STEPS if compiled else ("ours",):
        model = from_transformers(peer.config.to_dict(), peer.state_dict())
        config = usual_training(learning_rate=RATE, **STEPS[name])
        loss = partial(make_loss(model, config), source, read, target)
        steps[name] = step_of(
            partial(mean_loss, loss, target.numel(), config.precision),
            make_optimiser(model, config),
        )
    return steps, model.config


def mean_loss(loss: Callable[[], Tensor], tokens: int, precision: str) -> Tensor:
    with autocast("cpu", precision):
        return loss() / tokens


def first_calls(steps: dict[str, Step]) -> dict[str, float]:
    """Wall seconds of the first call of each step, which may compile it; all do the same work."""
    losses, waits = {}, {}
    for name, step in steps.items():
        began = time.perf_counter()
        losses[name] = step()
        waits[name] = time.perf_counter() - began
    for name, loss in losses.items():
        assert np.isclose(loss, losses["peer"], 2e-3 if "16" in name else 1e-5), losses
    return waits


def in_turn(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Best processor seconds of each step, taken turn by turn for about so long in all."""
    best = dict.fromkeys(steps, float("inf"))
    began = time.process_time()
    while time.process_time() - began < seconds:
        for name, step in steps.items():
            start = time.process_time()
            step()
            best[name] = min(best[name], time.process_time() - start)
    return best


SQUARE = torch.ones(1024, 1024)


def peak() -> float:
    """Floating-point operations a second of the best large matrix product."""
    seconds = in_turn({"product": lambda: float((SQUARE @ SQUARE)[0, 0])}, 0.5)["product"]
    return 2 * len(SQUARE) ** 3 / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="measure our compiled step, too")
    parser.add_argument("--layers", type=int, default=2, help="of each stack")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--length", type=int, default=16, help="tokens of a sentence")
    parser.add_argument("--seconds", type=float, default=10, help="for each row of the table")
    parser.add_argument("--width", type=int, nargs="+", help="only these")
    parser.add_argument("--out", type=Path, help="such as data/benchmarks/training_step.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape, tokens = (options.sentences, options.length), options.sentences * options.length
    rows = []
    for pieces, width in CASES:
        if options.width and width not in options.width:
            continue
        steps, config = steps_of(pieces, width, options.layers, shape, options.compile)
        first_calls(steps)
        best, most = in_turn(steps, options.seconds), peak()
        flops = tokens * flops_per_target_token(
            config, source_length=options.length, target_length=options.length
        )
        for name in [name for name in steps if name != "peer"]:
            row = {
                "pieces": pieces, "width": width, "step": name, "N": parameters(config),
                "ms": 1e3 * best[name], "peer ms": 1e3 * best["peer"],
                "ratio": best["peer"] / best[name], "share of peak": flops / best[name] / most,
            }  # fmt: skip
            rows.append(row)
            shown = {key: v if key == "step" else f"{v:.4g}" for key, v in row.items()}
            print("  ".join(f"{key} {v}" for key, v in shown.items()), flush=True)
        if options.out:
            keep(
                options.out, pd.DataFrame(rows), transformers=transformers.__version__,
                layers=options.layers, sentences=options.sentences, length=options.length,
            )  # fmt: skip


def parameters(config: ModelConfig) -> int:
    """N, the parameters without tables."""
    return parameter_counts(config)["non_embedding"]


if __name__ == "__main__":
    main()
