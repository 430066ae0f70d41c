"""Code lines of library, companion, tests, scripts and cells of the book, and their caps.

Docstrings, comments and blank lines do not count. Run in the project's root; `--rooms` prints every
room.
"""

from __future__ import annotations

import ast
import collections
import io
import json
import sys
import tokenize
from pathlib import Path

CAPS = {"library": 13_000, "companion": 9_000, "tests": 15_000, "JavaScript": 320, "cells": 3_200}
_SKIP = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines of Python that hold code."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            docs |= set(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SKIP:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - docs)


def cell_lines(page: Path) -> int:
    """Code lines in the cells of a page."""
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    return sum(code_lines("".join(c["source"])) for c in cells if c["cell_type"] == "code")


def main() -> None:
    rooms: collections.Counter[str] = collections.Counter()
    for path in Path("mnmt_repro").rglob("*.py"):
        room = "/".join(path.parts[1:3]) if path.parts[1] == "papers" else path.parts[1]
        rooms[room] += code_lines(path.read_text(encoding="utf-8"))
    companion = sum(count for room, count in rooms.items() if room.startswith("papers"))
    tests = [path.read_text(encoding="utf-8") for path in Path("tests").rglob("*.py")]
    counts = {
        "library": sum(rooms.values()) - companion,
        "companion": companion,
        "tests": sum(map(code_lines, tests)),
        "JavaScript": sum(
            sum(bool(line.strip()) for line in p.read_text(encoding="utf-8").splitlines())
            for p in Path("mnmt_repro").rglob("*.js")
        ),
        "cells": sum(map(cell_lines, Path("book").rglob("*.ipynb"))),
    }
    if "--rooms" in sys.argv:
        for room, count in rooms.most_common():
            print(f"{count:7,}  {room}")
    for name, count in counts.items():
        print(f"{count:7,} of {CAPS[name]:6,}  {name}")


if __name__ == "__main__":
    main()
