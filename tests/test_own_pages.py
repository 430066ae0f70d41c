"""Results pages draw a user's own store, which one parameter names."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of
from test_results import content

from mnmt_repro import results
from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims import read_stored
from mnmt_repro.papers.claims.report import headlines
from mnmt_repro.papers.commands.book import _parameter
from mnmt_repro.papers.effects.grids import choose
from mnmt_repro.papers.pages import execute_pages

BOOK = Path(__file__).resolve().parents[1] / "book"
PAGES = ("paper-a/scaling-laws", "paper-a/effective-parameters", "paper-a/uncertainty")
PAIRS = ("eng-xho", "eng-zul")
_CSV = re.compile(r'href="data:text/csv;charset=utf-8;base64,([^"]*)"')


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid of own text: five weights of the first pair, five sizes, losses by one law."""
    root = tmp_path_factory.mktemp("own") / "results"
    for p in (0.0, 0.1, 0.5, 0.9, 1.0):
        for n in SIZES[::2] + SIZES[-1:]:
            mixture = {pair: w for pair, w in zip(PAIRS, (p, 1 - p), strict=True) if w > 0}
            made = content(f"own-{p}-{n}", tier="own", corpus="own", config={"p": p, "n": n})
            made["run"] |= {"mixture": mixture, "n_non_embedding": n, "n_total": n + 9_000}
            made["rows"] = [
                made["rows"][0] | {"pair": pair, "p": w, "cross_entropy": loss_of(w, n)}
                for pair, w in mixture.items()
            ]
            results.write_run(made["run"], made["rows"], [], root=root)
    return root


def test_a_page_reads_the_declared_grid_or_what_an_own_store_holds(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(tmp_path))
    assert choose("", "webtech-en-dezh", "mini") == ("webtech-en-dezh", "mini")
    assert choose(str(store), "webtech-en-dezh", "mini") == ("", "own")
    assert results.results_root() == store
    with pytest.raises(InputError, match="no results are stored here"):
        choose(str(tmp_path), "webtech-en-dezh", "mini")
    with pytest.raises(InputError, match="nowhere: no such folder"):
        choose("nowhere", "webtech-en-dezh", "mini")


def test_three_pages_draw_an_own_store(store: Path) -> None:
    pages = {Path(f"{page}.ipynb"): {"store": str(store)} for page in PAGES}
    for page, executed in execute_pages(BOOK, pages, jobs=2):
        outputs = [each for cell in executed.cells for each in cell.get("outputs", [])]
        said = "".join("".join(each.get("data", {}).get("text/markdown", "")) for each in outputs)
        published = [base64.b64decode(each).decode() for each in _CSV.findall(said)]
        assert "not of those drawn here" in said and "tier own · corpus own" in said
        assert not re.search(r"\bnan\b", re.sub(r"base64,[^\"]*|<script.*?</script>", "", said))
        assert any("eng-xho" in each or "English→Xhosa" in each for each in published), page


def test_a_store_is_named_from_where_the_command_runs(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    assert _parameter(f"store={store.name}") == ("store", str(store))


EXECUTED = BOOK.parent / "_build" / "executed" / "book"
MAIN_CLAIM = re.compile(r"\bthree_lines\(\s*\w+,\s*\"([AB]\d+)\"")
RESULTS = {
    page: claims[0]
    for page in sorted(BOOK.glob("paper-?/*.ipynb"))
    if (claims := MAIN_CLAIM.findall(page.read_text("utf-8").replace('\\"', '"')))
}


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_visible_cells_print_the_number_of_the_pages_verdict(page: Path) -> None:
    """The method that a reader sees is the one that is judged."""
    executed = EXECUTED / page.relative_to(BOOK)
    if not executed.is_file():
        pytest.skip("the book is not built: make book")
    row = headlines(read_stored(BOOK.parent)).loc[RESULTS[page]]
    if pd.isna(row["low"]):
        pytest.skip(f"{RESULTS[page]} has no interval yet")
    cells = nbformat.read(executed, as_version=4).cells
    shown = [cell for cell in cells if "hide-input" not in cell.metadata.get("tags", ())]
    printed = "".join(
        output.get("text", "") for cell in shown for output in cell.get("outputs", [])
    )
    value = row["value"]
    forms = (value, 100 * value, np.exp(value), 100 * np.expm1(value))  # shares and logs
    for number in re.findall(r"-?\d+\.?\d*", printed.replace(",", "").replace("−", "-")):
        decimals = len(number.partition(".")[2])
        if len(number.strip("-0.").replace(".", "")) >= 2 and any(
            f"{form:.{decimals}f}" == number for form in forms
        ):
            return
    raise AssertionError(f"no visible cell of {page.name} prints {value:.4g} ({RESULTS[page]})")
