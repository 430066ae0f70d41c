"""Where the store is, and its JSON files, which are written once and read whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mnmt_repro.atomic import write_new
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT
from mnmt_repro.results.schema import SCHEMA, checked

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


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Files of the store that hold the same.

    Attributes
    ----------
    what
        What a file holds, for messages.
    folder
        Below that of the corpus, with a slash; empty: that of the corpus.
    name
        From what a file holds to its name below the store's folder, or the end of it.
    file
        Of `results.schema`: what reads and checks it.
    """

    what: str
    folder: str
    name: Callable[[Any], str]
    file: TypeAdapter[Any]

    def whole(self, content: Mapping[str, Any], run_id: Any) -> dict[str, Any]:
        """The content of a new file about a run, checked; raises as `schema.checked`."""
        whole = {"schema": SCHEMA, **content}
        checked(self.file, whole, f"{self.what} {run_id!r}")
        return whole

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Read and check one file.

        Raises
        ------
        InputError
            As `schema.checked`, and when the file has the name of another.
        """
        path = Path(path)
        try:
            content: dict[str, Any] = checked(self.file, path.read_bytes(), str(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        if not path.as_posix().endswith(f"/{(name := self.name(content))}"):
            raise InputError(f"{path}: holds {name}; give it its own name again")
        return content

    def each(self, root: Root = None) -> Iterator[dict[str, Any]]:
        """All files in order of path, each read when it is asked for."""
        return map(self.read, sorted(results_root(root).glob(f"*/{self.folder}*.json")))
