"""What takes long to compute, kept in the user's cache under a hash of all that decides it.

>>> with kept_values("doctest") as recall:                               # doctest: +SKIP
...     value = recall(text_digest("seed 1", code_digest()), lambda: simulate(seed=1))
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mnmt_repro.atomic import write_bytes
from mnmt_repro.repository import cache_root

T = TypeVar("T")
PACKAGE = Path(__file__).parent


class Recall(Protocol):
    """Returns what is kept under a key, else computes it."""

    def __call__(self, key: str, compute: Callable[[], T], /) -> T: ...  # noqa: D102


def text_digest(*parts: str | bytes) -> str:
    """SHA-256 of texts in their order.

    >>> text_digest("ab", "c") == text_digest("a", "bc")
    False
    """
    return _digest(parts)


def _digest(parts: Iterable[str | bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        found.update(b"%d:" % len(content))
        found.update(content)
    return found.hexdigest()


def files_digest(folder: Path, paths: Iterable[Path]) -> str:
    """Hash of the names below `folder`, and the contents, of files.

    The contents are read: a file of the same size may change within a tick of the file system's
    clock, and copies may keep the time of another file.
    """
    named = (
        part
        for path in sorted(paths)
        if path.is_file()
        for part in (path.relative_to(folder).as_posix(), path.read_bytes())
    )
    return _digest(named)  # one file at a time


def code_digest(*, without: Iterable[str] = ()) -> str:
    """Hash of the package less some of its rooms, of the installed libraries and of Python.

    Setuptools puts its own copies of libraries on the path when something imports it. They are no
    installed ones.
    """
    left_out = {"__pycache__", *without}
    files = (p for p in PACKAGE.rglob("*") if not left_out & {*p.relative_to(PACKAGE).parts})
    folders = (p for p in sys.path if os.path.isdir(p) and Path(p).name != "_vendor")
    libraries = {name for each in folders for name in os.listdir(each) if name.endswith("-info")}
    machine = (sys.version, platform.machine())
    return text_digest(*machine, *sorted(libraries), files_digest(PACKAGE, files))


@contextlib.contextmanager
def kept_values(name: str, *, fresh: bool = False, most: int = 1000) -> Iterator[Recall]:
    """Open a file of the cache, and write it at the end, whole or not at all.

    Parameters
    ----------
    name
        Of the file.
    fresh
        Compute everything again, whatever is kept.
    most
        Values kept, the latest used first to stay.

    Yields
    ------
    Recall
        A file that is torn or cannot be read or written counts as empty.
    """
    path = cache_root() / "kept" / f"{name}.pickle"
    before = _read(path)
    used: dict[str, bytes] = {}
    changed = False

    def recall(key: str, compute: Callable[[], T], /) -> T:
        nonlocal changed
        if key in before and not fresh:
            with contextlib.suppress(Exception):  # whatever a torn pickle raises
                value: T = pickle.loads(before[key])
                used[key] = before[key]
                return value
        value = compute()
        used[key] = pickle.dumps(value)
        changed = True
        return value

    try:
        yield recall
    finally:  # also what was computed before an interruption
        if changed:
            entries = {key: value for key, value in before.items() if key not in used} | used
            last = dict(list(entries.items())[-most:])
            with contextlib.suppress(OSError):
                write_bytes(path, pickle.dumps(last))


def _read(path: Path) -> dict[str, bytes]:
    try:
        found: Any = pickle.loads(path.read_bytes())
    except Exception:  # absent, torn, or of another Python
        return {}
    return found if isinstance(found, dict) else {}
