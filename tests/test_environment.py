from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from mnmt_repro.cli import TRAIN_TIER
from mnmt_repro.runs import environment

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"torch": "pytorch"}

BASE_MODULES = (
    "architecture", "corpora.registry", "laws", "papers.charts", "papers.claims",
    "papers.cohorts.catalogue", "papers.pages", "results", "runs.sweep", "training.config",
    "upgrading.config",
)  # fmt: skip


def split(requirement: str) -> tuple[str, str]:
    """Split "name>=1,<2" into its lower-case name and its bounds."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", requirement).groups()
    return name.lower(), bounds


def tiers(*extras: str) -> list[str]:
    optional = PROJECT["optional-dependencies"]
    return PROJECT["dependencies"] + [each for extra in extras for each in optional[extra]]


def test_conda_and_pip_install_the_same() -> None:
    declared = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *plain, nested = declared["dependencies"]
    listed = plain + [each for each in nested["pip"] if not each.startswith("--")]
    conda = dict(split(each) for each in listed)
    assert conda.pop("python") == PROJECT["requires-python"]
    assert conda.pop("pip") == ""
    pip = {
        CONDA_NAMES.get(name, name): bounds
        for name, bounds in map(split, tiers("train", "notebook"))
    }
    assert conda == pip
    assert "--editable ." in nested["pip"]


def test_a_wheel_has_no_commit_of_the_repository_around_it(monkeypatch) -> None:
    monkeypatch.setattr(environment, "ROOT", ROOT / "tests")
    assert environment.current_commit() == "unknown"


def test_a_new_major_release_cannot_break_a_user() -> None:
    for requirement in tiers(*PROJECT["optional-dependencies"]):
        assert re.search(r">=\d+(\.\d+)*,<\d+(\.\d+)?$", requirement), requirement


def test_the_lock_file_pins_every_dependency_within_its_bounds() -> None:
    from packaging.specifiers import SpecifierSet
    from packaging.utils import canonicalize_name

    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for requirement in tiers("train", "ct2", "submitit", "dask", "notebook", "test"):
        name, bounds = split(requirement)
        assert pins[canonicalize_name(name)] in SpecifierSet(bounds), requirement


def test_the_base_tier_needs_nothing_of_the_train_tier() -> None:
    """Import every base module where the packages of the train tier cannot be found."""
    code = f"""
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {TRAIN_TIER}:
            raise ModuleNotFoundError(f"the base tier has no {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
for name in {BASE_MODULES}:
    module = importlib.import_module("mnmt_repro." + name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name != "__main__":
            importlib.import_module(f"{{module.__name__}}.{{found.name}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_licence_and_citation_match_the_project() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["license"]
    import mnmt_repro

    assert citation["version"] == mnmt_repro.__version__


def test_the_readme_shows_only_files_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    local = [link for link in links if "//" not in link]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []
