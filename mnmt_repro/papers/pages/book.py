"""Build the book: execute its pages, typeset them, check that nothing comes from elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import yaml
from sphinx_external_toc.parsing import parse_toc_yaml

from mnmt_repro.atomic import write_bytes
from mnmt_repro.disk_cache import code_digest, files_digest, text_digest
from mnmt_repro.errors import InputError, remedy
from mnmt_repro.papers.pages.attachments import attach_files
from mnmt_repro.papers.pages.executed import LIBRARIES, PARAMETERS, TYPESET, executed_pages
from mnmt_repro.papers.pages.lessons import trains, with_outputs
from mnmt_repro.papers.pages.notebooks import PageError, execute_pages, without_colours
from mnmt_repro.papers.pages.resources import raw_formulas, remote_resources


def build_book(
    source: Path,
    output: Path | None = None,
    *,
    jobs: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
) -> Path:
    """Build a book offline, and execute those of its notebooks that changed.

    Parameters
    ----------
    source
        Folder with `_config.yml`, `_toc.yml` and the pages. It is only read.
    output
        Folder in which `_build/executed` and `_build/html` (the book) are made; default `source`.
        The same meaning as `jupyter-book build --path-output`.
    jobs
        Pages executed at once; by default one more than the processors.
    parameters
        Values for the pages' `parameters` cells; each goes to every page that declares its name.
    only
        Names of the only pages to build, such as ``paper-a/planner``, into `_build/only`. Links to
        other pages are dead.

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
    source, parameters = source.resolve(), parameters or {}
    output = (output or source).resolve()
    pages, toc = _read_toc(source), source / "_toc.yml"
    if only:
        pages = list(dict.fromkeys(_chosen(pages, name) for name in only))
        output /= "_build/only"
        toc = output / "_toc.yml"
    build = output / "_build"
    html, executed = build / "html", build / "executed"
    notebooks = [page for page in pages if page.suffix == ".ipynb"]
    try:
        executed_pages(source, executed, notebooks, parameters=parameters, jobs=jobs)
    except PageError:
        shutil.rmtree(html, ignore_errors=True)  # it shows what the pages no longer give
        raise
    if only:
        write_bytes(toc, _short_toc(pages).encode())
    sources = _sources(source, pages)
    every = text_digest(  # of what every page depends on
        code_digest(libraries=LIBRARIES),
        json.dumps(parameters, sort_keys=True, default=str),
        toc.read_bytes(),
        files_digest(source, (path for path in sources if path.suffix not in (".ipynb", ".md"))),
    )
    state = text_digest(
        every,
        files_digest(source, sources),
        files_digest(executed, executed.rglob("*.ipynb")),
    )
    first, typeset = html / pages[0].with_suffix(".html"), html / TYPESET
    before = typeset.read_text().split() if first.is_file() and typeset.is_file() else ["", ""]
    if before[0] != state:
        fresh = before[1:] != [every]
        if fresh:
            shutil.rmtree(html, ignore_errors=True)
        earlier = {page: page.stat().st_mtime_ns for page in html.rglob("*.html")}
        _typeset(source, toc, output, parameters, strict=not only, fresh=fresh)
        written = [
            page
            for page in sorted(html.rglob("*.html"))
            if page.stat().st_mtime_ns != earlier.get(page)
        ]
        attach_files(html, written)
        _check(html, written)
        typeset.write_text(f"{state} {every}")
    return first


def make_lessons(source: Path, *, jobs: int | None = None) -> list[Path]:
    """Execute the pages that train models, and write their outputs into their notebooks.

    Parameters
    ----------
    source
        Folder of the book.
    jobs
        Pages executed at once; by default one more than the processors.

    Returns
    -------
    list of Path
        The notebooks written.

    Raises
    ------
    PageError
        When a page fails, for example because torch is not installed. It stays as it was.
    """
    source = source.resolve()
    notebooks = [page for page in _read_toc(source) if page.suffix == ".ipynb"]
    lessons = [p for p in notebooks if trains(nbformat.read(source / p, as_version=4))]
    written = []
    for page, executed in execute_pages(source, {page: {} for page in lessons}, jobs=jobs):
        write_bytes(source / page, with_outputs(source / page, executed).encode())
        written.append(source / page)
    return written


def _check(html: Path, pages: list[Path]) -> None:
    for search, why in (
        (remote_resources, "these would be loaded from another host"),
        (raw_formulas, "these formulas are not typeset"),
    ):
        if lines := [f"{page.relative_to(html)}: {text}" for page, text in search(html, pages)]:
            raise PageError(f"{why}:\n" + "\n".join(lines))


def _read_toc(source: Path) -> list[Path]:
    """Read all pages, relative to `source`, the book's first page first."""
    for name in ("_config.yml", "_toc.yml"):
        if not (source / name).is_file():
            raise InputError(f"{source / name} is missing; a book needs it beside its pages")
    toc = parse_toc_yaml(source / "_toc.yml")
    pages = {document: _page(source, document) for document in toc}
    return list(dict.fromkeys([pages[toc.root.docname], *pages.values()]))


def _page(source: Path, document: str) -> Path:
    for suffix in ("", ".md", ".ipynb"):
        page = Path(document + suffix)
        if page.suffix in (".md", ".ipynb") and (source / page).is_file():
            return page
    raise InputError(
        f"{source / '_toc.yml'}: page {document!r} has neither an .md nor an .ipynb file"
    )


def _chosen(pages: list[Path], name: str) -> Path:
    """The page with a name such as ``paper-a/planner``, with or without folder and suffix."""
    wanted = Path(name).with_suffix("").as_posix().removeprefix("book/")
    known = {page.with_suffix("").as_posix().removeprefix("book/"): page for page in pages}
    if wanted not in known:
        raise InputError(f"--only {name}: no such page; {remedy(wanted, known)}")
    return known[wanted]


def _short_toc(pages: list[Path]) -> str:
    first, *others = (page.with_suffix("").as_posix() for page in pages)
    chapters = {"chapters": [{"file": name} for name in others]} if others else {}
    return yaml.safe_dump({"format": "jb-book", "root": first, **chapters})


def _sources(source: Path, pages: list[Path]) -> set[Path]:
    """All that Sphinx reads in the book's folder."""
    folders = {page.parts[0] for page in pages}
    beside = {path for folder in folders for path in (source / folder).rglob("*")}
    return {source / "_config.yml", *(source / page for page in pages)} | beside


def _typeset(
    source: Path,
    toc: Path,
    output: Path,
    parameters: Mapping[str, Any],
    *,
    strict: bool,
    fresh: bool,
) -> None:
    """Run jupyter-book over executed pages: all of them where `fresh`, else those that changed.

    Where `strict`, a warning is an error.
    """
    print("typesetting the book ...", file=sys.stderr, flush=True)
    # Docutils keeps many objects that never go: to look through them often takes a quarter of it.
    begin = "import gc; gc.set_threshold(100_000); from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", begin, "build", str(source), "--toc", str(toc)]
    command += ["--path-output", str(output), "--quiet", *["--all"] * fresh]
    command += ["--warningiserror", "--keep-going"] * strict
    environment = {**os.environ, PARAMETERS: json.dumps(parameters)}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment
    )
    if done.returncode:
        raise PageError(f"jupyter-book failed\n{without_colours(done.stdout + done.stderr)}")
