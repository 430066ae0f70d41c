"""Build the book: execute its pages, typeset them, check that nothing comes from elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from sphinx_external_toc.parsing import parse_toc_yaml
from tqdm import tqdm

from mnmt_repro.errors import InputError
from mnmt_repro.publishing.attachments import attach_files, restore_sources
from mnmt_repro.publishing.notebooks import (
    PageError,
    PageRun,
    append_command,
    declared_parameters,
    execute_pages,
    match_parameters,
    without_colours,
)
from mnmt_repro.publishing.resources import raw_formulas, remote_resources
from mnmt_repro.publishing.stored import (
    can_train,
    clean_commit,
    store_outputs,
    trains,
    write_with_stored_outputs,
)

_IGNORED = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__", "_build")


def build_book(
    source: Path,
    output: Path | None = None,
    *,
    jobs: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Path:
    """Execute every notebook of a book's table of contents, then build the book offline.

    Parameters
    ----------
    source
        Folder with `_config.yml`, `_toc.yml` and the pages. It is only read.
    output
        Folder in which `_build/pages` (executed) and `_build/html` (the book) are made anew;
        default `source`. The same meaning as `jupyter-book build --path-output`.
    jobs
        Pages executed at once; default one a processor.
    parameters
        Values for the pages' `parameters` cells; each goes to every page that declares its name.

    Returns
    -------
    Path
        The book's first page.

    Raises
    ------
    InputError
        If a file of the book is missing, or a parameter is declared by no page.
    PageError
        If a page fails, the typesetting gives a warning, a page would load from another host, or
        it shows the source of a formula.
    """
    source = source.resolve()
    output = (output or source).resolve()
    config, root, pages = _read_book(source)
    notebooks = [page for page in pages if page.suffix == ".ipynb"]
    declared = {str(page): declared_parameters(source / page) for page in notebooks}
    values = match_parameters(declared, parameters or {})

    executed = output / "_build" / "pages"
    html = output / "_build" / "html"
    for folder in (executed, html):
        shutil.rmtree(folder, ignore_errors=True)
    stored = [] if can_train() else [page for page in notebooks if trains(source / page)]
    for page in stored:
        if values[str(page)]:
            names = ", ".join(values[str(page)])
            raise InputError(f"{page}: other values of {names} need torch; run `make install`")
    _copy_sources(source, executed, pages, config)
    _execute(
        [
            PageRun(
                source=source / page,
                output=executed / page,
                name=str(page),
                parameters=values[str(page)],
            )
            # Pages that train take longest, so they begin first.
            for page in sorted(notebooks, key=lambda page: not trains(source / page))
            if page not in stored
        ],
        jobs,
    )
    for page in stored:
        write_with_stored_outputs(source, page, executed / page)
    for page in notebooks:
        if declared[str(page)]:
            append_command(executed / page, page, declared[str(page)])
    _typeset(executed, output)
    attach_files(html)
    restore_sources(source, html)

    remote = remote_resources(html)
    if remote:
        lines = [f"{page.relative_to(html)}: {url}" for page, url in remote]
        raise PageError("these would be loaded from another host:\n" + "\n".join(lines))
    raw = raw_formulas(html)
    if raw:
        lines = [f"{page.relative_to(html)}: {text}" for page, text in raw]
        raise PageError("these formulas are not typeset:\n" + "\n".join(lines))
    return html / root.with_suffix(".html")


def store_lessons(source: Path, *, jobs: int | None = None) -> list[Path]:
    """Execute the pages that train models, and store their outputs.

    `build_book` shows these outputs where torch is not installed.

    Parameters
    ----------
    source
        Folder of the book, a git checkout.
    jobs
        Pages executed at once; default one a processor.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        When torch is missing, or the page or the package differs from its last commit.
    PageError
        When a page fails.
    """
    if not can_train():
        raise InputError("storing outputs needs torch; run `make install`")
    source = source.resolve()
    pages = [p for p in _read_book(source)[2] if p.suffix == ".ipynb" and trains(source / p)]
    commit = clean_commit(source, pages)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            PageRun(
                source=source / page,
                output=Path(folder) / page,
                name=str(page),
                parameters={},
            )
            for page in pages
        ]
        _execute(runs, jobs)
        return [store_outputs(source, page, Path(folder) / page, commit) for page in pages]


def _read_book(source: Path) -> tuple[dict[str, Any], Path, list[Path]]:
    """Read the configuration, the first page and all pages, relative to `source`."""
    for name in ("_config.yml", "_toc.yml"):
        if not (source / name).is_file():
            raise InputError(f"{source / name} is missing; a book needs it beside its pages")
    config = yaml.safe_load((source / "_config.yml").read_text(encoding="utf-8"))
    toc = parse_toc_yaml(source / "_toc.yml")
    pages = {document: _page(source, document) for document in toc}
    return config, pages[toc.root.docname], list(pages.values())


def _page(source: Path, document: str) -> Path:
    for suffix in ("", ".md", ".ipynb"):
        page = Path(document + suffix)
        if page.suffix in (".md", ".ipynb") and (source / page).is_file():
            return page
    raise InputError(
        f"{source / '_toc.yml'}: page {document!r} has neither an .md nor an .ipynb file"
    )


def _copy_sources(source: Path, executed: Path, pages: list[Path], config: dict[str, Any]) -> None:
    """Copy all but the notebooks; the copy's configuration leaves execution to papermill."""
    executed.mkdir(parents=True)
    for folder in sorted({page.parts[0] for page in pages if len(page.parts) > 1}):
        shutil.copytree(source / folder, executed / folder, ignore=_IGNORED)
    for page in pages:
        if len(page.parts) == 1 and page.suffix != ".ipynb":
            shutil.copyfile(source / page, executed / page)
    shutil.copyfile(source / "_toc.yml", executed / "_toc.yml")
    execute = {**config.get("execute", {}), "execute_notebooks": "off"}
    (executed / "_config.yml").write_text(
        yaml.safe_dump({**config, "execute": execute}, allow_unicode=True), encoding="utf-8"
    )


def _execute(runs: list[PageRun], jobs: int | None) -> None:
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


def _typeset(executed: Path, output: Path) -> None:
    """Run jupyter-book over executed pages; a warning is an error."""
    print("typesetting the book ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(executed)]
    command += [
        "--path-output",
        str(output),
        "--all",
        "--quiet",
        "--warningiserror",
        "--keep-going",
    ]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise PageError(f"jupyter-book failed\n{without_colours(done.stdout + done.stderr)}")
