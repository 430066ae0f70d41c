"""Which rooms may import which: numbers come before verdicts, and both before charts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mnmt_repro

PACKAGE = Path(mnmt_repro.__file__).parent
FORBIDDEN = {
    "analysis": {"claims", "figures", "publishing", "cli"},
    "claims": {"figures", "publishing", "cli"},
    "figures": {"publishing", "cli"},
}


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


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_none_that_comes_after_it(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    assert files
    late = {
        path.name: sorted(rooms) for path in files if (rooms := imported(path) & FORBIDDEN[room])
    }
    assert not late
