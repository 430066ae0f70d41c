"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
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
    return True
