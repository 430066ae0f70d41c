"""A page is executed when something changed that decides its outputs, and reused otherwise.

Its last execution lies in ``_build/executed``, with a hash of its code cells, the parameters, the
package, the libraries that decide how it looks, the data and the results store. A page of another
hash is executed again. One whose prose alone has changed keeps its outputs. As a Sphinx extension
this module gives plain ``jupyter-book build .`` these pages.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import vl_convert
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from mnmt_repro.atomic import write_bytes
from mnmt_repro.disk_cache import NUMERIC, code_digest, files_digest, text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.display import VEGA_LITE
from mnmt_repro.papers.charts.theme import vega_lite_version
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

LIBRARIES = (
    *NUMERIC, "altair", "beautifulsoup4", "ipykernel", "jinja2", "jupyter-book", "myst-nb",
    "nbconvert", "nbformat", "papermill", "sphinx", "sphinx-exercise",
    "sphinx-external-toc", "sphinx-mathjax-offline", "sphinx-reredirects", "sympy", "tabulate",
    "tqdm", "typing-extensions", "vl-convert-python",
)  # fmt: skip
"""Libraries that decide how a page looks: those of the base tier."""

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
    shown, states = {}, {}
    for page in declared:
        written = nbformat.read(source / page, as_version=4)
        code = [[cell.source, cell.metadata] for cell in written.cells if cell.cell_type == "code"]
        states[page] = text_digest(inputs, json.dumps(code), *_texts(values[page]))
        if is_executed(written) and not values[page]:
            shown[page] = written
        elif (folder / page).is_file():  # written by us: to validate it takes a second
            last = nbformat.v4.reads((folder / page).read_text(encoding="utf-8"))
            if last.metadata.get("state") == states[page]:
                shown[page] = _with_prose(last, written)
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


def _for_print(page: NotebookNode) -> None:
    """Make a page one for LaTeX, which takes no HTML: charts are PDF, and tables plain text."""
    for data in (o.data for cell in page.cells for o in cell.get("outputs", []) if "data" in o):
        if chart := data.get(VEGA_LITE):
            pdf = vl_convert.vegalite_to_pdf(chart, vl_version=vega_lite_version())
            data["application/pdf"] = base64.b64encode(pdf).decode()
        if data.get("text/markdown", "").startswith("<"):
            del data["text/markdown"]


def _with_prose(last: NotebookNode, written: NotebookNode) -> NotebookNode:
    """The last execution, with the prose as it is written now between the same code cells."""
    ran = [cell for cell in last.cells if cell.cell_type == "code"]
    last.cells = []
    for cell in written.cells:
        last.cells.append(ran.pop(0) if cell.cell_type == "code" else cell)
        while ran and "injected-parameters" in ran[0].metadata.get("tags", []):  # of papermill
            last.cells.append(ran.pop(0))
    return last


def _inputs(source: Path, folders: Iterable[str]) -> str:
    """Hash of what any page may read: code, data, results, settings, files beside the pages."""
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
    data = map(_folder_digest, (ROOT / "data", results_root()))
    code = code_digest(libraries=LIBRARIES)
    return text_digest(code, *settings, *data, files_digest(source, beside))


def _texts(values: Mapping[str, Any]) -> list[str]:
    """Values as text, and the contents of folders that they name, such as a reader's own store."""
    named = [Path(value) for value in values.values() if isinstance(value, str) and value]
    folders = [_folder_digest(path) for path in named if path.is_dir()]
    return [json.dumps(values, sort_keys=True, default=str), *folders]


def _folder_digest(folder: Path) -> str:
    return files_digest(folder, folder.rglob("*"))


def _shared(env: Any) -> str:
    """Hash of what pages show of one another: titles, numbers, labels, names and works cited."""
    domains = {name: data for name, data in env.domaindata.items() if name not in ("cite", "index")}
    refs = env.domaindata.get("cite", {}).get("citation_refs", ())
    cited = {str(ref._replace(citation_ref_id="", line=0)) for ref in refs}
    numbers = env.toc_secnumbers, env.toc_fignumbers
    return text_digest(repr(_plain([env.titles, *numbers, domains, cited])))


def _plain(value: Any) -> Any:
    """Without the order in which pages were read, which is another each time."""
    if isinstance(value, Mapping):
        return sorted((str(key), str(_plain(each))) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        plain = [str(_plain(each)) for each in value]
        return sorted(plain) if isinstance(value, set | frozenset) else plain
    return value.astext() if hasattr(value, "astext") else value


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx: notebooks are read as `executed_pages` gives them.

    A page is read when its content has changed, whatever its time. All are written again when
    something has changed that pages show of one another.
    """
    shown: dict[str, NotebookNode] = {}

    def outdated(app: Sphinx, env: Any, added: set[str], *_: Any) -> list[str]:
        html = Path(app.outdir)
        (html / TYPESET).unlink(missing_ok=True)  # until `build_book` has checked the new pages
        files = {name: Path(env.doc2path(name, base=False)) for name in sorted(env.found_docs)}
        pages = [path for path in files.values() if path.suffix == ".ipynb"]
        parameters = json.loads(os.environ.get(PARAMETERS, "{}"))
        folder = html.parent / "executed"
        try:
            notebooks = executed_pages(Path(app.srcdir), folder, pages, parameters=parameters)
        except (InputError, PageError) as error:
            raise ExtensionError(str(error)) from error
        before, env.mnmt_pages = getattr(env, "mnmt_pages", {}), {}
        for name, path in files.items():
            if path in notebooks:
                shown[name] = notebooks[path]
                env.mnmt_pages[name] = text_digest(json.dumps(shown[name].cells))
            else:
                env.mnmt_pages[name] = text_digest((Path(app.srcdir) / path).read_bytes())
        return [name for name, now in env.mnmt_pages.items() if before.get(name) != now]

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        if name in shown:
            if app.builder.format == "latex":
                _for_print(shown[name])
            content[0] = nbformat.writes(shown[name])

    def dependent(app: Sphinx, env: Any) -> list[str]:
        before, env.mnmt_shared = getattr(env, "mnmt_shared", ""), _shared(env)
        return [] if before == env.mnmt_shared else sorted(env.all_docs)

    app.connect("env-get-outdated", outdated)
    app.connect("source-read", read)
    app.connect("env-get-updated", dependent, priority=900)  # once Sphinx has numbered all
    return {"version": "1", "parallel_read_safe": False}
