"""Lessons: pages that train models, which stand in the repository with their outputs.

Such a page has ``"train": true`` in its notebook's metadata. ``mnmt-repro book --lessons`` executes
it and writes the outputs into it, so that a book is built without torch. The metadata keep a hash
of the code cells; where it differs, the page is executed like any other.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from mnmt_repro.disk_cache import text_digest


def trains(page: NotebookNode) -> bool:
    """Whether a page declares that its cells train models."""
    return bool(page.metadata.get("train", False))


def is_executed(page: NotebookNode) -> bool:
    """Whether a lesson holds the outputs of its code; its prose may have changed since."""
    return trains(page) and page.metadata.get("outputs_of") == _code_hash(page)


def with_outputs(source: Path, executed: NotebookNode) -> str:
    """Write a lesson with the outputs of its execution, and nothing else that papermill adds.

    Parameters
    ----------
    source
        The notebook of the lesson.
    executed
        The same page, executed with its own parameters.
    """
    lesson = nbformat.read(source, as_version=4)
    for number, (cell, made) in enumerate(zip(_code(lesson), _code(executed), strict=True), 1):
        cell.outputs = made.outputs
        cell.execution_count = number
    lesson.metadata["outputs_of"] = _code_hash(lesson)
    return nbformat.writes(lesson) + "\n"


def _code(page: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in page.cells if cell.cell_type == "code"]


def _code_hash(page: NotebookNode) -> str:
    return text_digest(*(cell.source for cell in _code(page)))[:16]
