"""The lessons of the book, and the stored outputs that stand in where torch is missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from small_book import ROOT, notebook, write_source

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.lessons import SLIDERS
from mnmt_repro.papers.pages import PageError, book, build_book, executed, store_lessons
from mnmt_repro.papers.pages.notebooks import PageRun, execute_pages
from mnmt_repro.papers.pages.stored import code_hash, stored_path, trains

LESSONS = sorted((ROOT / "book" / "learn").glob("*.ipynb"))
TRAINING = [page for page in LESSONS if trains(page)]
TINY = {  # of the pages that train: enough to run every cell
    "first-model": {"tokens": 8_000},
    "own-law": {"tokens": 4_000, "widths": [4, 6, 8]},
    "upgrade": {"tokens": 8_000},
}
MOST_BYTES = 300_000
MOST_LINES = 30  # from the grid to the fit


def code_cells(page: Path) -> list[nbformat.NotebookNode]:
    return [c for c in nbformat.read(page, as_version=4).cells if c.cell_type == "code"]


def outputs(page: Path) -> str:
    return json.dumps([output for cell in code_cells(page) for output in cell.outputs])


def test_four_lessons_show_all_their_code_but_that_of_the_sliders() -> None:
    assert len(LESSONS) == 4 and {page.stem for page in TRAINING} == set(TINY)
    for page in LESSONS:
        tags = [tag for cell in code_cells(page) for tag in cell.metadata.get("tags", [])]
        sliders = page.stem == "scaling-law"  # which a reader is to see before any code
        assert tags == ["parameters"] + ["hide-input"] * sliders, page


def test_every_lesson_has_exercises_with_folded_solutions() -> None:
    for page in LESSONS:
        cells = nbformat.read(page, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert 2 <= text.count("```{exercise}") <= 3
        assert text.count("```{exercise}") == text.count("```{solution}")
        assert text.count(":class: dropdown") == text.count("```{solution}")
        assert "glossary.md" in text, page


def test_a_grid_is_declared_and_fitted_in_thirty_lines() -> None:
    (page,) = [page for page in LESSONS if page.stem == "own-law"]
    (cell,) = [cell for cell in code_cells(page) if "fit_joint_law(" in cell.source]
    assert len([line for line in cell.source.splitlines() if line.strip()]) <= MOST_LINES


def test_the_lessons_run(tmp_path: Path) -> None:
    runs = [
        PageRun(
            source=page,
            output=tmp_path / page.name,
            name=page.stem,
            parameters=TINY.get(page.stem, {}),
        )
        for page in LESSONS
    ]
    assert {run.name: run.error for run in execute_pages(runs)} == dict.fromkeys(
        [page.stem for page in LESSONS], ""
    )
    shown = outputs(tmp_path / "scaling-law.ipynb")
    for name, (label, *_) in SLIDERS.items():
        assert f'\\"name\\":\\"{name}\\"' in shown.replace("\\\\", "\\"), label
    assert shown.count("range") >= len(SLIDERS)


@pytest.mark.parametrize("page", TRAINING, ids=lambda page: page.stem)
def test_stored_outputs_belong_to_the_page(page: Path) -> None:
    path = stored_path(ROOT, page.relative_to(ROOT))
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["code"] == code_hash(nbformat.read(page, as_version=4)), (
        f"{page.name} has changed: commit it, then run `mnmt-repro book --store-outputs`"
    )
    assert path.stat().st_size < MOST_BYTES
    assert [len(each) > 0 for each in stored["outputs"]].count(True) >= 2
    assert "error" not in {o["output_type"] for each in stored["outputs"] for o in each}


# A book built with and without torch


def trained_page() -> nbformat.NotebookNode:
    page = notebook("print('made', 6 * 7, 'times', factor)", parameters="factor = 3")
    page.metadata["train"] = True
    return page


@pytest.fixture
def lesson_book(tmp_path: Path) -> Path:
    """A committed book of a page that trains and one that does not."""
    source = write_source(tmp_path / "s", first="# First\n", lesson=trained_page())
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    commit(source)
    return source


def commit(source: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["add", "book"], [*who, "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(source), *command], check=True)


def text_of(first_page: Path) -> str:
    return first_page.with_name("lesson.html").read_text(encoding="utf-8")


def torch_is_there(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    for module in (book, executed):
        monkeypatch.setattr(module, "can_train", lambda: there)


def test_without_torch_a_page_shows_labelled_stored_outputs(
    lesson_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = store_lessons(lesson_book)
    assert path == lesson_book / "data" / "lesson.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["outputs"][1][0]["text"] = "made long ago\n"  # so that an execution would be seen
    path.write_text(json.dumps(stored), encoding="utf-8")

    torch_is_there(monkeypatch, False)
    text = text_of(build_book(lesson_book))
    assert "made long ago" in text and "made 42" not in text
    assert stored["commit"][:10] in text and stored["date"] in text

    with pytest.raises(InputError, match="other values of factor need torch"):
        build_book(lesson_book, parameters={"factor": 4})

    torch_is_there(monkeypatch, True)
    text = text_of(build_book(lesson_book, parameters={"factor": 4}))
    assert "made 42 times 4" in text and stored["commit"][:10] not in text


def test_outputs_of_other_code_are_refused(
    lesson_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_is_there(monkeypatch, False)
    with pytest.raises(InputError, match="lesson.ipynb: trains models and has no stored outputs"):
        build_book(lesson_book)
    with pytest.raises(InputError, match="storing outputs needs torch"):
        store_lessons(lesson_book)
    torch_is_there(monkeypatch, True)
    store_lessons(lesson_book)

    page = lesson_book / "book" / "lesson.ipynb"
    changed = nbformat.read(page, as_version=4)
    changed.cells[0].source += "\n\nMore prose."
    changed.cells[-1].source += "\nprint('more')"
    nbformat.write(changed, page)
    with pytest.raises(InputError, match="commit the pages and the package first"):
        store_lessons(lesson_book)
    torch_is_there(monkeypatch, False)
    with pytest.raises(InputError, match="its code has changed since its outputs were stored"):
        build_book(lesson_book)


def test_a_lesson_that_fails_stores_nothing(lesson_book: Path) -> None:
    page = lesson_book / "book" / "lesson.ipynb"
    broken = nbformat.read(page, as_version=4)
    broken.cells[-1].source = "1 / 0"
    nbformat.write(broken, page)
    commit(lesson_book)
    with pytest.raises(PageError, match="ZeroDivisionError"):
        store_lessons(lesson_book)
    assert not (lesson_book / "data").exists()
