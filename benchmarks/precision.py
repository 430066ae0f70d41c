"""Losses of models that are trained in float32 and in bfloat16, both compiled, on real text.

Each pair of runs differs in precision alone: seed, text and batches are the same. Every rounding
leads to other weights, so one run tells little. The mean difference over seeds counts, with its
95 % interval (Student's t). `train` takes bfloat16 by default only while this interval holds zero,
or lies within the deviation of one seed.
Needs the corpus webtech.

    OMP_NUM_THREADS=1 python benchmarks/precision.py [--out data/benchmarks/precision.json]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from stored import keep

from mnmt_repro import results
from mnmt_repro.cli import main as command

WIDTHS, SEEDS = (24, 64), (1, 2, 3, 4)
PRECISIONS = ("float32", "bfloat16")
TOKENS = 2_000_000
RUN = (
    *("--corpus", "webtech", "--pairs", "eng-deu,eng-fra", "--weights", "0.5,0.5"),
    *("--layers", "2", "--compile", "--decay-share", "0.3", "--learning-rate", "0.1"),
    *("--target-tokens", str(TOKENS)),
)


def trained(width: int, seed: int, precision: str) -> dict[str, float]:
    """Test losses by pair of a run."""
    with tempfile.TemporaryDirectory() as folder:
        given = ("--d-model", width, "--seed", seed, "--precision", precision, "--out", folder)
        store = Path(folder, "results")
        options = [*RUN, *map(str, given), "--results", str(store)]
        if code := command(["train", *options]):
            raise SystemExit(code)
        rows = results.load(root=store, test_set="indomain", domain="all")
    return dict(zip(rows["pair"], rows["cross_entropy"], strict=True))


def differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each width: per cent of loss by which bfloat16 is higher, and the deviation of a seed."""
    losses = rows.groupby(["width", "seed", "precision"])["loss"].mean().unstack()
    higher = 100 * np.log(losses["bfloat16"] / losses["float32"])
    records = []
    for width, each in higher.groupby(level="width"):
        half = stats.t.ppf(0.975, len(each) - 1) * stats.sem(each)
        seeds = 100 * np.log(losses.loc[width]).std().mean()
        ends = {"higher": each.mean(), "low": each.mean() - half, "high": each.mean() + half}
        records.append({"width": width, **ends, "deviation of a seed": seeds})
    return pd.DataFrame(records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = pd.DataFrame(
        [
            {"width": width, "seed": seed, "precision": precision, "pair": pair, "loss": loss}
            for seed, width, precision in itertools.product(SEEDS, WIDTHS, PRECISIONS)
            for pair, loss in trained(width, seed, precision).items()
        ]
    )
    found = differences(rows)
    print(found.to_string(index=False))
    if options.out:
        keep(options.out, rows, target_tokens=TOKENS, found=found.to_dict(orient="records"))


if __name__ == "__main__":
    main()
