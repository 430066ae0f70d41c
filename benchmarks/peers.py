"""Training and translation beside Hugging Face and CTranslate2: one table of one run.

Training is the step of `training_step`, in the modes that a user gets: exact, compiled, and
compiled with bfloat16. A step is compiled anew, in an empty cache, and this is part of the time for
a budget of 5M target tokens. *pays* is the budget in target tokens from which a compiled run ends
before an exact one; `training.config.COMPILE_PAYS` holds such numbers.
Translation is the search of `beam_search`. Times are of one thread, and *ratio* is Hugging Face's
time over the system's: above 1, the system is faster. Needs the test tier and an idle machine, for
about a quarter of an hour.

    OMP_NUM_THREADS=1 python benchmarks/peers.py --out data/benchmarks/peers.json
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ctranslate2
import pandas as pd
import torch
import transformers
from beam_search import best_of, searches
from stored import keep
from training_step import first_calls, in_turn, steps_of

PIECES, LAYERS, SENTENCES, LENGTH = 4000, 2, 64, 16
BUDGET = 5_000_000


def training(width: int, seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each way to train a model of one width."""
    steps, _ = steps_of(PIECES, width, LAYERS, (SENTENCES, LENGTH), compiled=True)
    waits = first_calls(steps)
    best = in_turn(steps, seconds)
    # In narrow layers both compiled modes have one program, which the first one's call compiles.
    waits["compiled, bfloat16"] = max(each for name, each in waits.items() if "compiled" in name)
    waits = {name: waits[name] * ("compiled" in name) for name in steps}
    whole = {name: waits[name] + BUDGET / (SENTENCES * LENGTH) * best[name] for name in steps}
    for name, each in best.items():
        saved = (best["ours"] - each) / (SENTENCES * LENGTH)
        yield {
            "work": "train", "width": width, "system": {"ours": "exact"}.get(name, name),
            "ms": 1e3 * each, "ratio": best["peer"] / each, "compiling s": waits[name],
            "5M tokens s": whole[name], "5M ratio": whole["peer"] / whole[name],
            "pays": waits[name] / saved if waits[name] and saved > 0 else None,
        }  # fmt: skip


def translation(width: int, repeats: int) -> Iterator[dict[str, Any]]:
    """A row for each way to translate with a model of one width."""
    runs = searches(width=width, layers=LAYERS, vocabulary=PIECES, sentences=32, length=32)
    best = best_of(runs, 32, repeats)
    peer = next(each for name, each in best.items() if name.startswith("transformers"))
    for name, each in best.items():
        row = {"work": "translate", "width": width, "system": name}
        yield {**row, "ms": 1e3 * each, "ratio": peer / each}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, nargs="+", default=[24, 64, 256])
    parser.add_argument("--seconds", type=float, default=20, help="of steps, for each width")
    parser.add_argument("--repeats", type=int, default=5, help="of searches")
    parser.add_argument("--out", type=Path, help="such as data/benchmarks/peers.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as empty:  # of compiled programs
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = empty
        for width in options.width:
            rows += training(width, options.seconds)
            rows += translation(width, options.repeats)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="{:,.2f}".format, na_rep=""))
    if options.out:
        keep(
            options.out, table, transformers=transformers.__version__, layers=LAYERS,
            ctranslate2=ctranslate2.__version__, pieces=PIECES, sentences=SENTENCES, length=LENGTH,
        )  # fmt: skip


if __name__ == "__main__":
    main()
