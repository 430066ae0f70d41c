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
