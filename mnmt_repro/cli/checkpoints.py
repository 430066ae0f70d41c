"""Work with checkpoints of finished runs, and what `sweep` says where there are none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mnmt_repro.errors import InputError
from mnmt_repro.runs.spec import RunSpec

if TYPE_CHECKING:
    from mnmt_repro.cli.sweep import SweepOptions

SHOWN = 5  # runs named of a longer list


def _tell_absent(absent: Sequence[RunSpec], options: SweepOptions, then: str) -> None:
    """Name the runs without a checkpoint, and say how to come by one; nothing where none is absent.

    Parameters
    ----------
    options
        Of the command `sweep`.
    then
        What the checkpoints are for: ``"decode"``.
    """
    if not absent:
        return
    for spec in absent[:SHOWN]:
        print(f"  {spec.run_id}  {spec.label}", file=sys.stderr)
    if len(absent) > SHOWN:
        print(f"  and {len(absent) - SHOWN} more", file=sys.stderr)
    print(
        f"no checkpoint in {options.runs} of the run(s) above; the store keeps scores, not "
        "weights. Give --runs the folder that they were trained in, or train them again with "
        f"`mnmt-repro sweep {' '.join(options.names)} --runs {options.runs} --results FOLDER`, "
        f"FOLDER being an empty one, and then {then}",
        file=sys.stderr,
    )


def work_through(
    options: SweepOptions,
    specs: Sequence[RunSpec],
    stored: Mapping[str, Mapping[str, Any]],
    *,
    todo: Sequence[RunSpec],
    needs: Callable[[RunSpec], Iterable[RunSpec]],
    verb: str,
    what: Callable[[RunSpec], str],
    work: Callable[..., dict[str, Any]],
    store: Callable[[dict[str, Any]], object],
    seconds: float,
) -> int:
    """Do some work with the checkpoint of each finished run, and store what comes of it.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.
    todo
        Those of `specs` that are finished, and for which it is not done.
    needs
        The runs without whose checkpoints it cannot be done for a run.
    verb
        What is done: ``"decode"``.
    what
        What ``--dry-run`` says of a run, beside its label.
    work
        As `sweep.sweep` takes it, with a further argument `runs`: of each run what the store says
        that its checkpoint is held against.
    seconds
        That a run takes on one thread, on the average.

    Returns
    -------
    1 where it is not done for all of `specs` after that, else 0.

    Raises
    ------
    InputError
        When it can be done for none of `todo`.
    """
    from mnmt_repro.runs.finished import without_checkpoint
    from mnmt_repro.runs.sweep import Estimate, process_pool, sweep

    needed = {spec.run_id: spec for each in todo for spec in needs(each)}
    absent = without_checkpoint(list(needed.values()), options.runs)
    there = [spec for spec in todo if not without_checkpoint(list(needs(spec)), options.runs)]
    finished = sum(spec.run_id in stored for spec in specs)
    print(
        f"{len(specs)} runs: {finished} trained, {finished - len(todo)} {verb}d before, "
        f"{len(there)} to {verb}, {len(todo) - len(there)} without a checkpoint in {options.runs}"
    )
    _tell_absent(absent, options, verb)
    if options.dry_run:
        for spec in there:
            print(f"{spec.run_id}  {spec.label}{what(spec)}")
        return 0
    if todo and not there:
        raise InputError(f"--runs {options.runs}: no run to {verb} has its checkpoints here")
    keep = ("steps", "vocabulary_hash")
    about = {spec.run_id: {name: stored[spec.run_id][name] for name in keep} for spec in there}
    with process_pool(options.workers) as executor:
        failures = sweep(
            there,
            is_done=lambda spec: False,
            store=store,
            runs_folder=options.runs,
            executor=executor,
            device=options.device,
            estimate=Estimate.from_runs((spec, seconds) for spec in there),
            work=partial(work, runs=about),
        )
    return 1 if failures or absent or finished < len(specs) else 0
