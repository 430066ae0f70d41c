"""The pages that train models: they run, and stand in the repository with their outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from small_book import ROOT, notebook, write_source

from mnmt_repro.papers.pages import PageError, execute_pages, make_lessons
from mnmt_repro.papers.pages.executed import executed_pages
from mnmt_repro.papers.pages.lessons import is_executed, trains

BOOK = ROOT / "book"
TRAINING = [p for p in sorted(BOOK.rglob("*.ipynb")) if trains(nbformat.read(p, as_version=4))]
TINY: dict[str, dict] = {  # enough to run every cell
    "first-model": {"tokens": 8_000},
    "own-law": {"tokens": 4_000, "widths": [4, 6, 8]},
    "upgrade": {"tokens": 8_000},
}


def test_the_lessons_run() -> None:
    pages = {Path("learn") / f"{name}.ipynb": values for name, values in TINY.items()}
    assert {page for page, _ in execute_pages(BOOK, pages)} == set(pages)
    assert set(TINY) == {path.stem for path in TRAINING if path.parent.name == "learn"}


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_a_lesson_holds_the_outputs_of_its_code(path: Path) -> None:
    page = nbformat.read(path, as_version=4)
    assert is_executed(page), f"{path.name} has changed: run `mnmt-repro book --lessons`"
    shown = [cell.outputs for cell in page.cells if cell.cell_type == "code"]
    text = json.dumps([shown, page.metadata])
    assert not re.search(r"(?<![\w.])/(home|root|tmp|usr|var|work|Users)/|\d{4}-\d\d-\d\dT", text)
    assert path.stat().st_size < 300_000


def lesson_book(folder: Path, cell: str) -> Path:
    page = notebook(cell, parameters="factor = 3")
    page.metadata["train"] = True
    return write_source(folder, first="# First\n", lesson=page)


def test_a_lesson_is_shown_as_it_stands_until_its_code_changes(tmp_path: Path) -> None:
    source = lesson_book(tmp_path / "s", "print('made', 6 * 7, 'times', factor)")
    (path,) = make_lessons(source)
    lesson = nbformat.read(path, as_version=4)
    assert lesson.cells[-1].outputs[0].text == "made 42 times 3\n"
    assert "papermill" not in path.read_text()

    def shown(**parameters: int) -> str:
        page = path.relative_to(source)
        pages = executed_pages(source, tmp_path / "executed", [page], parameters=parameters)
        return json.dumps(pages[page])

    lesson.cells[0].source += "\n\nMore prose."
    lesson.cells[-1].outputs[0].text = "made long ago\n"  # so that an execution would be seen
    nbformat.write(lesson, path)
    assert "made long ago" in shown()
    assert "made 42 times 4" in shown(factor=4)
    lesson.cells[-1].source += "\nimport torch_is_not_installed"
    nbformat.write(lesson, path)
    with pytest.raises(PageError, match="lesson.ipynb, cell 3: ModuleNotFoundError"):
        shown()


def test_a_lesson_that_fails_stays_as_it_was(tmp_path: Path) -> None:
    source = lesson_book(tmp_path / "s", "1 / 0")
    before = (source / "book" / "lesson.ipynb").read_bytes()
    with pytest.raises(PageError, match="lesson.ipynb, cell 3: ZeroDivisionError"):
        make_lessons(source)
    assert (source / "book" / "lesson.ipynb").read_bytes() == before
