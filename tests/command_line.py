"""How tests ask the command line for its mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mnmt_repro.__main__ import main


def fails(arguments: list[str], capsys: Any, *parts: str) -> None:
    """The command ends with 2 and one line that holds all `parts`, and writes nothing."""
    before = _files()
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("mnmt-repro: ") and shown.err.count("\n") == 1, shown.err
    for part in parts:
        assert part in shown.err
    assert shown.out == ""
    assert _files() == before


def _files() -> dict[Path, bytes]:
    """All but what is kept for speed, and what each holds.

    Only in a folder of the test: other tests write in the checkout meanwhile.
    """
    assert not Path("pyproject.toml").exists(), "change to a folder of the test first"
    found = (path for path in Path().rglob("*") if path.parts[0] != "cache")
    return {path: path.read_bytes() if path.is_file() else b"" for path in found}
