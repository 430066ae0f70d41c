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
COMPANION = ("cohorts", "analysis", "claims", "figures", "publishing", "companion")
"""In the order in which they may import: numbers before verdicts, both before charts."""
ABOVE = ("__main__.py", "declared.py")
"""Files that may import both: the command line, and where cohorts are asked for."""
NAMED = re.compile(rf"\bmnmt_repro(?:\.|/| import )({'|'.join(COMPANION)})\b")
LIBRARY = sorted(
    str(path.relative_to(PACKAGE))
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in (*COMPANION, *ABOVE)
)


def imported(path: Path) -> set[str]:
    """Rooms that a file imports from, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("mnmt_repro.")}
    return found


def test_every_room_of_the_companion_is_there() -> None:
    assert all((PACKAGE / room / "__init__.py").exists() for room in COMPANION)
    assert {"laws", "runs", "results", "cli"} <= {path.split("/")[0] for path in LIBRARY}


@pytest.mark.parametrize("path", LIBRARY)
def test_the_library_never_imports_the_companion(path: str) -> None:
    assert not imported(PACKAGE / path) & set(COMPANION)
    assert not NAMED.findall((PACKAGE / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("room", COMPANION[:-1])
def test_a_room_imports_none_that_comes_after_it(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    assert files
    late = set(COMPANION[COMPANION.index(room) + 1 :])
    found = {path.name: sorted(rooms) for path in files if (rooms := imported(path) & late)}
    assert not found


def test_the_library_works_without_the_companion() -> None:
    """Each library module can be imported where no module of the companion can."""
    code = (
        "import importlib, sys\n"
        f"for room in {COMPANION!r}: sys.modules[f'mnmt_repro.{{room}}'] = None\n"
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
