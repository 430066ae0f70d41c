"""`report`: a page for a reviewer that answers first, and the list of outputs for CODECHECK."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from stored_claims import ROOT, declared_claims

from mnmt_repro.claims import load_exhibits, read_stored
from mnmt_repro.cli import main
from mnmt_repro.companion.report import (
    as_html,
    codecheck,
    hashes,
    papers,
    report,
    with_stored_order,
)
from mnmt_repro.companion.verify import PASSED


def written(*ids: str, wrong: dict[str, str] | None = None, made: list | None = None) -> str:
    """The report on some claims, as they are stored, or on verdicts that were made."""
    return report(
        ROOT,
        ROOT / "data" / "claims",
        made or [each for each in read_stored(ROOT) if each["id"] in ids],
        [claim for claim in declared_claims().values() if claim.id in ids],
        wrong or {},
        exhibits=39,
    )


def test_the_answer_comes_first_and_each_verdict_has_a_row() -> None:
    stored = {each["id"]: each for each in read_stored(ROOT)}
    open_ = next(name for name, each in stored.items() if each["verdict"] == "undecided here")
    text = written("B3", open_, "A11")
    title, _, answer, _, count, *_ = text.splitlines()
    assert title.startswith("# Review of mnmt-repro") and answer == f"**{PASSED}**"
    assert count.startswith("Of 3 claims: 2 reproduced (post hoc: B3), 1 undecided here")
    for claim, of_group in (("B3", "reproduced (2)"), (open_, "undecided here (1)")):
        group = text.partition(of_group)[2].partition("\n#")[0]
        (row,) = [line for line in group.splitlines() if line.startswith(f"| **{claim}**")]
        found = stored[claim]
        assert f"| {found['raw_verdict']} |" in row
        assert f"| {found['kind']} | {'no, post hoc' if found['post_hoc'] else 'yes'} |" in row
        if found["attainability"] is not None:
            assert f"| {100 * found['attainability']:.0f}\N{NO-BREAK SPACE}% / " in row
    (row,) = [line for line in text.splitlines() if line.startswith("| **A11**")]
    assert "share of the capacity divided by the weight at least 3 times" in row  # its rule
    assert stored["A2"]["scopes"][0]["ancestry"] in text  # the order of commits


def test_without_a_history_the_order_of_commits_is_the_stored_one() -> None:
    stored = [each for each in read_stored(ROOT) if each["id"] in ("B3", "A11")]
    blind = [each | {"post_hoc": None, "ancestry": "not checked"} for each in stored]
    found = with_stored_order(blind, stored)
    assert [each["post_hoc"] for each in found] == [each["post_hoc"] for each in stored]
    assert all(each["order_stored"] for each in found)
    assert not any(each["order_stored"] for each in with_stored_order(stored, stored))
    text = written("B3", "A11", made=found)
    assert "For 1 of 2 claims" in text
    assert "the rule was committed before the rows that decide it, by what is stored" in text
    assert "read from the stored verdicts, not from git" in text and "git was asked" not in text


def test_a_verdict_that_does_not_follow_is_the_first_thing_said() -> None:
    text = written("A2", wrong={"A2": "stored as 1 | 2"})
    assert "follow from the stored rows: A2.**" in text.splitlines()[2]
    assert "| A2 | stored as 1 \\| 2 |" in text


def test_the_html_needs_no_other_file_and_folds_the_details() -> None:
    shown = as_html(written("A2", "B1"))
    assert shown.count("<details") == 2 and "<details open" not in shown
    assert "<script" not in shown and "src=" not in shown and "<link" not in shown
    links = set(re.findall(r'href="([^"]+)"', shown))
    assert links == {paper["url"] for paper in papers(ROOT)}
    assert "| " not in re.sub(r"<code>.*?</code>", "", shown)  # each table became one


def test_a_reader_can_repeat_each_hash() -> None:
    for each in hashes(ROOT, ROOT / "data" / "results"):
        done = subprocess.run(
            ["bash", "-c", each["command"]], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[0] == each["sha256"], each["what"]
        assert each["files"] > 1


def test_the_exit_code_is_that_of_verify(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    claims = tmp_path / "data" / "claims"
    claims.mkdir(parents=True)
    for path in (ROOT / "data" / "claims").glob("paper_*.yml"):
        shutil.copy(path, claims)
    (tmp_path / "data" / "results").mkdir()
    (tmp_path / "data" / "papers").symlink_to(ROOT / "data" / "papers")
    (tmp_path / "book").symlink_to(ROOT / "book")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    out = tmp_path / "review"
    command = ["report", "--root", str(tmp_path), "--out", str(out)]
    assert main(command) == 1  # nothing is stored yet
    assert "Failed: 43 stored verdicts" in capsys.readouterr().err
    assert main(["verify", "--root", str(tmp_path), "--write"]) == 0
    capsys.readouterr()
    assert main(command) == 0
    told = capsys.readouterr()
    assert told.out.split() == [str(out / "report.md"), str(out / "report.html")]
    assert told.err.strip() == PASSED
    assert PASSED in (out / "report.md").read_text(encoding="utf-8")
    assert PASSED in (out / "report.html").read_text(encoding="utf-8")


def test_codecheck_lists_what_the_claims_need() -> None:
    text = (ROOT / "codecheck.yml").read_text(encoding="utf-8")
    claims = list(declared_claims().values())
    assert text == codecheck(ROOT, claims, load_exhibits(ROOT, claims)), (
        "renew it with: mnmt-repro report --codecheck > codecheck.yml"
    )
    content = yaml.safe_load(text)
    assert text.startswith("---\n") and content["paper"]["reference"].startswith("https://")
    files = {item["file"]: item["comment"] for item in content["manifest"]}
    assert {f"_build/html/{claim.page}.html" for claim in claims} < set(files)
    for file in files:
        page = file.removeprefix("_build/html/").removesuffix(".html")
        assert (ROOT / file).exists() or (ROOT / "book" / f"{page}.ipynb").exists(), file
    assert "A2" in files["_build/html/paper-a/scaling-laws.html"]
