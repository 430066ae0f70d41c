"""Every page with numbers runs with a parameter other than its own.

To be cheap, the cells run in processes that have the libraries and the stored rows loaded, laws are
refitted to a few draws, and no PNG is made; `make book` executes the pages as they are.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from mnmt_repro import results
from mnmt_repro.laws import effective
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.papers.pages import declared_parameters
from mnmt_repro.papers.pages.stored import trains

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "book"
FEW = 24  # refits
CHANGED: dict[str, dict[str, Any]] = {
    "methods/corpora": {"generated": ["conlang-sim1"]},
    "methods/derivations": {"cohort": "webtech-en-defr"},
    "methods/runs": {"early": "webtech-en-defr"},
    "paper-a/effective-fraction-panels": {"weight": 0.1},
    "paper-a/effective-parameters": {"cohort": "webtech-en-defr", "tier": "mini"},
    "paper-a/papers-scale": {"cohort": "slimpajama-half"},
    "paper-a/planner": {"cohort": "conlang-sim0", "tier": "mini"},  # refused
    "paper-a/scaling-laws": {"cohort": "conlang-sim1", "tier": "mini"},
    "paper-a/translation-quality": {"metric": "bleu"},
    "paper-a/uncertainty": {"cohort": "webtech-en-defr", "tier": "mini"},
    "paper-b/ablations": {"test_set": "indomain-3words"},
    "paper-b/forgetting": {"model": "Mt25"},
    "paper-b/recipe": {"tier": "mini"},
    "paper-b/upgrade-against-scratch": {"cohort": "software25-full"},
}
ONE_TIER = {"paper-a/three-pairs"}  # whose only parameter is the tier, of which one is stored


def pages() -> dict[str, dict[str, Any]]:
    """Pages with parameters, and those."""
    found = {
        path.relative_to(PAGES).with_suffix("").as_posix(): declared_parameters(path)
        for path in sorted(PAGES.rglob("*.ipynb"))
        if path.parent.name not in (".ipynb_checkpoints", "learn")  # tests/test_learn.py runs these
        and not trains(path)  # the build runs these, where it can train
    }
    return {name: values for name, values in found.items() if values}


def test_every_page_with_parameters_has_a_changed_one() -> None:
    known = pages()
    assert set(CHANGED) | ONE_TIER == set(known)
    for name, changed in CHANGED.items():
        for parameter, value in changed.items():
            assert parameter in known[name] and value != known[name][parameter], name
            assert isinstance(value, type(known[name][parameter])), name
    for name in ONE_TIER:
        assert set(known[name]) == {"tier"}


def few(function: Callable[..., Any], draws: int) -> Callable[..., Any]:
    """A function of refits with at most so many draws, given by name or as its fifth argument."""

    @functools.wraps(function)
    def changed(*args: Any, **options: Any) -> Any:
        if "draws" in options:
            options["draws"] = min(options["draws"], draws)
        elif len(args) > 4:
            args = (*args[:4], min(args[4], draws), *args[5:])
        return function(*args, **options)

    return changed


def prepare() -> None:
    """Make the pages of this process cheap."""
    stored, load = results.load(), results.load

    def filtered(**wanted: Any) -> pd.DataFrame:
        if "root" in wanted:
            return load(**wanted)
        kept = stored
        for name, value in wanted.items():
            several = list(value) if isinstance(value, list | tuple | set) else [value]
            kept = kept[kept[name].isin(several)]
        return kept.reset_index(drop=True)

    results.load = filtered
    LawFit.draws = few(LawFit.draws, FEW)
    effective._direct_draws = few(effective._direct_draws, FEW)


def execute(name: str) -> str:
    """Run a page's cells with its changed parameter: the error, or nothing."""
    shell = InteractiveShell.instance()
    shell.reset(new_session=False)
    page = nbformat.read(PAGES / f"{name}.ipynb", as_version=4)
    for number, cell in enumerate(page.cells, 1):
        if cell.cell_type != "code":
            continue
        source = cell.source
        if "parameters" in cell.metadata.get("tags", []):
            source += "".join(f"\n{key} = {value!r}" for key, value in CHANGED[name].items())
        done = shell.run_cell(source)
        error = done.error_before_exec or done.error_in_exec
        if error is not None:
            return f"{name}, cell {number}: {type(error).__name__}: {error}"
    return ""


@pytest.fixture(scope="module")
def executed() -> Iterator[dict[str, str]]:
    """What `execute` returns for each page; two pages at once."""
    context = multiprocessing.get_context("spawn")  # a fork of drawn charts may hang
    with ProcessPoolExecutor(2, mp_context=context, initializer=prepare) as pool:
        yield dict(zip(CHANGED, pool.map(execute, CHANGED), strict=True))


@pytest.mark.parametrize("name", CHANGED)
def test_a_page_runs_with_a_changed_parameter(name: str, executed: dict[str, str]) -> None:
    assert executed[name] == ""
