"""Run what is missing of a grid: many runs at once, resumable, each stored when it ends."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mnmt_repro.errors import InputError
from mnmt_repro.experiments.spec import RunSpec

DEFAULT_SECONDS_PER_COST = 6.5e-11
"""Seconds a unit of `RunSpec.cost` takes on one thread of a 2023 server, where nothing is known."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds a run should take on one worker, by the speed of those finished, if any."""

    seconds_per_cost: float = DEFAULT_SECONDS_PER_COST

    @classmethod
    def from_runs(cls, finished: Iterable[tuple[RunSpec, float]]) -> Estimate:
        """From pairs of a run and the seconds it took."""
        pairs = list(finished)
        cost = sum(spec.cost for spec, _ in pairs)
        if not cost:
            return cls()
        return cls(seconds_per_cost=sum(seconds for _, seconds in pairs) / cost)

    def seconds(self, spec: RunSpec) -> float:
        return spec.cost * self.seconds_per_cost


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold a run's folder for this process; released when the process ends, however it ends.

    Raises
    ------
    InputError
        When another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{folder}: another process is at work on this run") from error
        yield


def _work(spec: RunSpec, folder: Path, device: str) -> dict[str, Any]:
    """One run, in a worker."""
    import torch

    from mnmt_repro.experiments.execute import execute

    torch.set_num_threads(1)
    with run_lock(folder):
        return execute(spec, folder, device=device, progress_bar=False)


class OwnProcesses(ThreadPoolExecutor):
    """An executor that gives every task a fresh process of its own.

    A process that is killed takes its own task with it and no other.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule ``fn(*args, **kwargs)``; all must be picklable."""
        return super().submit(_in_own_process, fn, args, kwargs)


def _in_own_process(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(fn, *args, **kwargs).result()


def process_pool(workers: int) -> Executor:
    """So many single-thread processes at a time on this machine."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    return OwnProcesses(workers)


def sweep(
    specs: Sequence[RunSpec],
    *,
    is_done: Callable[[RunSpec], bool],
    store: Callable[[dict[str, Any]], object],
    runs_folder: Path,
    executor: Executor,
    device: str = "cpu",
    estimate: Estimate | None = None,
    progress_bar: bool | None = None,
) -> list[str]:
    """Execute every run that is not done, in order; call `store` with each as it ends.

    A sweep that was killed goes on where it was: finished runs are skipped, and a run that was
    under way resumes from its checkpoint below `runs_folder`.

    Parameters
    ----------
    is_done, store
        The store of results, which this room does not know.
    executor
        Anything with the interface of `concurrent.futures.Executor`: `process_pool`, or one of
        Dask's or submitit's on a cluster.
    estimate
        Weighs the progress bar and its time left.

    Returns
    -------
    list of str
        One line for each run that failed; the others are not held up by it.
    """
    estimate = estimate or Estimate()
    todo = list({spec.run_id: spec for spec in specs if not is_done(spec)}.values())
    total = sum(estimate.seconds(spec) for spec in todo)
    failures: list[str] = []
    bar = tqdm(
        total=round(total),
        unit="s",
        desc=f"0/{len(todo)} runs",
        bar_format="{desc} |{bar}| {percentage:3.0f}% [{elapsed}<{remaining}]{postfix}",
        disable=None if progress_bar is None else not progress_bar,
    )
    with bar:
        futures: dict[Future[dict[str, Any]], RunSpec] = {
            executor.submit(_work, spec, runs_folder / spec.run_id, device): spec for spec in todo
        }
        for done, future in enumerate(as_completed(futures), start=1):
            spec = futures[future]
            try:
                store(future.result())
            except Exception as error:  # noqa: BLE001 - one bad run must not lose the others
                failures.append(f"{spec.label} ({spec.run_id}): {error}")
                print(failures[-1], file=sys.stderr)
            bar.set_description(f"{done}/{len(todo)} runs")
            bar.set_postfix_str(spec.label)
            bar.update(round(estimate.seconds(spec)))
    return failures
