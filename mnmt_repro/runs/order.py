"""Which runs must come before which, and whether they have. No torch is needed here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.config import LAST


def progress_of(spec: RunSpec, runs_folder: Path) -> dict[str, Any] | None:
    """What the last checkpoint of a run says: `step`, `target_tokens`, `seconds`; None without one.

    Only the header of the checkpoint is read: eight bytes that say how long it is, and JSON.
    """
    try:
        with (runs_folder / spec.run_id / LAST).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            metadata = json.loads(file.read(length))["__metadata__"]
            progress: dict[str, Any] = json.loads(metadata["progress"])
            identity = metadata["identity"]
    except (OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError):
        return None
    return progress if identity == spec.identity else None


def is_trained(spec: RunSpec, runs_folder: Path) -> bool:
    """Whether the last weights of a finished run lie below `runs_folder`."""
    at = progress_of(spec, runs_folder)
    return at is not None and spec.training.is_spent(
        at["step"], at["target_tokens"], at.get("curve", ())
    )


def with_parents(specs: Iterable[RunSpec]) -> Iterator[RunSpec]:
    """Every run and the runs it upgrades, each after its parent; some may come twice."""
    for spec in specs:
        if spec.upgrade is not None:
            yield from with_parents([spec.upgrade.parent])
        yield spec


def shorter_runs(spec: RunSpec, among: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """Those that `spec` can start from: the same run up to their decay; longest first.

    There are none where a share of the budget decides more than the decay: which points are
    validated, of which the best weights are kept or after which a run ends, or when the first
    weights end.
    """
    training = spec.training
    later = training.first_weights, training.stop_after
    if training.keep == "best" or any(each is not None for each in later):
        return ()
    own = spec.training.trunk_tokens
    shorter = {
        run.run_id: run
        for run in among
        if run.trajectory == spec.trajectory and run.training.trunk_tokens < own
    }
    return tuple(sorted(shorter.values(), key=lambda run: -run.training.trunk_tokens))


@dataclass(frozen=True, kw_only=True)
class Task:
    """A run that is to be executed, and the tasks that it waits for.

    Attributes
    ----------
    needs
        Ids of runs without whose weights it cannot begin.
    after
        Ids of shorter runs of the same trajectory, which it goes on from if they succeed.
    only_weights
        The run is stored already; it is trained again because a child needs its weights.
    """

    spec: RunSpec
    needs: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    only_weights: bool = False


def plan(missing: Iterable[RunSpec], stored: frozenset[str], runs_folder: Path) -> list[Task]:
    """What to execute for the `missing` runs, every parent before its children.

    Runs to upgrade are added where their weights are not below `runs_folder`; of several runs that
    differ in nothing but their budget, those whose decay begins later wait for the others.

    Parameters
    ----------
    stored
        Ids of the runs that are in the store.
    """
    order: dict[str, RunSpec] = {}
    needs: dict[str, frozenset[str]] = {}

    def add(spec: RunSpec) -> None:
        if spec.run_id in order:
            return
        if spec.upgrade is not None and not is_trained(spec.upgrade.parent, runs_folder):
            add(spec.upgrade.parent)
            needs[spec.run_id] = frozenset({spec.upgrade.parent.run_id})
        order[spec.run_id] = spec

    for spec in missing:
        add(spec)
    alike: dict[str, list[RunSpec]] = {}
    for spec in order.values():
        alike.setdefault(spec.trajectory, []).append(spec)
    return [
        Task(
            spec=spec,
            needs=needs.get(run_id, frozenset()),
            after=frozenset(run.run_id for run in shorter_runs(spec, alike[spec.trajectory])),
            only_weights=run_id in stored,
        )
        for run_id, spec in order.items()
    ]
