"""The lock of a run's folder: one process at a time works on a run."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from mnmt_repro.errors import InputError


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold a run's folder for this process; released when the process ends, however it ends.

    Raises
    ------
    InputError
        When another process holds it, the file system has no locks, or the lock is a link, which
        could name any file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}); remove it, or choose another folder"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise InputError(f"{folder}: another process is at work on this run") from error
        except OSError as error:
            why = f"cannot be locked ({error.strerror}); choose a folder on another file system"
            raise InputError(f"{path}: {why}") from error
        for part in folder.glob(".*.safetensors.????????"):  # that a killed process was writing
            part.unlink(missing_ok=True)
        yield
    finally:
        os.close(lock)
