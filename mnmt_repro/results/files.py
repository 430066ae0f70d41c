"""Where the store is, and its JSON files, which are written once and read whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mnmt_repro.atomic import write_new
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT

Root = str | os.PathLike[str] | None


def results_root(root: Root = None, *, checkout: Path | None = None) -> Path:
    """Folder of the store: `root`, else ``MNMT_REPRO_RESULTS``, else the checkout's.

    Parameters
    ----------
    checkout
        Top folder of the checkout; by default the one that the package runs from, or what its wheel
        carries.
    """
    if root is not None:
        return Path(root)
    if named := os.environ.get("MNMT_REPRO_RESULTS"):
        return Path(named)
    return (checkout or ROOT) / "data" / "results"


def use(root: str | os.PathLike[str]) -> None:
    """Read and write this store from now on, in this process and those that it starts.

    Raises
    ------
    InputError
        When there is no such folder.
    """
    folder = Path(root).expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of results")
    os.environ["MNMT_REPRO_RESULTS"] = str(folder)


STORED = (
    "is stored already with another content; results are never replaced (remove the file to make "
    "it again)"
)


def write_once(path: Path, content: Mapping[str, Any]) -> Path:
    """Write `content` as JSON, whole or not at all; writing the same again does nothing.

    Raises
    ------
    InputError
        With the path, when the file holds something else.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if not write_new(path, text.encode()) and path.read_text(encoding="utf-8") != text:
        raise InputError(f"{path}: {STORED}")
    return path


def read_checked(
    path: Path,
    check: Callable[[Any, str], None],
    name_of: Callable[[Any], str],
    parse: Callable[[bytes], Any] = lambda text: None,
) -> dict[str, Any]:
    """Read and check one JSON file of the store.

    Parameters
    ----------
    check
        Of `results.schema`.
    name_of
        From what the file holds to its name in the store, with the folders from the corpus on.
    parse
        Parses and checks at once, which is faster; None where only `check` can say what is wrong.

    Raises
    ------
    InputError
        Naming the file and the field, when the file is torn, of another schema version, or a field
        is missing, unknown or of the wrong kind; and when the file has the name of another.
    """
    try:
        text = path.read_bytes()
        if (content := parse(text)) is None:
            content = json.loads(text.decode())
            check(content, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: not whole JSON (line {error.lineno}: {error.msg}); restore the file"
        ) from error
    name = name_of(content)  # a pattern at most times without a star, which is slow to match
    if not (path.as_posix().endswith(f"/{name}") or path.match(name)):
        raise InputError(f"{path}: holds {name}; give it its own name again")
    return content
