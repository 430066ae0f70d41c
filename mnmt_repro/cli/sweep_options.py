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
        "folder of the results store (default: data/results, or beside the runs of your own grid)"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PoolOptions):
    """The options of `sweep`."""

    names: tuple[str, ...] = required(
        "cohorts, in this order, or the file of a grid of your own",
        flags=("names",),
        nargs="*",
        metavar="COHORT|GRID.yml",
    )
    tier: Literal["mini", "steady", "settled"] = setting("sizes, budgets and text", "mini")
    dry_run: bool = setting("list runs with their size n, and estimated times and memory", False)
    executor: Literal["local", "submitit", "dask"] = setting(
        "this machine, Slurm (submitit), or the Dask scheduler at $DASK_SCHEDULER_ADDRESS", "local"
    )
    recompute: bool = setting("see `train --recompute`", False)
    decode: bool = setting(
        "translate the test sets with finished runs, and store BLEU, chrF, chrF++ and spBLEU", False
    )
    analyse: bool = setting("store how training on changed the weights of Paper B's runs", False)
    sentences: Count | None = setting(
        "with --decode: most sentences of a test set (default: 500; software25 is stored with 100)"
    )
    bleurt: Path | None = setting(
        "with --decode: score with BLEURT by the weights in this folder", metavar="FOLDER"
    )
