"""`retrain`: train stored runs again, and hold what comes of it against what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.options import check_device
from mnmt_repro.cli.stopping import status, workers_asked_to_stop
from mnmt_repro.cli.sweep import PoolOptions
from mnmt_repro.declared import cohorts_module
from mnmt_repro.errors import InputError
from mnmt_repro.results.repeats import BEGINNING, END
from mnmt_repro.typed_config import required, setting

if TYPE_CHECKING:
    from mnmt_repro.results.repeats import Comparison
    from mnmt_repro.runs.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class RetrainOptions(PoolOptions):
    """The options of `retrain`."""

    runs_named: tuple[str, ...] = required(
        "ids of stored runs", flags=("runs_named",), nargs="*", metavar="RUN"
    )
    runs: Path = setting(
        "folder of checkpoints; a run that is finished there is scored only", Path("runs/again")
    )
    keep: bool = setting(
        "also store what was reached, in CORPUS/repeats of the results store", False
    )


EXAMPLES = (
    "mnmt-repro retrain",
    "mnmt-repro retrain 1076f5ed6d0a 3149d387fba9",
    "mnmt-repro retrain $(mnmt-repro retrain | head -n 100 | shuf -n 2 | cut -d' ' -f1)",
    "mnmt-repro retrain e385d87f89f9 --keep",
)
MORE = (
    "Runs from which it started, by upgrade or with a smaller budget, "
    "are trained again first.\n\nExit status 0: each run has the same text, vocabulary and "
    f"batches. Its first validation losses are within {100 * BEGINNING:g} percent of the "
    f"stored ones, and its mean test loss within {100 * END:g} percent. On the same kind of "
    "processor a run can be equal to the last bit. Other processors round differently, so a "
    "run drifts as if it had another seed."
)


def act(options: RetrainOptions) -> int:
    """List runs, or train them again; 1 where one is not what is stored."""
    from mnmt_repro import results
    from mnmt_repro.results.schema import TIERS
    from mnmt_repro.runs.sweep import keep_repeat, process_pool, sweep

    catalogue = cohorts_module("catalogue")
    stored, points = {}, {}
    for content in results.load_runs(options.results):
        run_id = content["run"]["run_id"]
        stored[run_id] = content["run"]
        points[run_id] = {point["step"] for point in content["curve"]}
    known = {spec.run_id: spec for spec in catalogue.runs_of(*TIERS) if spec.run_id in stored}
    named = options.runs_named
    if not named:
        for run_id, took in _seconds(known, stored).items():
            print(f"{run_id}  {took / 60:5.1f} min  {known[run_id].label}")
        return 0
    if unknown := [name for name in named if name not in stored]:
        raise InputError(
            f"no stored run is called {unknown[0]}; the line under a figure of the book names its "
            "runs, and `mnmt-repro retrain` the quickest"
        )
    if gone := [name for name in named if name not in known]:
        raise InputError(
            f"run {gone[0]} is stored, but this version declares no such run: it is of code "
            f"version {stored[gone[0]]['code_version']}, commit {stored[gone[0]]['commit'][:10]}; "
            "`sweep GRID` with new folders trains a run of your own grid again"
        )
    check_device(options.device)
    specs = [spec for name in named for spec in _whole(known[name], known, points)]
    compared: list[Comparison] = []
    with workers_asked_to_stop(options.runs) as stop, process_pool(options.workers) as executor:
        failures = sweep(
            specs,
            is_done=lambda spec: False,
            store=lambda done: compared.append(
                keep_repeat(done, root=options.results, store=options.keep)
            ),
            among=list(known.values()),
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            at_once=options.workers,
            stop=stop,
        )
        other = not all(comparison.reproduced for comparison in compared)
        return status(stop, bool(failures) or other, options.runs)


def _whole(
    spec: RunSpec, known: Mapping[str, RunSpec], points: Mapping[str, Set[int]]
) -> Iterator[RunSpec]:
    """A run after the stored shorter ones that it went on from, whose points its curve has."""
    from mnmt_repro.runs.order import shorter_runs

    for shorter in reversed(shorter_runs(spec, known.values())):
        if points[shorter.run_id] <= points[spec.run_id]:
            yield shorter
    yield spec


def _seconds(
    known: Mapping[str, RunSpec], stored: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """What runs took that can be trained here, with those they upgrade; the quickest first.

    A run of a GPU is none of them, nor one whose text is not on this machine.
    """
    from mnmt_repro.corpora.registry import data_root
    from mnmt_repro.runs.order import with_parents

    real = data_root() is not None
    known = {
        run_id: spec
        for run_id, spec in known.items()
        if "thread" in stored[run_id]["hardware"] and (real or spec.conlang is not None)
    }
    seconds = {
        run_id: sum(
            stored[each.run_id]["wall_seconds"]
            for each in with_parents([spec])
            if each.run_id in stored
        )
        for run_id, spec in known.items()
    }
    return dict(sorted(seconds.items(), key=lambda item: item[1]))
