"""Stored outputs of pages that train models, for a book that is built without torch.

Such a page has ``"train": true`` in its notebook's metadata. It is executed where the train tier is
installed. Elsewhere its code cells show the outputs of ``data/<folder>/<page>.json``, under a line
that names their commit and date. A hash of the code cells ties the outputs to the page.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat

from mnmt_repro.atomic import write_bytes
from mnmt_repro.errors import InputError
from mnmt_repro.repository import git

NEEDED = ("torch", "safetensors", "sentencepiece")
REDUNDANT = ("image/png", "image/svg+xml")
"""Other forms of a chart whose HTML is stored; without them a file has half the size."""


def can_train() -> bool:
    """Whether this environment can train models."""
    return all(find_spec(name) is not None for name in NEEDED)


def trains(notebook: Path) -> bool:
    """Whether a page declares that its cells train models."""
    return bool(nbformat.read(notebook, as_version=4).metadata.get("train", False))


def code_hash(page: nbformat.NotebookNode) -> str:
    """Hash of a page's code cells in order; its prose may change without a new execution."""
    cells = [cell.source for cell in page.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def stored_path(source: Path, page: Path) -> Path:
    """Where the outputs of a page are stored: book/learn/a.ipynb has data/learn/a.json."""
    return source / "data" / page.relative_to(page.parts[0]).with_suffix(".json")


def store_outputs(source: Path, page: Path, executed: Path, commit: str) -> Path:
    """Store the outputs of an executed page.

    Parameters
    ----------
    source
        The book's folder, a git checkout.
    page
        The page, relative to `source`.
    executed
        The same page with its outputs, executed with its own parameters.
    commit
        Of the code that was executed.
    """
    cells = [
        cell
        for cell in nbformat.read(executed, as_version=4).cells
        if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    content = {
        "code": code_hash(nbformat.read(source / page, as_version=4)),
        "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "outputs": [[_compact(output) for output in cell.outputs] for cell in cells],
    }
    path = stored_path(source, page)
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.encode())
    return path


def with_stored_outputs(source: Path, page: Path) -> nbformat.NotebookNode:
    """Return a page with its stored outputs, as if it had been executed.

    Raises
    ------
    InputError
        When there are none, or they belong to other code.
    """
    path = stored_path(source, page)
    remedy = "install torch (`make install`), or store them with `mnmt-repro book --store-outputs`"
    if not path.is_file():
        raise InputError(f"{page}: trains models and has no stored outputs; {remedy}")
    stored = json.loads(path.read_text(encoding="utf-8"))
    made = nbformat.read(source / page, as_version=4)
    if stored["code"] != code_hash(made):
        raise InputError(f"{page}: its code has changed since its outputs were stored; {remedy}")
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for number, (cell, outputs) in enumerate(zip(code, stored["outputs"], strict=True), 1):
        cell.outputs = [nbformat.from_dict(each) for each in outputs]
        cell.execution_count = number
    label = nbformat.v4.new_markdown_cell(
        f"*Outputs of commit `{stored['commit'][:10]}`, {stored['date']}. This book was built "
        "without torch, so the cells below were not executed again.*",
        id="stored",
    )
    made.cells.insert(1, label)  # under the title
    return made


def _compact(output: dict[str, Any]) -> dict[str, Any]:
    data = output.get("data", {})
    if "text/html" not in data:
        return output
    return {**output, "data": {kind: x for kind, x in data.items() if kind not in REDUNDANT}}


def clean_commit(source: Path, pages: Sequence[Path]) -> str:
    """Commit of the package and of `pages`.

    Raises
    ------
    InputError
        When a file differs from the last commit: a reader must be able to find the code of an
        output.
    """
    try:
        changed = git(source, "status", "--porcelain", "--", "mnmt_repro", *map(str, pages))
        commit = git(source, "rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(f"{source}: outputs are stored from a git checkout only") from error
    if changed:
        raise InputError(f"commit the pages and the package first; these differ:\n{changed}")
    return commit
