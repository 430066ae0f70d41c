"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def _temporary(path: Path, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """A file beside `path` that `write` filled, on disk; removed if it is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            write(file)
        part.chmod(mode)  # a library may have replaced the file
        with part.open("rb") as file:
            os.fsync(file.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)


def write_with(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in its place in one step.

    The data are on disk before the name is, so that a reader, also after a power cut, finds the old
    file or the new one, never a part of it.
    """
    with _temporary(path, write) as part:
        part.replace(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    write_with(path, lambda file: file.write(content))


def write_new(path: Path, content: bytes) -> bool:
    """Write `content` to `path` unless there is such a file; return whether it was written.

    Of several processes that write at once, one succeeds. No reader finds a part of a file.
    """
    with _temporary(path, lambda file: file.write(content)) as part:
        try:
            os.link(part, path)  # fails when the name is taken; a rename would replace it
        except FileExistsError:
            return False
        except OSError:  # this file system has no hard links
            with locked(path):
                if path.exists():
                    return False
                part.rename(path)
    return True


def probe(folder: Path) -> None:
    """Write a file into a folder as `write_new` does, and remove it; `OSError` where that fails.

    A process that was killed here leaves an empty file. Such files of more than a minute ago are
    removed, too; younger ones may be of a process at work.
    """
    for left in (*folder.glob(".probe.????????"), *folder.glob("..probe.????????.????????")):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > 60:
                left.unlink()
    path = folder / f".probe.{secrets.token_hex(4)}"
    write_new(path, b"")
    path.unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, when all other processes have let go of it.

    The lock is a file beside `path`, which is removed at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.lock")
    lock = _lock(beside)
    try:
        yield
    finally:
        beside.unlink()
        os.close(lock)


def _lock(path: Path) -> int:
    """Open and lock a file; again, if another process has removed the file meanwhile."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with contextlib.suppress(FileNotFoundError):
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)
