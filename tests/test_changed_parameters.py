"""Every page with numbers runs with a parameter other than its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from test_own_pages import PAGES as OWN_STORE

from mnmt_repro.papers.pages import declared_parameters, execute_pages
from mnmt_repro.papers.pages.lessons import trains

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "book"
CHANGED: dict[str, dict[str, Any]] = {
    "methods/corpora": {"generated": ["conlang-sim1"]},
    "methods/derivations": {"doubling_cohorts": ["conlang-sim0"]},
    "methods/runs": {"early": "webtech-en-defr"},
    "paper-a/effective-fraction-panels": {"weight": 0.1},
    "paper-a/planner": {"cohort": "conlang-sim0", "tier": "mini"},  # refused
    "paper-a/translation-quality": {"metric": "bleu"},
    "paper-b/ablations": {"test_set": "indomain-3words"},
    "paper-b/recipe": {"tier": "mini"},
    "paper-b/upgrade-against-scratch": {"cohort": "software25-full"},
}
ONE_TIER = {"paper-a/three-pairs", "paper-b/forgetting"}  # whose only parameter is the tier


def pages() -> dict[str, dict[str, Any]]:
    """Pages with parameters, and these."""
    declared = {
        path.relative_to(PAGES).with_suffix("").as_posix(): declared_parameters(path)
        for path in sorted(PAGES.rglob("*.ipynb"))
        if path.parent.name != "learn" and not trains(nbformat.read(path, as_version=4))
    }
    return {name: values for name, values in declared.items() if values}


def test_every_page_with_parameters_has_a_changed_one() -> None:
    known = pages()
    assert set(CHANGED) | ONE_TIER | set(OWN_STORE) == set(known)
    for name, changed in CHANGED.items():
        for parameter, value in changed.items():
            assert parameter in known[name] and value != known[name][parameter], name
            assert isinstance(value, type(known[name][parameter])), name
    for name in ONE_TIER:
        assert set(known[name]) == {"tier"}


def test_pages_run_with_a_changed_parameter() -> None:
    pages = {Path(f"{name}.ipynb"): values for name, values in CHANGED.items()}
    assert {page for page, _ in execute_pages(PAGES, pages)} == set(pages)
