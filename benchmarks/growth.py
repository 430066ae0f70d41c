"""How time and memory of our own steps grow, as one thing is varied at a time.

A step draws a batch, computes the loss and its gradient, and updates by Adafactor; beam search
translates 16 sentences. Each case has a process of its own. Its time is the median of the
processor's, and its memory the peak above what the process had after its imports and a first step.

    OMP_NUM_THREADS=1 python benchmarks/growth.py [--out data/benchmarks/growth.json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from stored import keep, resident

from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.vocabulary import EOS
from mnmt_repro.evaluation.search import SearchConfig, beam_search
from mnmt_repro.model import Transformer
from mnmt_repro.training.config import usual_training
from mnmt_repro.training.loop import TrainingData, batch_stream, make_loss, make_optimiser

CENTRE = {"width": 64, "tokens": 1024, "pieces": 4000, "languages": 2, "beam": 0}
VARIED = {
    "width": (16, 24, 40, 64, 128, 256),
    "tokens": (256, 512, 1024, 2048, 4096),
    "pieces": (500, 1000, 2000, 4000, 8000, 16_000),
    "languages": (2, 5, 10, 25, 50),
    "beam": (1, 2, 4, 8, 16),
}
SENTENCES = 5000  # of all pairs


def model_of(case: dict[str, int]) -> Transformer:
    """A model of T5's shape with two layers in each stack."""
    shape = ModelConfig.t5(vocab_size=case["pieces"], d_model=case["width"], layers=2, heads=4)
    return Transformer(shape)


def training(case: dict[str, int]) -> Callable[[], object]:
    """A step of training on random sentences of 8 to 24 tokens, shared evenly by the pairs."""
    random = np.random.default_rng(0)

    def rows(first: int, last: list[int]) -> Ragged:
        lengths = random.integers(8, 25, SENTENCES // case["languages"])
        words = (random.integers(4, case["pieces"], length).tolist() for length in lengths)
        return Ragged.of([*[first] * (first >= 0), *each, *last] for each in words)

    pairs = [f"src-{k}" for k in range(case["languages"])]
    data = TrainingData(sentences={p: EncodedPair(rows(-1, [EOS]), rows(0, [EOS])) for p in pairs})
    mixture = Mixture.of({pair: 1 / len(pairs) for pair in pairs})
    config = usual_training(learning_rate=1e-3, batch_tokens=case["tokens"])
    batches = batch_stream(data, mixture, config, 0).batches()
    model = model_of(case)
    loss, optimiser = make_loss(model, config), make_optimiser(model, config)

    def step() -> None:
        _, batch = next(batches)
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target)
        loss(source, target[:, :-1], target[:, 1:]).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def translation(case: dict[str, int]) -> Callable[[], object]:
    """Beam search over 16 sentences of 16 tokens, each translated to 16 pieces."""
    model = model_of(case)
    with torch.no_grad():
        model.output.weight[EOS] = 0.0  # hardly ever among the likeliest
    source = torch.randint(4, case["pieces"], (16, 16))
    source[:, -1] = EOS
    search = SearchConfig(beam=case["beam"], max_ratio=0, max_extra=15)
    return lambda: beam_search(model, source, 0, search, forbidden=(0,))


def measure(case: dict[str, int], seconds: float) -> dict[str, float]:
    """Milliseconds of processor time and bytes at the peak of one case."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make = translation if case["beam"] else training
    make(CENTRE | {"width": 8, "pieces": 100, "beam": case["beam"]})()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    run, taken = make(case), []
    began = time.process_time()
    while time.process_time() - began < seconds or len(taken) < 5:
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    counts = parameter_counts(model_of(case).config)
    peak = resident("VmHWM") - before
    return {"N": counts["non_embedding"], "ms": 1e3 * statistics.median(taken), "bytes": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="of each case")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for varied, values in VARIED.items():
        for value in values:
            case = CENTRE | {varied: value}
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(measure, (case, options.seconds))
            rows.append({"varied": varied, "value": value, **found})
            print(rows[-1], flush=True)
    if options.out:
        keep(options.out, pd.DataFrame(rows), centre=CENTRE)


if __name__ == "__main__":
    main()
