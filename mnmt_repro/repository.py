"""Where results, claims and pages are: in the checkout, or in what a wheel carries."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).with_name("companion.tar.xz")
"""Results, claims and pages in a wheel; a checkout has none."""


def cache_root() -> Path:
    """Return the folder of downloads and of kept results: ``MNMT_REPRO_CACHE``, else the user's.

    The user's cache is ``$XDG_CACHE_HOME/mnmt-repro``, by default ``~/.cache/mnmt-repro``.
    """
    named = os.environ.get("MNMT_REPRO_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mnmt-repro"


def _root() -> Path:
    """The checkout's top folder, or a folder into which the wheel's archive is unpacked once."""
    beside = Path(__file__).resolve().parents[1]
    if not ARCHIVE.is_file():
        return beside
    packed = ARCHIVE.read_bytes()  # once, so that the name is of what is unpacked
    name = hashlib.sha256(packed).hexdigest()[:12]
    root = cache_root() / f"companion-{name}"
    if not root.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        try:
            plain = lzma.decompress(packed)  # whole, so that its checksum is looked at
        except lzma.LZMAError as error:
            raise SystemExit(
                f"mnmt-repro: {ARCHIVE}: is damaged ({error}); install the wheel again"
            ) from error
        stage = Path(tempfile.mkdtemp(dir=root.parent))
        with tarfile.open(fileobj=io.BytesIO(plain)) as file:
            # Python 3.11 has filters from 3.11.4 on. The archive is our own.
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            file.extractall(stage, **safely)  # type: ignore[arg-type]
        try:
            stage.rename(root)  # whole or not at all
        except OSError:  # another process was faster
            shutil.rmtree(stage)
    return root


def git(folder: Path, *arguments: str) -> str:
    """What git prints in a folder, without space around it.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        When git is not installed, or says that something is wrong.
    """
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()


ROOT = _root()
"""The folder with `book/` and `data/`."""
