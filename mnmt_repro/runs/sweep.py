"""Run what is missing of a grid: many runs at once, resumable, each stored when it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tqdm import tqdm

from mnmt_repro.errors import InputError, missing_extra, printable
from mnmt_repro.runs.lock import run_lock
from mnmt_repro.runs.order import Task, plan, progress_of, shorter_runs, with_parents
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.training_text import TextSource

if TYPE_CHECKING:
    from mnmt_repro.results.repeats import Comparison

LOOK = 5.0
"""Seconds between looks at how far the runs under way are, which their checkpoints say."""

MOST_MINUTES = 24 * 60
"""Of a Slurm job; a run that takes longer goes on with the next sweep."""

Job = Callable[[], dict[str, Any]]

DEFAULT_SECONDS_PER_COST = 7e-11
"""Seconds a unit of `RunSpec.cost` takes on one thread of a 2023 server, where nothing is known:
the median of the stored runs."""


def stored_runs(specs: Iterable[RunSpec], root: Path) -> dict[str, dict[str, Any]]:
    """What a store says of those of `specs` that it holds, by run id."""
    from mnmt_repro.results import read_run, run_file

    paths = {spec.run_id: run_file(spec.corpus, spec.run_id, root) for spec in specs}
    return {run_id: read_run(path)["run"] for run_id, path in paths.items() if path.exists()}


def seconds_per_cost_of(specs: Iterable[RunSpec], stored: Mapping[str, Mapping[str, Any]]) -> float:
    """Seconds a unit of `RunSpec.cost` takes, by those of `specs` that are `stored`."""
    finished = [spec for spec in specs if spec.run_id in stored]
    cost = sum(spec.cost for spec in finished)
    seconds = sum(stored[spec.run_id]["wall_seconds"] for spec in finished)
    return seconds / cost if cost else DEFAULT_SECONDS_PER_COST


def seconds_left(tasks: Sequence[Task], seconds_per_cost: float) -> dict[str, float]:
    """Seconds that each task should take on one worker, by run id.

    They are less by what the longest of the shorter runs that it goes on from did before its decay.
    """
    whole = {task.spec.run_id: task.spec.cost * seconds_per_cost for task in tasks}
    trunk = {
        task.spec.run_id: whole[task.spec.run_id] * (1 - task.spec.training.decay_share)
        for task in tasks
    }
    return {
        task.spec.run_id: whole[task.spec.run_id]
        - max((trunk[shorter] for shorter in task.after), default=0.0)
        for task in tasks
    }


def duration(seconds: float) -> str:
    """Write a duration in its natural unit.

    >>> duration(0.4), duration(40), duration(600), duration(9000)
    ('0.4 s', '40 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.2g} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def in_bytes(memory: float) -> str:
    """Write an amount of memory in its natural unit.

    >>> in_bytes(3 * 2**19), in_bytes(5 * 2**30)
    ('1.5 MiB', '5 GiB')
    """
    unit, name = (2**30, "GiB") if memory >= 2**30 else (2**20, "MiB")
    return f"{memory / unit:.3g} {name}"


def _in_worker(job: Job, folder: Path) -> dict[str, Any]:
    """Do a job on one thread, while no other process works in the run's folder."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with run_lock(folder):
            return job()
    finally:
        torch.set_num_threads(threads)


def _execute(spec: RunSpec, folder: Path, **how: Any) -> dict[str, Any]:
    """`runs.execute.execute`, whose torch only workers need."""
    from mnmt_repro.runs.execute import execute

    return execute(spec, folder, **how)


class HandedOver(ThreadPoolExecutor):
    """An executor whose threads each hand a task over to a worker, and wait for it.

    Where a worker is killed, Dask gives its run to another; a job of submitit and a process of this
    machine fail, and the next sweep goes on from the run's checkpoint.
    """

    def __init__(self, workers: int, hand_over: Callable[..., Any]) -> None:
        super().__init__(workers)
        self.hand_over = hand_over  # as `submit`; what it returns has `result` and `cancel`
        self.tasks: list[Any] = []
        self.waiting: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule ``fn(*args, **kwargs)``; all must be picklable."""

        def wait_for_it() -> Any:
            self.tasks.append(self.hand_over(fn, *args, **kwargs))
            return self.tasks[-1].result()

        self.waiting.append(super().submit(wait_for_it))
        return self.waiting[-1]

    def __exit__(self, *error: Any) -> bool | None:
        """Wait for all tasks; after an interruption, end them: one may never begin.

        A thread may be handing a task over just then, so they are ended until none is left.
        """
        if error[0] is not None:
            self.shutdown(wait=False, cancel_futures=True)
            self.cancel()
            while wait(self.waiting, 1.0).not_done:
                self.cancel()
        return super().__exit__(*error)

    def cancel(self) -> None:
        """End the tasks that were handed over."""
        for task in self.tasks:
            task.cancel()


class _OwnProcesses(HandedOver):
    """Tasks are handed over to processes of this machine."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, _to_own_process)
        self.others = {*multiprocessing.active_children()}  # those of a notebook

    def cancel(self) -> None:
        for process in {*multiprocessing.active_children()} - self.others:
            process.kill()


def _to_own_process(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function in a fresh process, so that one that is killed takes no other task along."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent) as pool:
        return pool.submit(_without_sigterm, fn, *args, **kwargs)


def _without_sigterm(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that SIGTERM to all processes does not end: the parent asks it to stop."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        return fn(*args, **kwargs)
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_with_parent() -> None:
    """End this process when its parent has gone, which no longer stores what it trains.

    Ctrl-C reaches all processes of a terminal, and the parent answers for all.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class InThisProcess(Executor):
    """An executor that does each task when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call ``fn(*args, **kwargs)``; an interruption is not kept for later."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)
        return future


def process_pool(workers: int) -> HandedOver:
    """So many single-thread processes at a time on this machine; an interruption ends them."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    return _OwnProcesses(workers)


ExecutorName = Literal["local", "submitit", "dask"]


@contextlib.contextmanager
def executor_of(name: ExecutorName, workers: int, folder: Path) -> Iterator[Executor]:
    """So many single-thread workers: of this machine, of Slurm by submitit, or of Dask.

    A single worker of this machine is this process.

    Without Slurm, submitit starts processes of this machine. Dask's scheduler is the one that
    ``DASK_SCHEDULER_ADDRESS`` names, or a new one of this machine. All must see the same folders.

    Parameters
    ----------
    folder
        Of submitit's logs.

    Raises
    ------
    InputError
        When the package is not installed.
    """
    try:
        if name == "submitit":
            import submitit

            jobs = submitit.AutoExecutor(folder / "submitit")
            jobs.update_parameters(timeout_min=MOST_MINUTES, cpus_per_task=1)
            with HandedOver(workers, jobs.submit) as executor:
                yield executor
        elif name == "dask":
            from dask import config
            from distributed import Client

            address = config.get("scheduler-address", None)
            local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            with (
                Client(address, **({} if address else local)) as client,
                HandedOver(workers, partial(client.submit, pure=False)) as executor,
            ):
                yield executor
        elif workers == 1:
            yield InThisProcess()
        else:
            with process_pool(workers) as executor:
                yield executor
    except ModuleNotFoundError as error:
        raise missing_extra(error, name) from error


def sweep(
    specs: Sequence[RunSpec],
    *,
    is_done: Callable[[RunSpec], bool],
    store: Callable[[dict[str, Any]], object],
    repeated: Callable[[dict[str, Any]], object] = lambda content: None,
    among: Sequence[RunSpec] | None = None,
    source: TextSource | None = None,
    runs_folder: Path,
    executor: Executor,
    device: str = "cpu",
    recompute: bool = False,
    at_once: int | None = None,
    seconds_per_cost: float = DEFAULT_SECONDS_PER_COST,
    progress_bar: bool | None = None,
    stop: Callable[[], bool] | None = None,
    work: Callable[[RunSpec], Job] | None = None,
) -> list[str]:
    """Execute every run that is not done, in order; call `store` with each as it ends.

    A sweep that was killed goes on where it was: finished runs are skipped, and a run that was
    under way resumes from its checkpoint below `runs_folder`. A run waits for the one whose model
    it upgrades, which is added where its weights are not there, and for shorter ones of the same
    trajectory.

    A run that another process is at work on has failed here, and the next sweep finds it done.

    Parameters
    ----------
    is_done, store
        The store of results, which this room does not know.
    repeated
        Called with a run that is done and was trained again because another needs its weights;
        where it raises, the run has failed.
    among
        Runs of which one may go on from a shorter one that lies below `runs_folder`; None: `specs`.
    source
        Where the text of a user's runs comes from.
    executor
        Anything with the interface of `concurrent.futures.Executor`; see `executor_of`.
    recompute
        See `training.loop.train`.
    at_once
        Runs that are given to the executor at one time, the first of those that wait for nothing;
        None: all of them. As many as there are workers keeps the declared order best.
    seconds_per_cost
        Weighs the progress bar and its time left.
    progress_bar
        Of the sweep; above it a line at each tenth of a run, and when it ends. None: the bar is for
        a terminal, and elsewhere there are the lines alone. False: neither.
    stop
        Picklable. Once it says so, no further run begins, and each worker saves its run after the
        step that it is at, as `training.loop.train` does.
    work
        From a run to what is done for it in place of training, picklable; then no run waits for
        another.

    Returns
    -------
    list of str
        One line for each run that failed, or whose parent did; the others are not held up by it.
    """
    missing = list({spec.run_id: spec for spec in specs if not is_done(spec)}.values())
    tasks = [Task(spec=spec) for spec in missing]
    if work is None:
        stored = frozenset(spec.run_id for spec in with_parents(missing) if is_done(spec))
        tasks = plan(missing, stored, runs_folder)
    known = specs if among is None else among

    def job(spec: RunSpec, folder: Path) -> Job:
        if work is not None:
            return work(spec)
        shorter = shorter_runs(spec, known)
        how = {"source": source, "device": device, "recompute": recompute, "stop": stop}
        how["progress_bar"] = progress_bar if isinstance(executor, InThisProcess) else False
        return partial(_execute, spec, folder, among=shorter, **how)

    seconds = seconds_left(tasks, seconds_per_cost)
    waiting = {task.spec.run_id: task for task in tasks}
    running: dict[Future[dict[str, Any]], Task] = {}
    failures: dict[str, str] = {}
    begun = time.monotonic()
    bar = tqdm(
        total=round(sum(seconds.values())),
        unit="s",
        desc=f"0/{len(tasks)} runs",
        bar_format="{desc} |{bar}| {percentage:3.0f}% [{elapsed}<{remaining}]",
        disable=None if progress_bar is None else not progress_bar,
    )
    tenths: dict[str, int] = {}

    def say(line: str) -> None:
        if progress_bar is not False:
            bar.write(printable(line), file=sys.stderr)

    def look(spec: RunSpec) -> None:
        """Say at each tenth of a run how fast it is, and how long the rest takes."""
        at = progress_of(spec, runs_folder)
        if not (at and at["step"] and at["seconds"]):
            return
        share = spec.training.share_spent(at["step"], at["target_tokens"])
        if tenths.get(spec.run_id, -1) < int(10 * share) < 10:
            tenths[spec.run_id] = int(10 * share)
            pace = at["target_tokens"] / at["seconds"]
            left = tqdm.format_interval(round(at["seconds"] * max(1 / share - 1, 0)))
            say(f"{spec.label}: {share:.0%} of its updates, {pace:,.0f} tokens/s, {left} left")

    def ended(task: Task, failure: str | None = None) -> None:
        spec = task.spec
        if failure is not None:
            failures[spec.run_id] = f"{spec.label} ({spec.run_id}): {failure}"
            print(printable(failures[spec.run_id]), file=sys.stderr)
        left = [*waiting, *(task.spec.run_id for task in running.values())]
        count = f"{len(tasks) - len(left)}/{len(tasks)} runs"
        bar.set_description(count)
        bar.update(round(seconds[spec.run_id]))
        if failure is None:
            ahead = sum(seconds[run_id] for run_id in left)
            pace = (time.monotonic() - begun) / max(sum(seconds.values()) - ahead, 1.0)
            rest = tqdm.format_interval(pace * ahead)
            say(f"{count}, about {rest} left; done: {spec.label}")

    with bar:
        while waiting or running:
            under_way = waiting.keys() | {task.spec.run_id for task in running.values()}
            for run_id, task in list(waiting.items()):
                if stop is not None and stop():
                    waiting.clear()
                if not waiting or (at_once is not None and len(running) >= at_once):
                    break
                if lost := next(iter(task.needs & failures.keys()), None):
                    del waiting[run_id]
                    under_way.discard(run_id)
                    ended(task, f"the run to upgrade ({lost}) failed")
                elif not (task.needs | task.after) & under_way:
                    del waiting[run_id]
                    folder = runs_folder / run_id
                    running[executor.submit(_in_worker, job(task.spec, folder), folder)] = task
            for future in wait(running, LOOK, FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    content = future.result()
                    if not content:  # it was asked to stop
                        continue
                    (repeated if task.only_weights else store)(content)
                except Exception as error:  # noqa: BLE001 - one bad run must not lose the others
                    ended(task, str(error) or type(error).__name__)  # such as MemoryError
                else:
                    ended(task)
            if work is None and progress_bar is not False:
                for task in running.values():
                    look(task.spec)
    return list(failures.values())


def keep_repeat(
    content: dict[str, Any],
    *,
    root: Path | None = None,
    store: bool = True,
    required: bool = False,
) -> Comparison:
    """Compare a run that was trained again with the stored one, say so, and store the repeat.

    Parameters
    ----------
    content
        As `runs.execute.execute` returns it. What is another run is not stored.
    required
        Raise `InputError` where the stored run was not reproduced.
    """
    from mnmt_repro import results
    from mnmt_repro.results.repeats import compare

    run = content["run"]
    stored = results.read_run(results.run_file(run["corpus"], run["run_id"], root))
    comparison = compare(stored, content)
    print(f"trained again: {comparison}", file=sys.stderr, flush=True)
    if store and not comparison.other:
        results.write_repeat(content, root=root)
    if required and not comparison.reproduced:
        raise InputError(f"trained again, it is not the run that is stored: {comparison}")
    return comparison


def train_missing(specs: Sequence[RunSpec], root: Path, **how: Any) -> list[str]:
    """`sweep` the runs that a store of results lacks into it.

    A stored run that is trained again for its weights is held against what is stored, and nothing
    goes on from it where it is not that run.

    Parameters
    ----------
    root
        Folder of the store.
    **how
        The other parameters of `sweep`.
    """
    from mnmt_repro.results import run_file, write_run

    return sweep(
        specs,
        is_done=lambda spec: run_file(spec.corpus, spec.run_id, root).exists(),
        store=lambda done: write_run(**done, root=root),
        repeated=partial(keep_repeat, root=root, required=True),
        seconds_per_cost=seconds_per_cost_of(specs, stored_runs(specs, root)),
        **how,
    )
