"""What takes long to compute, kept in the user's cache under a hash of all that decides it.

>>> with kept_values("doctest", float) as recall:               # doctest: +SKIP
...     value = recall(text_digest("seed 1", code_digest()), lambda: simulate(seed=1))
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from mnmt_repro.atomic import write_bytes
from mnmt_repro.repository import cache_root

T = TypeVar("T")
PACKAGE = Path(__file__).parent


Recall = Callable[[str, Callable[[], T]], T]
"""Returns what is kept under a key, else computes it."""


def text_digest(*parts: str | bytes) -> str:
    """SHA-256 of texts in their order.

    >>> text_digest("ab", "c") == text_digest("a", "bc")
    False
    """
    return _digest(parts)


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


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


NUMERIC = ("numpy", "pandas", "pydantic", "pyyaml", "scipy")
"""Libraries that decide the numbers of this package."""


def code_digest(*, without: Iterable[str] = (), libraries: Iterable[str] = NUMERIC) -> str:
    """Hash of the package less some of its rooms, of Python, and of versions of libraries."""
    left_out = {"__pycache__", *without}
    files = (p for p in PACKAGE.rglob("*") if not left_out & {*p.relative_to(PACKAGE).parts})
    versions = (f"{name} {metadata.version(name)}" for name in sorted(libraries))
    machine = (sys.version, platform.machine())
    return text_digest(*machine, *versions, files_digest(PACKAGE, files))


@contextlib.contextmanager
def kept_values(
    name: str, kind: Any, *, fresh: bool = False, most: int = 1000
) -> Iterator[Recall[Any]]:
    """Open a file of the cache, and write it at the end, whole or not at all.

    Parameters
    ----------
    name
        Of the file, which is JSON: no code in it can be run.
    kind
        Of the values: numbers, texts, and dataclasses and containers of them.
    fresh
        Compute everything again, whatever is kept.
    most
        Values kept, the latest used first to stay.

    Yields
    ------
    Recall
        A file that is torn or cannot be read or written counts as empty.
    """
    adapter = TypeAdapter(kind)
    path = cache_root() / "kept" / f"{name}.json"
    before: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):  # absent or torn
        before = dict(json.loads(path.read_bytes()))
    used: dict[str, Any] = {}
    changed = False

    def recall(key: str, compute: Callable[[], Any], /) -> Any:
        nonlocal changed
        if key in before and not fresh:
            with contextlib.suppress(ValueError):  # an entry of other code
                value = adapter.validate_python(before[key])
                used[key] = before[key]
                return value
        value = compute()
        used[key] = adapter.dump_python(value, mode="json")
        changed = True
        return value

    try:
        yield recall
    finally:  # also what was computed before an interruption
        if changed:
            entries = {key: value for key, value in before.items() if key not in used} | used
            text = json.dumps(dict([*entries.items()][-most:]))
            with contextlib.suppress(OSError):
                write_bytes(path, text.encode())
