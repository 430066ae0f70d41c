"""The lock of a run's folder: what it refuses, and that it touches no other file."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.runs.lock import run_lock


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    refused = pytest.raises(InputError, match=r"lock: cannot be locked \(No locks")
    with refused, run_lock(tmp_path):
        pass


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    for name in (".last.safetensors.0123abcd", "last.safetensors", ".bashrc.original"):
        (tmp_path / name).touch()
    with run_lock(tmp_path):
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {"lock", "last.safetensors", ".bashrc.original"}


def test_a_lock_that_is_a_link_empties_no_file(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("dear", encoding="utf-8")
    (tmp_path / "lock").symlink_to("target")
    with pytest.raises(InputError, match="lock: cannot be opened"), run_lock(tmp_path):
        pass
    assert (tmp_path / "target").read_text(encoding="utf-8") == "dear"
