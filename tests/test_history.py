"""Whether a rule came before the rows it reads, by the history of its file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stored_claims import ROOT, declared_claims, entry, made_evidence, mean_loss, write_claims

from mnmt_repro.papers.claims import load_claims, verify
from mnmt_repro.papers.claims.history import Ancestry, History
from mnmt_repro.papers.claims.judging import EFFECTS, Verdict, evaluate
from mnmt_repro.repository import git


@pytest.fixture(autouse=True)
def effect(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFECTS, "made", mean_loss)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path_factory.mktemp("cache")))


class Repository:
    """A git repository with claims files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, *entries: dict[str, Any], name: str = "test.yml") -> str:
        if entries:
            write_claims(self.folder, *entries, name=name)
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", "step")
        return self.git("rev-parse", "HEAD")

    def verdicts(self, commit: str) -> dict[str, Verdict]:
        """Of rows of this commit."""
        found = verify(self.folder, evidence=made_evidence(commit))
        return {each.claim.id: each for each in found}

    def post_hoc(self, commit: str, claim: str = "Z1") -> bool | None:
        return self.verdicts(commit)[claim].headline.ancestry.post_hoc

    def note(self, commit: str) -> str:
        return self.verdicts(commit)["Z1"].headline.ancestry.note


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    return Repository(tmp_path)


def test_a_rule_that_came_first_is_not_post_hoc(repository: Repository) -> None:
    first = repository.commit(entry())
    later = repository.commit()
    for commit in (first, later, f"{later}+changes", later[:12]):  # its own commit counts
        assert repository.post_hoc(commit) is False, commit
    assert "is older than all its rows" in repository.note(later)


def test_a_rule_that_came_after_its_rows_is_post_hoc(repository: Repository) -> None:
    before = repository.commit()
    first = repository.commit(entry())
    verdict = repository.verdicts(before)["Z1"]
    assert verdict.headline.outcome.verdict == "reproduced"  # whatever the order
    assert f"rule of {first[:10]} is no ancestor of rows of {before[:10]}" in repository.note(
        before
    )
    changed = repository.commit(entry(limit=2))
    assert repository.post_hoc(first) is True
    assert repository.post_hoc(changed) is False
    # Back to the old rule: it counts from its return, since in between another one stood.
    back = repository.commit(entry())
    assert repository.post_hoc(changed) is True
    assert repository.post_hoc(back) is False


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 3.1},
        {"side": "within", "limit": [3, 4]},
        {"options": {"weight": 0.05}},
        {"headline": {"like": "here", "cohorts": ["webtech-en-dezh", "webtech-en-defr"]}},
        {"headline": {"like": "here", "options": {"weight": 0.05}}},
    ],
)
def test_what_decides_a_verdict_dates_its_rule(
    repository: Repository, change: dict[str, Any]
) -> None:
    first = repository.commit(entry())
    second = repository.commit(entry(**change))
    assert repository.post_hoc(first) is True
    assert repository.post_hoc(second) is False


def test_prose_names_and_other_claims_do_not_date_a_rule(repository: Repository) -> None:
    first = repository.commit(entry(), entry("Z2"))
    prose = dict.fromkeys(("title", "statement", "reason", "note", "unit", "where"), "told better")
    names = {"headline": {"like": "here", "name": "another name", "kind": "generated languages"}}
    repository.commit(
        entry("Z0"), entry(**prose, **names, sensitivity=["there"]), entry("Z2", limit=2)
    )
    assert repository.post_hoc(first) is False
    assert repository.post_hoc(first, "Z2") is True
    (claim,) = (each for each in load_claims(repository.folder / "data/claims") if each.id == "Z1")
    there = claim.fingerprint(claim.settings["sensitivity 1"])  # which is new
    assert History(repository.folder).check("Z1", there, [first]).post_hoc is True


def test_an_uncommitted_rule_is_post_hoc(repository: Repository) -> None:
    first = repository.commit(entry())
    write_claims(repository.folder, entry(limit=2))
    assert repository.post_hoc(first) is True
    assert repository.note(first) == "post hoc: the rule is not committed"


def test_versions_that_cannot_be_read_have_no_rules(repository: Repository) -> None:
    path = write_claims(repository.folder, entry())
    path.write_text(path.read_text("utf-8").replace("schema: 2", "schema: 1"), encoding="utf-8")
    old = repository.commit()
    repository.commit(entry())
    assert repository.post_hoc(old) is True


def test_rows_of_a_branch_that_forked_before_the_rule_are_post_hoc(repository: Repository) -> None:
    base = repository.commit()
    main = repository.git("rev-parse", "--abbrev-ref", "HEAD")
    repository.git("checkout", "--quiet", "-b", "runs")
    runs = repository.commit()
    repository.git("checkout", "--quiet", main)
    repository.commit(entry())
    repository.git("merge", "--quiet", "--no-edit", "runs")
    assert repository.post_hoc(base) is True
    assert repository.post_hoc(runs) is True


def test_what_cannot_be_told_is_not_known(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, monkeypatch
) -> None:
    write_claims(repository.folder, entry())
    assert repository.note("c0ffee") == "ancestry not checked: no commit yet"
    head = repository.commit()
    for commit in ("unknown", "0" * 40):
        assert repository.post_hoc(commit) is None
        assert "no commit" in repository.note(commit)
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    repository.git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), str(clone))

    def asked(folder: Path) -> Ancestry:
        (claim,) = load_claims(repository.folder / "data" / "claims")
        return evaluate(claim, made_evidence(head), History(folder)).headline.ancestry

    for folder, why in (
        (clone, "a shallow clone holds no history"),
        (repository.folder / "data", "not a git checkout of its own"),
        (clone.parent, "not a git checkout"),
    ):
        assert asked(folder).post_hoc is None and why in asked(folder).note
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in asked(repository.folder).note


def test_changes_after_seeing_data_name_claims_and_commits_that_exist() -> None:
    changes = pd.read_csv(ROOT / "data" / "claims" / "after_seeing.csv", dtype=str)
    named = {name for names in changes["claims"] for name in names.split()}
    assert named <= {*declared_claims(), "all", "A1", "B4", "B22"}  # the last three are gone
    assert not changes.isna().any(axis=None)
    if History(ROOT).unavailable:
        pytest.skip("the history of this checkout is not available")
    for commit, date in changes[["commit", "date"]].drop_duplicates().itertuples(index=False):
        assert git(ROOT, "show", "--no-patch", "--format=%cs", commit).strip() == date, commit
