"""A page is executed when something changed that decides its outputs, and reused otherwise.

Its last execution lies in ``_build/executed``, with a hash of the notebook, the parameters, the
package, the installed libraries, the data and the results store. A page of another hash is
executed again. As a Sphinx extension this module gives plain ``jupyter-book build .`` these pages.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from mnmt_repro.atomic import write_bytes
from mnmt_repro.disk_cache import code_digest, files_digest, text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.papers.pages.lessons import is_executed
from mnmt_repro.papers.pages.notebooks import (
    PageError,
    command_cell,
    declared_parameters,
    execute_pages,
    fold_parameters,
    match_parameters,
)
from mnmt_repro.repository import ROOT
from mnmt_repro.results import results_root

PARAMETERS = "MNMT_REPRO_PARAMETERS"
"""Environment variable by which `build_book` passes parameters to jupyter-book, as JSON."""

TYPESET = ".typeset"
"""File in the folder of HTML: the hash of what `build_book` typeset there."""
_IN_THE_BOOK = re.compile(r"^<!-- book\n(.*?)\n-->$", re.DOTALL | re.MULTILINE)
"""Lines that only the book can show, such as what a later cell glues: a comment in JupyterLab."""


def executed_pages(
    source: Path,
    folder: Path,
    pages: Iterable[Path],
    *,
    parameters: Mapping[str, Any],
    jobs: int | None = None,
) -> dict[Path, NotebookNode]:
    """Execute the pages that changed, and return the notebooks that the book shows.

    Parameters
    ----------
    source
        The book's folder.
    folder
        The folder ``_build/executed``, which holds the last execution of each page.
    pages
        Notebooks, relative to `source`.
    parameters
        As for `build_book`.
    jobs
        Pages executed at once; by default one more than the processors.

    Raises
    ------
    InputError
        If a parameter is declared by no page.
    PageError
        If a page fails. Those that did not fail are kept.
    """
    declared = {page: declared_parameters(source / page) for page in pages}
    values = match_parameters(declared, parameters)
    inputs = _inputs(source, {page.parts[0] for page in declared})
    states = {
        page: text_digest(inputs, (source / page).read_bytes(), *_texts(values[page]))
        for page in declared
    }
    shown = {}
    for page in declared:
        written = nbformat.read(source / page, as_version=4)
        if is_executed(written) and not values[page]:
            shown[page] = written
        elif (folder / page).is_file():
            last = nbformat.read(folder / page, as_version=4)
            if last.metadata.get("state") == states[page]:
                shown[page] = last
    changed = {page: values[page] for page in declared if page not in shown}
    for page, executed in execute_pages(source, changed, jobs=jobs):
        executed.metadata["state"] = states[page]
        write_bytes(folder / page, nbformat.writes(executed).encode())
        shown[page] = executed
    print(
        f"{len(changed)} pages executed, {len(declared) - len(changed)} unchanged", file=sys.stderr
    )
    for page, notebook in shown.items():
        for cell in notebook.cells:
            cell.source = _IN_THE_BOOK.sub(r"\1", cell.source)
        if declared[page]:
            fold_parameters(notebook)
            notebook.cells.append(command_cell(page, declared[page]))
    return shown


def _inputs(source: Path, folders: Iterable[str]) -> str:
    """Hash of all that any page may read: code, data, results, settings, files beside the pages."""
    beside = [
        path
        for folder in folders
        for path in (source / folder).rglob("*")
        if path.suffix not in (".ipynb", ".md")
    ]
    settings = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("MNMT_REPRO_") and name not in ("MNMT_REPRO_CACHE", PARAMETERS)
    ]
    data = [_folder_digest(folder) for folder in sorted({ROOT / "data", results_root()})]
    return text_digest(code_digest(), *settings, *data, files_digest(source, beside))


def _texts(values: Mapping[str, Any]) -> list[str]:
    """Values as text, and the contents of folders that they name, such as a reader's own store."""
    named = [Path(value) for value in values.values() if isinstance(value, str) and value]
    folders = [_folder_digest(path) for path in named if path.is_dir()]
    return [json.dumps(values, sort_keys=True, default=str), *folders]


def _folder_digest(folder: Path) -> str:
    return files_digest(folder, folder.rglob("*"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx: notebooks are read as `executed_pages` gives them."""
    shown: dict[str, str] = {}

    def outdated(app: Sphinx, env: Any, added: set[str], *_: Any) -> list[str]:
        html = Path(app.outdir)
        (html / TYPESET).unlink(missing_ok=True)  # until `build_book` has checked the new pages
        files = (Path(env.doc2path(name, base=False)) for name in sorted(env.found_docs))
        pages = [path for path in files if path.suffix == ".ipynb"]
        parameters = json.loads(os.environ.get(PARAMETERS, "{}"))
        folder = html.parent / "executed"
        try:
            notebooks = executed_pages(Path(app.srcdir), folder, pages, parameters=parameters)
        except (InputError, PageError) as error:
            raise ExtensionError(str(error)) from error
        for path, notebook in notebooks.items():
            shown[path.with_suffix("").as_posix()] = nbformat.writes(notebook)
        return sorted(shown)

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        content[0] = shown.get(name, content[0])

    app.connect("env-get-outdated", outdated)
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": False}
