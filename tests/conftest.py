"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: several threads add up in any order


@pytest.fixture(scope="session")
def corpora_dir() -> Path:
    """The folder of real corpora (`MNMT_REPRO_DATA`); the test is skipped where there is none."""
    folder = Path(os.environ.get("MNMT_REPRO_DATA", ROOT.parent / "shared" / "corpora"))
    if not (folder / "corpora.json").is_file():
        pytest.skip("real corpora absent: set MNMT_REPRO_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def lawdata_dir() -> Path:
    """The folder of published fits (`MNMT_REPRO_LAWDATA`); skips where there is none."""
    folder = Path(os.environ.get("MNMT_REPRO_LAWDATA", ROOT.parent / "shared" / "lawdata"))
    if not (folder / "chinchilla_240plus5.csv").is_file():
        pytest.skip("published law data absent: set MNMT_REPRO_LAWDATA to its folder")
    return folder


LATE = """
import time

kernel = get_ipython().kernel
publish = kernel._publish_status


def late(status, *about, **more):
    if (status, kernel.get_parent().get("msg_type")) == ("idle", "execute_request"):
        kernel._publish_status = publish
        time.sleep(5)
    publish(status, *about, **more)


kernel._publish_status = late
"""


@pytest.fixture
def late_kernel(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels tell that their first cell has ended 5 seconds late, as on a busy machine."""
    folder = tmp_path_factory.mktemp("ipython")
    (folder / "profile_default/startup").mkdir(parents=True)
    (folder / "profile_default/startup/late.py").write_text(LATE, encoding="utf-8")
    monkeypatch.setenv("IPYTHONDIR", str(folder))
