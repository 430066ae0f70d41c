"""The workflows of continuous integration call commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from mnmt_repro import results
from mnmt_repro.__main__ import build_parser, main
from mnmt_repro.corpora import registry

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OTHERS = (
    "tar",
    "gh",
    "sha256sum",
    "python",
    *(f".venv/bin/{name}" for name in ("python", "pip", "uv")),
)


def commands(path: Path) -> list[str]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_nightly_choice_is_among_runs_that_can_be_trained(
    capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need no text of another file, and they are many and quick."""
    stored = {run["run"]["run_id"]: run["run"] for run in results.load_runs()}
    monkeypatch.setattr(registry, "data_root", lambda: None)
    assert main(["retrain"]) == 0
    first = [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()[:100]]
    assert len(first) == 100
    for run_id in first:
        assert stored[run_id]["corpus"].startswith("conlang")
        assert "thread" in stored[run_id]["hardware"]
        assert stored[run_id]["wall_seconds"] <= 600


def test_a_change_a_night_and_a_tag_have_a_workflow() -> None:
    assert {path.stem for path in WORKFLOWS} == {"check", "nightly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_calls_a_target_or_a_command_that_exists(path: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for run in commands(path):
        inner = re.search(r"\$\((.*)\)", run)
        for line in [re.sub(r"\$\(.*\)", "RUN", run), *([inner[1]] if inner else [])]:
            program, *rest = shlex.split(re.split(r"\||>>", line)[0])
            if program == "make":
                assert rest and rest[0] in targets, line
            elif program == ".venv/bin/mnmt-repro":
                build_parser().parse_args(rest)
            else:
                assert program in OTHERS, line
