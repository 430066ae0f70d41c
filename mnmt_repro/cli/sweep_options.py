"""The options of `sweep`, and those that it shares with `retrain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mnmt_repro.typed_config import Count, Few, required, setting


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """What `sweep` and `retrain` share: where runs are trained, and what with."""

    workers: Few = setting("processes, one thread each", 2)
    runs: Path = setting("folder of checkpoints", Path("runs"))
    results: Path | None = setting(
        "folder of the results store (default: data/results; of a grid of your own `results` "
        "beside its runs)"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PoolOptions):
    """The options of `sweep`."""

    names: tuple[str, ...] = required(
        "cohorts, in this order, or the file of a grid of your own, in YAML: its text (data, "
        "corpus or conlang), sizes, weights, seeds, training",
        flags=("names",),
        nargs="*",
        metavar="COHORT|GRID.yml",
    )
    tier: Literal["mini", "steady", "settled"] = setting("sizes, budgets and text", "mini")
    dry_run: bool = setting("list runs with their size n, and estimated times and memory", False)
    executor: Literal["local", "submitit", "dask"] = setting(
        "where workers are: processes of this machine, jobs of Slurm (submitit), or those of the "
        "Dask scheduler at $DASK_SCHEDULER_ADDRESS. All must see the same folders",
        "local",
    )
    recompute: bool = setting(
        "see `train --recompute`. A sweep splits no model over GPUs: that is `train --shard`", False
    )
    decode: bool = setting(
        "translate the test sets with the checkpoints of all finished runs, and store BLEU, chrF, "
        "chrF++ and spBLEU",
        False,
    )
    analyse: bool = setting(
        "store how further training changed the weights of all finished runs of Paper B, and their "
        "losses on single sentences",
        False,
    )
    sentences: Count | None = setting(
        "with --decode: most sentences of each test set (default: 100 of software25, else 500)",
    )
    bleurt: Path | None = setting(
        "with --decode: score with BLEURT in place of the others, by the weights in FOLDER",
        metavar="FOLDER",
    )
