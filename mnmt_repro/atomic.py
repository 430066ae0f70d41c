"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def _temporary(path: Path, write: Callable[[BinaryIO], object]) -> Iterator[str]:
    """Name of a file beside `path` that `write` filled, on disk; removed if it is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def write_with(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in its place in one step.

    The data are on disk before the name is, so that a reader, also after a power cut, finds the old
    file or the new one, never a part of it.
    """
    with _temporary(path, write) as name:
        os.replace(name, path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    write_with(path, lambda file: file.write(content))


def write_new(path: Path, content: bytes) -> bool:
    """Write `content` to `path` unless there is such a file; return whether it was written.

    Of several processes that write at once, one succeeds. No reader finds a part of a file.
    """
    with _temporary(path, lambda file: file.write(content)) as name:
        try:
            os.link(name, path)  # fails when the name is taken; a rename would replace it
        except FileExistsError:
            return False
    return True
