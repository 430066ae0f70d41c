"""A wheel works in any folder: it carries results, claims and pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 12_000_000


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fresh environment that has the wheel; what it needs is lent by this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < MOST_BYTES
    python = folder / "fresh" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "fresh"], check=True)
    subprocess.run([*pip, "--python", python, "install", "--no-deps", wheel], check=True)
    (site,) = (folder / "fresh" / "lib").glob("python*/site-packages")
    # A folder named in a .pth file is searched last, and the .pth files in it are not read: so the
    # checkout that this environment may have installed is not found.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder


def run(folder: Path, command: str, *arguments: str) -> str:
    """The output of a command of the fresh environment in an empty folder."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    environment = os.environ | {"MNMT_REPRO_CACHE": str(folder / "cache")}
    for name in ("MNMT_REPRO_RESULTS", "PYTHONPATH"):
        environment.pop(name, None)
    found = subprocess.run(
        [folder / "fresh" / "bin" / command, *arguments],
        cwd=empty,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    assert list(empty.iterdir()) == []
    return found.stdout


def test_results_and_verdicts_are_read_outside_a_checkout(installed: Path) -> None:
    count = "import mnmt_repro; from mnmt_repro import results; "
    count += "print(mnmt_repro.__file__, len(results.load(cohort='conlang-three')))"
    file, rows = run(installed, "python", "-c", count).split()
    assert Path(file).is_relative_to(installed / "fresh") and int(rows) > 0
    assert "reproduced" in run(installed, "mnmt-repro", "verify", "--only", "B5")
    assert "manifest:" in run(installed, "mnmt-repro", "report", "--codecheck")


def test_its_description_links_to_no_file_of_the_repository(installed: Path) -> None:
    (metadata,) = (installed / "fresh").rglob("mnmt_repro-*.dist-info/METADATA")
    links = re.findall(r"\]\(([^)]+)\)", metadata.read_text(encoding="utf-8"))
    assert links and all(link.startswith("https://") for link in links)


def test_a_page_is_executed_outside_a_checkout(installed: Path) -> None:
    page = "from mnmt_repro.repository import ROOT; import papermill, sys; "
    page += "papermill.execute_notebook(ROOT / 'book/paper-a/model-sizes.ipynb', sys.argv[1], "
    page += "progress_bar=False, cwd=ROOT / 'book/paper-a')"
    run(installed, "python", "-c", page, str(installed / "page.ipynb"))
    assert "15 of the 16" in (installed / "page.ipynb").read_text(encoding="utf-8")
