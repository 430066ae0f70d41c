from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from mnmt_repro.atomic import locked, probe, write_bytes, write_new, write_with


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_mode_that_the_user_asks_for(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_bytes(tmp_path / "file", b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_file_that_a_library_puts_in_the_place_of_ours_has_that_mode_too(tmp_path: Path) -> None:
    def replace(file: BinaryIO) -> None:
        (tmp_path / "own").write_bytes(b"text")
        (tmp_path / "own").chmod(0o600)
        (tmp_path / "own").rename(file.name)

    write_with(tmp_path / "file", replace)
    write_bytes(tmp_path / "other", b"text")
    assert (tmp_path / "file").read_bytes() == b"text"
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file", b"old")

    def fail(file: object) -> None:
        file.write(b"ne")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        write_with(tmp_path / "file", fail)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_taken_name_is_left_alone(tmp_path: Path) -> None:
    assert write_new(tmp_path / "file", b"first")
    assert not write_new(tmp_path / "file", b"second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"first"}


def test_without_hard_links_a_file_is_still_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with ThreadPoolExecutor(8) as threads:
        contents = [b"%d" % i for i in range(8)]
        written = list(threads.map(lambda each: write_new(tmp_path / "file", each), contents))
    assert written.count(True) == 1
    first = contents[written.index(True)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": first}


def test_a_locked_file_loses_no_change(tmp_path: Path) -> None:
    path = tmp_path / "table"

    def add(line: int) -> None:
        with locked(path):
            before = path.read_text() if path.exists() else ""
            write_bytes(path, f"{before}{line}\n".encode())

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))
    assert sorted(map(int, path.read_text().split())) == list(range(40))
    assert [each.name for each in tmp_path.iterdir()] == ["table"]


def test_a_probe_leaves_nothing_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    for name in ("..probe.0123abcd.4567cdef", ".probe.0123abcd", "my.probe.txt", ".probe.89abcdef"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".probe.89abcdef").touch()  # of another process, at work now
    probe(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"my.probe.txt", ".probe.89abcdef"}
