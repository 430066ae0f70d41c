"""Write and read the files of the store, each once and whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_repro.results.files import Kind, Root, results_root, write_once
from mnmt_repro.results.schema import RUN

_RUN = Kind(what="run", folder="", name="{run[corpus]}/{run[run_id]}.json".format_map, file=RUN)


def run_file(corpus: str, run_id: str, root: Root = None) -> Path:
    """Where a run lies, or will lie, in the store."""
    return results_root(root) / corpus / f"{run_id}.json"


def write_run(
    run: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    *,
    root: Root = None,
) -> Path:
    """Store one run; the file appears whole or not at all, and an existing one is never replaced.

    Writing the same content again does nothing. `run`, `rows` and `curve` are the three parts of
    the file, checked as they will be on reading.

    Returns
    -------
    Path
        ``<root>/<corpus>/<run_id>.json``

    Raises
    ------
    InputError
        When a field is missing, unknown or of the wrong kind, or the run is stored already with
        another content.
    """
    content = _RUN.whole({"run": run, "rows": rows, "curve": curve}, run.get("run_id"))
    return write_once(run_file(run["corpus"], run["run_id"], root), content)


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check one file of the store.

    Raises
    ------
    InputError
        As `files.Kind.read`.
    """
    return _RUN.read(path)


def each_run(root: Root = None) -> Iterator[dict[str, Any]]:
    """Stored runs in order of path, each read when it is asked for: all at once fill the memory."""
    return _RUN.each(root)


def load_runs(root: Root = None) -> list[dict[str, Any]]:
    """All stored runs in order of path, each as its file holds it (`config` included)."""
    return list(each_run(root))
