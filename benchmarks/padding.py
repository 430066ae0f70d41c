"""Padding of real training batches: the share of positions that hold no token.

For one run of each corpus, as declared, the batches of the first windows are built as training
builds them. A wasted position is one that the model computes and the loss does not need, of the
source and of the target. Zero is perfect packing. Corpora that are not on this machine are left
out.

    python benchmarks/padding.py [--out data/benchmarks/padding.json]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
from stored import keep

from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.catalogue import runs_of
from mnmt_repro.runs.data import load_run_data
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.loop import batch_stream

WINDOWS = 2


def waste(spec: RunSpec) -> dict[str, float]:
    """Shares of padding in the batches of a run.

    The plain step pads lengths to multiples of 8, the compiled one to the longest sentence.
    """
    data, found = load_run_data(spec).training, {}
    for name, compiled in {"plain": False, "compiled": True}.items():
        config = replace(spec.training, compile=compiled)
        stream = batch_stream(data, spec.mixture, config, spec.seed)
        drawn = takewhile(lambda each: each[0].window < WINDOWS, stream.batches())
        sides = [side for _, batch in drawn for side in (batch.source, batch.target[:, 1:])]
        found[name] = 1 - sum(map(np.count_nonzero, sides)) / sum(side.size for side in sides)
    return found


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
