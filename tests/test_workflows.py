"""The workflows of continuous integration call commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from mnmt_repro.cli import build_parser

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OTHERS = ("tar", "gh", "cat", ".venv/bin/python")


def commands(path: Path) -> list[str]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_a_change_a_night_and_a_tag_have_a_workflow() -> None:
    assert {path.stem for path in WORKFLOWS} == {"check", "nightly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_calls_a_target_or_a_command_that_exists(path: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for run in commands(path):
        inner = re.search(r"\$\((.*)\)", run)
        for line in [re.sub(r"\$\(.*\)", "RUN", run), *([inner[1]] if inner else [])]:
            program, *rest = shlex.split(line.split("|")[0])
            if program == "make":
                assert rest and rest[0] in targets, line
            elif program == ".venv/bin/mnmt-repro":
                build_parser().parse_args(rest)
            else:
                assert program in OTHERS, line
