"""Which rooms may import which: a library, and below it the companion of the two papers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import mnmt_repro

PACKAGE = Path(mnmt_repro.__file__).parent
PAPERS = PACKAGE / "papers"
ROOMS = ("cohorts", "effects", "claims", "charts", "pages", "commands")
"""Of the companion, in the order in which they may import: numbers before verdicts and charts."""
ABOVE = ("__main__.py", "declared.py")
"""Files that may import both: the command line, and where cohorts are asked for."""
LIBRARY = sorted(
    str(path.relative_to(PACKAGE))
    for path in PACKAGE.rglob("*.py")
    if PAPERS not in path.parents and path.name not in ABOVE
)


def imported(path: Path) -> set[str]:
    """Names of packages that a file imports, at its top or within a function."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names += [each.name for each in node.names]
    return {part for name in names if name.startswith("mnmt_repro.") for part in name.split(".")}


@pytest.mark.parametrize("path", LIBRARY)
def test_the_library_never_names_the_companion(path: str) -> None:
    """No import at the top or within a function, and none in a string."""
    assert not re.search(
        r"\bmnmt_repro(\.|/| import )papers\b", (PACKAGE / path).read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_none_that_comes_after_it(room: str) -> None:
    late = set(ROOMS[ROOMS.index(room) + 1 :])
    files = list((PAPERS / room).rglob("*.py"))
    assert files
    assert [path for path in files if imported(path) & late] == []


def test_the_library_works_without_the_companion() -> None:
    """Each library module can be imported where no module of the companion can."""
    code = (
        "import importlib, sys\n"
        "sys.modules['mnmt_repro.papers'] = None\n"
        "for room in ('laws', 'results', 'runs.sweep', 'upgrading.recipe', 'interchange'):\n"
        "    importlib.import_module(f'mnmt_repro.{room}')\n"
        "from mnmt_repro import results\n"
        "from mnmt_repro.cli import main\n"
        "assert set(results.load()['cohort']) == {''}\n"
        "sys.exit(main(['sweep']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 2, run.stderr
    assert run.stderr == "mnmt-repro: this installation has no cohorts\n"


def test_no_class_has_the_name_of_another() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body for path in paths]
    names = [each.name for body in bodies for each in body if isinstance(each, ast.ClassDef)]
    public = Counter(name for name in names if not name.startswith("_"))
    assert public["TrainingConfig"] == 1
    assert [name for name, count in public.items() if count > 1] == []
