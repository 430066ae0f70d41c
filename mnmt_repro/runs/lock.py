"""The lock of a run's folder: one process at a time works on a run."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from mnmt_repro.errors import InputError


class RunHeld(InputError):
    """Another process is at work on a run."""


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold a run's folder for this process; released when the process ends, however it ends.

    Raises
    ------
    RunHeld
        When another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunHeld(f"{folder}: another process is at work on this run") from error
        yield


def is_held(folder: Path) -> bool:
    """Whether a process, this one or another, holds a run's folder now."""
    if not (folder / "lock").exists():
        return False
    try:
        with run_lock(folder):
            return False
    except RunHeld:
        return True
