"""Numbers of a benchmark as a file: the rows, and the machine, date and versions behind them."""

from __future__ import annotations

import json
import platform
import subprocess
from datetime import date
from pathlib import Path

import pandas as pd
import torch

from mnmt_repro.repository import ROOT


def processor() -> str:
    """Name of the processor, where the system gives one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if "model name" in line),
        platform.machine(),
    )


def resident(field: str) -> int:
    """Bytes of this process by a field of its status, such as `VmRSS` now and `VmHWM` at most."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def keep(path: Path, rows: pd.DataFrame, **more: object) -> None:
    """Write rows with their circumstances."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    about = {
        "date": date.today().isoformat(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "commit": commit.stdout.strip(),
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({**about, "rows": json.loads(rows.to_json(orient="records"))}, indent=1) + "\n",
        encoding="utf-8",
    )
