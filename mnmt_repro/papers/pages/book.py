"""Build the book: execute its pages, typeset them, check that nothing comes from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml
from sphinx_external_toc.parsing import parse_toc_yaml

from mnmt_repro.disk_cache import PACKAGE, code_digest, files_digest, text_digest
from mnmt_repro.errors import InputError, remedy
from mnmt_repro.papers.pages.attachments import attach_files, restore_sources
from mnmt_repro.papers.pages.executed import executed_pages, run_pages
from mnmt_repro.papers.pages.notebooks import (
    PageError,
    PageRun,
    declared_parameters,
    match_parameters,
    without_colours,
)
from mnmt_repro.papers.pages.resources import raw_formulas, remote_resources
from mnmt_repro.papers.pages.stored import can_train, clean_commit, store_outputs, trains
from mnmt_repro.repository import ROOT
from mnmt_repro.results import results_root

_IGNORED = re.compile(r"(^|/)(\.|__pycache__/|_build/)")
EXTENSION = "mnmt_repro.papers.pages.executed"
"""Executes pages for plain ``jupyter-book build .``."""


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
        Folder in which `_build/executed`, `_build/pages` (what is typeset) and `_build/html` (the
        book) are made; default `source`. The same meaning as `jupyter-book build --path-output`.
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
    source = source.resolve()
    output = (output or source).resolve()
    config, root, pages = _read_book(source)
    executed = output / "_build" / "executed"
    if only:
        pages = list(dict.fromkeys(_chosen(pages, name) for name in only))
        root, output = pages[0], output / "_build" / "only"
    notebooks = [page for page in pages if page.suffix == ".ipynb"]
    match_parameters({str(p): declared_parameters(source / p) for p in notebooks}, parameters or {})
    copied, html = output / "_build" / "pages", output / "_build" / "html"
    files = _sources(source, pages, config, alone=bool(only))
    _write(copied, files)
    try:
        shown = executed_pages(
            source, executed, notebooks, parameters=parameters or {}, jobs=jobs, folder=copied
        )
    except PageError:
        shutil.rmtree(html, ignore_errors=True)  # it shows what the pages no longer give
        raise
    files |= {page: text.encode() for page, text in shown.items()}
    _write(copied, files)
    for path in copied.rglob("*"):
        if path.is_file() and path.relative_to(copied) not in files:
            path.unlink()
    state = text_digest(code_digest(), files_digest(copied, copied.rglob("*")))
    marker = output / "_build" / "typeset"
    first = html / root.with_suffix(".html")
    if not (first.is_file() and marker.is_file() and marker.read_text() == state):
        marker.unlink(missing_ok=True)
        shutil.rmtree(html, ignore_errors=True)
        _typeset(copied, output, strict=not only)
        attach_files(html)
        restore_sources(source, html)
        _check(html)
        marker.write_text(state)
    return first


def watch_book(source: Path, build: Callable[[], object]) -> NoReturn:
    """Call `build` now, and again whenever a page, the package or the data have changed."""
    rooms = {source / page.parts[0] for page in _read_book(source)[2] if len(page.parts) > 1}
    folders = {PACKAGE, ROOT / "data", results_root(), *rooms}
    last: dict[Path, int] = {}
    while True:
        files = {source / "_config.yml", source / "_toc.yml"}
        files |= {path for folder in folders for path in folder.rglob("*")}
        times = {p: p.stat().st_mtime_ns for p in files if p.is_file() and p.suffix != ".pyc"}
        if times != last:
            last = times
            build()
            print("watching for changes; stop with Ctrl-C", file=sys.stderr, flush=True)
        time.sleep(1)


def _check(html: Path) -> None:
    for search, why in (
        (remote_resources, "these would be loaded from another host"),
        (raw_formulas, "these formulas are not typeset"),
    ):
        if lines := [f"{page.relative_to(html)}: {text}" for page, text in search(html)]:
            raise PageError(f"{why}:\n" + "\n".join(lines))


def store_lessons(source: Path, *, jobs: int | None = None) -> list[Path]:
    """Execute the pages that train models, and store their outputs.

    `build_book` shows these outputs where torch is not installed.

    Parameters
    ----------
    source
        Folder of the book, a git checkout.
    jobs
        Pages executed at once; by default one more than the processors.

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
        run_pages(runs, jobs)
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


def _chosen(pages: list[Path], name: str) -> Path:
    """The page with a name such as ``paper-a/planner``, with or without folder and suffix."""
    wanted = Path(name).with_suffix("").as_posix().removeprefix("book/")
    known = {page.with_suffix("").as_posix().removeprefix("book/"): page for page in pages}
    if wanted not in known:
        raise InputError(f"--only {name}: no such page; {remedy(wanted, known)}")
    return known[wanted]


def _sources(
    source: Path, pages: list[Path], config: dict[str, Any], *, alone: bool
) -> dict[Path, bytes]:
    """All that Sphinx reads but the notebooks; the configuration leaves execution to papermill."""
    folders = {page.parts[0] for page in pages if len(page.parts) > 1}
    files = [path for folder in folders for path in (source / folder).rglob("*")]
    names = [path.relative_to(source) for path in files if path.is_file()]
    kept = [name for name in names if not _IGNORED.search(name.as_posix())]
    text = [name for name in (*kept, *pages) if name.suffix != ".ipynb"]
    found = {name: (source / name).read_bytes() for name in text}
    sphinx = config.get("sphinx", {})
    extensions = [name for name in sphinx.get("extra_extensions", ()) if name != EXTENSION]
    execute = {**config.get("execute", {}), "execute_notebooks": "off"}
    config = {**config, "execute": execute, "sphinx": {**sphinx, "extra_extensions": extensions}}
    found[Path("_config.yml")] = yaml.safe_dump(config, allow_unicode=True).encode()
    toc = (source / "_toc.yml").read_text(encoding="utf-8")
    if alone:
        first, *others = (page.with_suffix("").as_posix() for page in pages)
        chapters = {"chapters": [{"file": name} for name in others]} if others else {}
        toc = yaml.safe_dump({"format": "jb-book", "root": first, **chapters})
    found[Path("_toc.yml")] = toc.encode()
    return found


def _write(folder: Path, files: Mapping[Path, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _typeset(pages: Path, output: Path, *, strict: bool) -> None:
    """Run jupyter-book over executed pages; where `strict`, a warning is an error."""
    print("typesetting the book ...", file=sys.stderr, flush=True)
    # Docutils keeps many objects that never go: to look through them often takes a quarter of it.
    begin = "import gc; gc.set_threshold(100_000); from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", begin]
    command += ["build", str(pages), "--path-output", str(output), "--all", "--quiet"]
    command += ["--warningiserror", "--keep-going"] * strict
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise PageError(f"jupyter-book failed\n{without_colours(done.stdout + done.stderr)}")
