"""A book of three pages, for the tests of the publishing room and of the browser."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from mnmt_repro.papers.pages import build_book

ROOT = Path(__file__).resolve().parents[1]

CHART = """
import altair
import pandas as pd
from IPython.display import display

from mnmt_repro.papers.charts.badge import Badge
from mnmt_repro.papers.charts.display import show, show_table

frame = pd.DataFrame({"n": [1, 10, 100] * 2, "p": [0.5] * 3 + [1.0] * 3})
frame["loss"] = [scale * value for value in (4, 3, 2, 3, 2, 1)]
chart = (
    altair.Chart(frame)
    .mark_line(point=True)
    .encode(x=altair.X("n", scale=altair.Scale(type="log")), y="loss", color="p:O")
)
display(Badge(verdict="reproduced", text="A2", title="R² 0.999, rule: at least 0.99"))
show(
    chart,
    name="law",
    alt='The loss falls with "size" & weight <p>.',
    data=frame,
    provenance="Made up.",
    caption="Ends no script: </script>.",
)
"""
TABLE = """
show_table(
    pd.DataFrame(
        {
            "pair": ["b", "a", "c"],
            "tokens": [20, 1000, 3],
            "gap": [0.5, None, -1.0],
            "marked": ["+0.0", "-0.8(*)", "-10.0*"],
        }
    ),
    name="rows",
    provenance="Made up.",
)
"""


def notebook(
    *cells: str, parameters: str | None = None, markdown: str = "# A page"
) -> nbformat.NotebookNode:
    """Make a notebook of code cells, after a heading and a cell tagged `parameters`."""
    made = [new_markdown_cell(markdown)]
    if parameters is not None:
        made.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    made += [new_code_cell(cell.strip()) for cell in cells]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=made, metadata={"kernelspec": kernel})


def write_source(folder: Path, **pages: nbformat.NotebookNode | str) -> Path:
    """Write a book's sources: the repository's configuration, and `pages` in their order."""
    (folder / "book" / "images").mkdir(parents=True)
    for name in ("_config.yml", "book/references.bib", "book/images/logo.svg"):
        shutil.copyfile(ROOT / name, folder / name)
    first, *rest = pages
    chapters = "".join(f"  - file: book/{name}\n" for name in rest)
    toc = f"format: jb-book\nroot: book/{first}\n" + ("chapters:\n" + chapters) * bool(rest)
    (folder / "_toc.yml").write_text(toc, encoding="utf-8")
    for name, page in pages.items():
        if isinstance(page, str):
            (folder / "book" / f"{name}.md").write_text(page, encoding="utf-8")
        else:
            nbformat.write(page, folder / "book" / f"{name}.ipynb")
    return folder


@cache
def build(folder: Path) -> Path:
    """Build the small book once a test session; return its first page."""
    source = write_source(
        folder,
        first="# First\n\nThe law $L = \\beta N^{-\\alpha}$, see [the chart](chart.ipynb).\n"
        "\n```{glossary}\nseed\n  It starts the random generator.\n```\n",
        chart=notebook(
            CHART,
            TABLE,
            parameters="scale = 1.0  # of the loss\nseed: int = 1",
            markdown="# A chart\n\n$$\n\\frac{a}{b} = \\mathcal{L}\n$$\n\nAlso $p$ and $f(p)$."
            "\n\n<!-- book\n**Only here.**\n-->\n\nOf one [seed](first.md#term-seed).",
        ),
        system=notebook(
            "import sys\n\nprint('prefix:', sys.prefix)",
            "from IPython.display import Markdown\n\nMarkdown('$$ \\\\beta $$ and $p$')",
            markdown="# The system",
        ),
    )
    return build_book(source, jobs=2, parameters={"scale": 2})
