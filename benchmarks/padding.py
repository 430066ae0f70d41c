"""Padding of real training batches: the share of positions that hold no token.

For one run of each corpus, as declared, the batches of the first windows are built as training
builds them. A wasted position is one that the model computes and the loss does not need, of the
source and of the target. Zero is perfect packing. Corpora that are not on this machine are left
out.

    python benchmarks/padding.py [--out data/benchmarks/padding.json]
"""

from __future__ import annotations

import argparse
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
from stored import keep

from mnmt_repro.cohorts.catalogue import runs_of
from mnmt_repro.corpora.batches import BatchStream
from mnmt_repro.errors import InputError
from mnmt_repro.runs.data import load_run_data
from mnmt_repro.runs.spec import RunSpec

WINDOWS = 2


def waste(spec: RunSpec) -> dict[str, float]:
    """Shares of padding in the batches of a run, and how many shapes they have."""
    data = load_run_data(spec)
    stream = BatchStream(
        data.training.sentences, spec.mixture, batch_tokens=spec.training.batch_tokens,
        seed=spec.seed,
    )  # fmt: skip
    drawn = takewhile(lambda found: found[0].window < WINDOWS, stream.batches())
    batches = [batch for _, batch in drawn]
    sides = {
        "source": [batch.source for batch in batches],
        "target": [batch.target[:, 1:] for batch in batches],
    }
    found = {
        name: 1 - sum(map(np.count_nonzero, side)) / sum(each.size for each in side)
        for name, side in sides.items()
    }
    every = [each for side in sides.values() for each in side]
    found["both"] = 1 - sum(map(np.count_nonzero, every)) / sum(each.size for each in every)
    shapes = {(batch.source.shape[1], batch.target.shape[1]) for batch in batches}
    return found | {"batches": len(batches), "shapes": len(shapes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", nargs="+", help="only these")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    first = {(spec.tier, spec.corpus): spec for spec in reversed(runs_of("mini", "steady"))}
    for (tier, corpus), spec in sorted(first.items()):
        if options.corpus and corpus not in options.corpus:
            continue
        try:
            rows.append({"corpus": corpus, "tier": tier, **waste(spec)})
        except InputError as error:
            print(f"{corpus}: left out: {error}")
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.1%}"))
    if options.out:
        keep(options.out, table)


if __name__ == "__main__":
    main()
