"""What takes long to compute, kept in the user's cache under a hash of all that decides it.

>>> with kept_values("doctest", as_json(float)) as recall:               # doctest: +SKIP
...     value = recall(text_digest("seed 1", code_digest()), lambda: simulate(seed=1))
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import platform
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, TypeVar

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


@dataclass(frozen=True)
class Form(Generic[T]):
    """How values are written and read again. No form may run code that a file holds."""

    write: Callable[[T], bytes]
    read: Callable[[bytes], T]


def as_json(kind: Any) -> Form[Any]:
    """Numbers, texts, and dataclasses and containers of them, as JSON.

    >>> form = as_json(set[tuple[str, int]])
    >>> form.read(form.write({("a", 1)}))
    {('a', 1)}
    """
    adapter = TypeAdapter(kind)
    return Form(
        write=lambda value: json.dumps(adapter.dump_python(value, mode="json")).encode(),
        read=lambda content: adapter.validate_python(json.loads(content)),
    )


@contextlib.contextmanager
def kept_values(
    name: str, form: Form[T], *, fresh: bool = False, most: int = 1000
) -> Iterator[Recall[T]]:
    """Open a file of the cache, and write it at the end, whole or not at all.

    Parameters
    ----------
    name
        Of the file, a ZIP archive with an entry a key.
    form
        How the entries are written.
    fresh
        Compute everything again, whatever is kept.
    most
        Values kept, the latest used first to stay.

    Yields
    ------
    Recall
        A file that is torn or cannot be read or written counts as empty.
    """
    path = cache_root() / "kept" / f"{name}.zip"
    before = _read(path)
    used: dict[str, bytes] = {}
    changed = False

    def recall(key: str, compute: Callable[[], T], /) -> T:
        nonlocal changed
        if key in before and not fresh:
            with contextlib.suppress(Exception):  # whatever an entry of other code raises
                value = form.read(before[key])
                used[key] = before[key]
                return value
        value = compute()
        used[key] = form.write(value)
        changed = True
        return value

    try:
        yield recall
    finally:  # also what was computed before an interruption
        if changed:
            entries = {key: value for key, value in before.items() if key not in used} | used
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w") as file:
                for key, value in list(entries.items())[-most:]:
                    file.writestr(key, value)
            with contextlib.suppress(OSError):
                write_bytes(path, content.getvalue())


def _read(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as file:
            return {key: file.read(key) for key in file.namelist()}
    except Exception:  # absent or torn
        return {}
