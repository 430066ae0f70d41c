"""Which code runs, and on which processor."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from pathlib import Path

from mnmt_repro.repository import ROOT, git


def current_commit() -> str:
    """Commit that the code runs from, with `+changes` where the package differs from it."""
    if not (ROOT / ".git").exists():  # installed, perhaps within a repository of somebody else's
        return "unknown"
    try:
        changed = git(ROOT, "status", "--porcelain", "--", "mnmt_repro")
        return git(ROOT, "rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def called_now() -> dict[str, str]:
    """When a run is called (`started`, UTC), and the `commit` of the code it is called from."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"started": started, "commit": current_commit()}


def processor() -> str:
    """Name and generation of this machine's processor."""
    try:
        return parse_processor(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        return platform.processor() or platform.machine()


def parse_processor(cpuinfo: str) -> str:
    r"""Name, family and model of the first processor of Linux's ``/proc/cpuinfo``.

    >>> parse_processor("vendor_id: X\ncpu family: 6\nmodel: 143\nmodel name: Xeon\n")
    'Xeon (family 6, model 143)'
    """
    first = cpuinfo.partition("\n\n")[0]
    fields = dict(re.findall(r"^(?:cpu )?([\w ]+?)\s*: *(.*?) *$", first, re.MULTILINE))
    name = fields.get("model name", platform.processor() or platform.machine())
    numbers = [f"{what} {fields[what]}" for what in ("family", "model") if what in fields]
    return f"{name} ({', '.join(numbers)})" if numbers else name
