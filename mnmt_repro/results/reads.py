"""What a page reads of the results store, so that other rows do not make it run again.

The kernel of a page loads this module as an extension. It writes a line of JSON for each call of
`results.load` and `results.load_curves`, with its arguments and the hash of the rows. Whatever else
opens a file of the store, or starts a process that may, counts as a reading of all of it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro import results
from mnmt_repro.disk_cache import text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT

READS = "MNMT_REPRO_READS"
"""Environment variable with the file that the lines are added to."""

_LOADERS = ("load", "load_curves")
_PROCESSES = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")


def load_ipython_extension(shell: object) -> None:
    """Watch this process from now on."""
    path, store = os.environ[READS], os.path.realpath(results.results_root())
    inside = 0  # calls of a loader, which open every file of the store

    def write(*line: Any) -> None:
        with Path(path).open("a", encoding="utf-8") as file:
            default = lambda each: list(each) if isinstance(each, set) else str(each)  # noqa: E731
            file.write(json.dumps(line, default=default) + "\n")

    def noted(load: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        @functools.wraps(load)
        def wrapped(**asked: Any) -> pd.DataFrame:
            nonlocal inside
            inside += 1
            try:
                frame = load(**asked)
            finally:
                inside -= 1
            root = results.results_root(asked.pop("root", None))
            # The store of a checkout is named by nothing: a copy of the checkout has another.
            named = {} if root == ROOT / "data" / "results" else {"root": str(root)}
            write(load.__name__, named | asked, frame_digest(frame))
            return frame

        return wrapped

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if inside:
            return
        named = event == "open" and not isinstance(arguments[0], int | None)
        inner = named and os.path.realpath(os.fsdecode(arguments[0])).startswith(store + os.sep)
        if inner or event in _PROCESSES:
            write("all", {}, "")

    for name in _LOADERS:
        setattr(results, name, noted(getattr(results, name)))
    sys.addaudithook(hook)


def frame_digest(frame: pd.DataFrame) -> str:
    """Hash of all values of a frame in their order, and of its columns."""
    values = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return text_digest(" ".join(frame.columns), values.tobytes())


def digest_now(name: str, asked: str) -> str:
    """What a line's hash would be now, by its loader and the JSON of its arguments."""
    if name not in _LOADERS:
        return "not known"
    try:
        return frame_digest(getattr(results, name)(**json.loads(asked)))
    except InputError:  # such as of a folder that is gone
        return "not known"
