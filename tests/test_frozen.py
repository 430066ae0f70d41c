"""Numbers that moving code may not change: a temporary guard, removed when the move is done.

`frozen.json` holds hashes only: of every declared run identity, of every rule's fingerprint, of the
output of ``verify --json`` and of every CSV file that a page publishes. All are computed from the
claims and the results of one commit (`COMMIT`), so that rows that arrive later change nothing.
Numbers of tables are compared to eight digits, because another order of sums moves the last one.

The identities and fingerprints are checked by default. The rest takes minutes::

    pytest tests/test_frozen.py -m frozen             # everything
    pytest tests/test_frozen.py -m frozen -k verify   # the verdicts, or a page, such as -k planner
    python tests/test_frozen.py --keep FOLDER [PAGE]  # write files and executed pages, to compare
    python tests/test_frozen.py --store               # write frozen.json again
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from mnmt_repro.claims import load_claims
from mnmt_repro.cohorts.catalogue import declared
from mnmt_repro.publishing.notebooks import PageRun, execute_pages
from mnmt_repro.publishing.stored import trains

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("frozen.json")
COMMIT = "871de66537"
CODE = ("mnmt_repro", "book", "data/papers", "data/external")  # as they are now
_CSV = re.compile(r'download="([^"]+\.csv)" href="data:text/csv;charset=utf-8;base64,([^"]*)"')
_FRACTION = re.compile(r"(?<![\w.])-?\d+\.\d{6,}(?:e[-+]?\d+)?")
PAGES = sorted(
    page.relative_to(ROOT / "book").with_suffix("").as_posix()
    for page in (ROOT / "book").rglob("*.ipynb")
    if not trains(page)
)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def identities() -> dict[str, str]:
    """Hash of the identities of each cohort's runs, by tier and name."""
    return {
        f"{tier} {cohort.name}": sha(
            json.dumps([[run.run_id, run.config_hash, run.data_hash] for run in cohort.runs()])
        )
        for tier in ("mini", "steady", "gpu", "paper")
        for cohort in declared(tier)
    }


def fingerprints() -> dict[str, str]:
    """Fingerprint of each rule of today's claims, by claim and setting."""
    return {
        f"{claim.id}, {scope.name}": claim.fingerprint(scope)[:16]
        for claim in load_claims(ROOT / "data" / "claims")
        for scope in claim.scopes
    }


def checkout(folder: Path) -> Path:
    """Make a checkout with the claims and results of `COMMIT` and today's code and pages."""
    for command in (
        ["git", "clone", "--shared", "--no-checkout", ROOT, folder],
        ["git", "-C", folder, "checkout", "--detach", COMMIT],
    ):
        subprocess.run(command, check=True, capture_output=True)
    for name in CODE:
        shutil.rmtree(folder / name)
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)  # it registers the cohorts and the commands
    return folder


def verdicts(root: Path) -> str:
    """What `verify --json` prints in a checkout."""
    call = "import sys; from mnmt_repro.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", call, "verify", "--fresh", "--json", "--root", str(root)]
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    ).stdout


def tables(root: Path, page: str) -> dict[str, bytes]:
    """Execute a page in a checkout; name and content of each CSV file that it publishes."""
    run = PageRun(
        source=root / "book" / f"{page}.ipynb",
        output=root / "_build" / f"{page}.ipynb",
        name=page,
        parameters={},
    )
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(root)
    (done,) = execute_pages([run], jobs=1)
    os.environ["PYTHONPATH"] = before or ""
    assert not done.error, done.error
    found = {}
    for cell in nbformat.read(run.output, as_version=4).cells:
        for output in cell.get("outputs", []):
            html = "".join(output.get("data", {}).get("text/html", ""))
            found |= {name: base64.b64decode(text) for name, text in _CSV.findall(html)}
    return found


def hashes(files: dict[str, bytes]) -> dict[str, str]:
    return {name: sha(rounded(content)) for name, content in sorted(files.items())}


def rounded(content: bytes) -> str:
    """A table with its decimal fractions at eight significant digits."""
    return _FRACTION.sub(lambda found: f"{float(found[0]):.8g}", content.decode())


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield checkout(tmp_path_factory.mktemp("frozen") / "checkout")


def test_no_identity_of_a_run_has_changed(stored: dict) -> None:
    now = identities()
    assert {name: now.get(name) for name in stored["identities"]} == stored["identities"]


def test_no_rule_has_changed(stored: dict) -> None:
    now = fingerprints()
    assert {name: now.get(name) for name in stored["rules"]} == stored["rules"]


@pytest.mark.frozen
def test_verify_prints_the_same(stored: dict, frozen: Path) -> None:
    assert hashes({"verify.json": verdicts(frozen).encode()}) == {"verify.json": stored["verify"]}


@pytest.mark.frozen
@pytest.mark.parametrize("page", PAGES)
def test_page_publishes_the_same(page: str, stored: dict, frozen: Path) -> None:
    assert hashes(tables(frozen, page)) == stored["pages"][page]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("pages", nargs="*", default=[*PAGES, "verify"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = checkout(Path(folder) / "checkout")
        pages = {}
        for page in options.pages:
            if page == "verify":
                files = {"verify.json": verdicts(root).encode()}
            else:
                files = tables(root, page)
            pages[page] = hashes(files)
            for name, content in files.items() if options.keep else ():
                path = options.keep / page / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if options.keep and page != "verify":
                shutil.copy(root / "_build" / f"{page}.ipynb", options.keep / f"{page}.ipynb")
            print(page, len(files), flush=True)
    if options.store:
        found = {
            "commit": COMMIT,
            "identities": identities(),
            "rules": fingerprints(),
            "verify": pages.pop("verify")["verify.json"],
            "pages": pages,
        }
        FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
