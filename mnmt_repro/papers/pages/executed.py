"""Pages are executed when something changed that decides their outputs, and reused otherwise.

An executed page lies in ``_build/executed``. Its name has a hash of the notebook, the parameters,
the package, the installed libraries, the data and the results store, so that a page whose inputs
changed is not found. As a Sphinx extension this module gives plain ``jupyter-book build .`` the
same pages.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from tqdm import tqdm

from mnmt_repro.disk_cache import code_digest, files_digest, text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.papers.pages.notebooks import (
    PageError,
    PageRun,
    command_cell,
    declared_parameters,
    execute_pages,
    fold_parameters,
    match_parameters,
)
from mnmt_repro.papers.pages.stored import can_train, trains, with_stored_outputs
from mnmt_repro.repository import ROOT
from mnmt_repro.results import results_root

MOST_KEPT = 4  # executions of a page, of which each has other parameters, code or data


def executed_pages(
    source: Path,
    kept: Path,
    pages: Iterable[Path],
    *,
    parameters: Mapping[str, Any],
    jobs: int | None = None,
    folder: Path | None = None,
) -> dict[Path, str]:
    """Execute the pages that changed, and return the notebooks that the book shows.

    Parameters
    ----------
    source
        The book's folder.
    kept
        The folder ``_build/executed``.
    pages
        Notebooks, relative to `source`.
    parameters
        As for `build_book`.
    jobs
        Pages executed at once; by default one more than the processors.
    folder
        In which the pages' cells run, each in the page's subfolder; by default `source`.

    Raises
    ------
    InputError
        If a parameter is declared by no page, or a page needs torch for its value.
    PageError
        If a page fails. Those that did not fail are kept.
    """
    declared = {str(page): declared_parameters(source / page) for page in pages}
    values = match_parameters(declared, parameters)
    training = {name for name in declared if trains(source / name)}
    stored = set() if can_train() else training
    for name in stored:
        if values[name]:
            names = ", ".join(values[name])
            raise InputError(f"{name}: other values of {names} need torch; run `make install`")
    common = _inputs(source, {Path(name).parts[0] for name in declared})
    runs = {
        name: PageRun(
            source=source / name,
            output=_kept_path(source, kept, Path(name), values[name], common),
            name=name,
            parameters=values[name],
            folder=((folder or source) / name).parent,
        )
        # Pages that train take longest, so they begin first.
        for name in sorted(declared, key=lambda name: name not in training)
        if name not in stored
    }
    changed = [run for run in runs.values() if not run.output.is_file()]
    run_pages(changed, jobs)
    print(f"{len(changed)} pages executed, {len(runs) - len(changed)} unchanged", file=sys.stderr)
    shown = {}
    for name in declared:
        if name in stored:
            made = with_stored_outputs(source, Path(name))
        else:
            made = nbformat.read(runs[name].output, as_version=4)
            _forget_old(runs[name].output)
        if declared[name]:
            fold_parameters(made)
            made.cells.append(command_cell(Path(name), declared[name]))
        shown[Path(name)] = nbformat.writes(made)
    return shown


def run_pages(runs: list[PageRun], jobs: int | None) -> None:
    """Execute pages, and show how it goes.

    Raises
    ------
    PageError
        With the error of each page that failed.
    """
    if not runs:
        return
    errors = []
    with tqdm(total=len(runs), desc="executing pages", unit="page", disable=None) as bar:
        for run in execute_pages(runs, jobs=jobs):
            state = "FAILED" if run.error else "done"
            bar.write(f"{state:6} {run.seconds:6.1f} s  {run.name}", file=sys.stderr)
            bar.update()
            if run.error:
                errors.append(run.error)
    if errors:
        raise PageError(f"{len(errors)} of {len(runs)} pages failed\n\n" + "\n\n".join(errors))


def _inputs(source: Path, folders: Iterable[str]) -> str:
    """Hash of all that any page may read: code, data, results, settings, files beside the pages."""
    read = sorted({ROOT / "data", results_root()})
    beside = [
        path
        for folder in folders
        for path in (source / folder).rglob("*")
        if path.suffix not in (".ipynb", ".md") and ".ipynb_checkpoints" not in path.parts
    ]
    settings = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("MNMT_REPRO_") and name != "MNMT_REPRO_CACHE"
    ]
    data = [files_digest(folder, folder.rglob("*")) for folder in read]
    return text_digest(code_digest(), *settings, *data, files_digest(source, beside))


def _kept_path(
    source: Path, kept: Path, page: Path, parameters: Mapping[str, Any], common: str
) -> Path:
    named = [
        files_digest(folder, folder.rglob("*"))  # such as a store of the reader's own
        for value in parameters.values()
        if isinstance(value, str) and value
        if (folder := Path(value).expanduser()).is_dir()
    ]
    given = json.dumps(parameters, sort_keys=True, default=str)
    key = text_digest(common, (source / page).read_bytes(), given, *named)
    return kept / page.parent / f"{page.stem}.{key[:16]}.ipynb"


def _forget_old(path: Path) -> None:
    path.touch()
    name = path.name[: -len(".0123456789abcdef.ipynb")]
    same = path.parent.glob(f"{name}.{'[0-9a-f]' * 16}.ipynb")
    for old in sorted(same, key=lambda each: each.stat().st_mtime)[:-MOST_KEPT]:
        old.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx: notebooks are read with the outputs of `executed_pages`.

    `build_book` leaves it out, since it copies executed pages.
    """
    shown: dict[str, str] = {}

    def begin(app: Sphinx) -> None:
        source = Path(app.srcdir)
        files = (Path(app.env.doc2path(name, base=False)) for name in sorted(app.env.found_docs))
        pages = [path for path in files if path.suffix == ".ipynb"]
        build = Path(app.outdir).parent
        (build / "typeset").unlink(missing_ok=True)  # this book is not `build_book`'s
        try:
            found = executed_pages(source, build / "executed", pages, parameters={})
        except (InputError, PageError) as error:
            raise ExtensionError(str(error)) from error
        shown.update((path.with_suffix("").as_posix(), text) for path, text in found.items())

    def outdated(app: Sphinx, env: Any, added: set[str], *_: Any) -> list[str]:
        begin(app)
        return sorted(shown)

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        content[0] = shown.get(name, content[0])

    app.connect("env-get-outdated", outdated)
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": False}
