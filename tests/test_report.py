"""`report`: a page for a reviewer that answers first, and the list of outputs for CODECHECK."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from stored_claims import ROOT, declared_claims, made_verdict, stored_table

from mnmt_repro.papers.claims import load_exhibits
from mnmt_repro.papers.commands.report import as_html, codecheck, hashes, papers, report
from mnmt_repro.papers.commands.verify import PASSED

EFFECTS = {"A11": (4.0, 3.5, 4.5), "B3": (0.8, 0.7, 0.9)}  # at least 3, and at least 90.9 %


@pytest.fixture
def written(tmp_path: Path) -> str:
    """A report on a claim that is reproduced, one that is not, and one without rows."""
    return of_claims(tmp_path, {})


def of_claims(folder: Path, wrong: dict[str, str]) -> str:
    claims = [declared_claims()[name] for name in ("A11", "A14", "B3")]
    verdicts = [
        made_verdict(
            claim, post_hoc=claim.id == "B3", headline=EFFECTS.get(claim.id, (float("nan"),))
        )
        for claim in claims
    ]
    table = stored_table(folder, *verdicts)
    return report(ROOT, ROOT / "data" / "claims", table, claims, wrong, exhibits=39)


def test_the_answer_comes_first_and_each_verdict_has_a_row(written: str) -> None:
    title, _, answer, _, count, *_ = written.splitlines()
    assert title.startswith("# Review of mnmt-repro") and answer == f"**{PASSED}**"
    assert count == "Of 3 claims: 1 reproduced, 1 not reproduced (post hoc: B3), 1 undecided."
    assert "For 2 of 3 claims, the limit was committed before the rows" in written
    for claim, group, ours, late in (
        ("A11", "✓ reproduced (1)", "4.0 times (3.5 to 4.5)", "no"),
        ("B3", "✗ not reproduced (1)", "80", "yes"),
        ("A14", "? undecided (1)", "no rows yet", "no"),
    ):
        part = written.partition(f"### {group}")[2].partition("\n#")[0]
        (row,) = [line for line in part.splitlines() if line.startswith(f"| **{claim}**")]
        cells = [cell.strip() for cell in row.split(" | ")]
        assert ours in cells[3] and cells[5:] == ["4", late, "not known |"]
    assert "nan" not in written.lower().replace("nano", "")


def test_a_verdict_that_does_not_follow_is_the_first_thing_said(tmp_path: Path) -> None:
    text = of_claims(tmp_path, {"A11": "stored as 1 | 2"})
    assert "follow from the stored rows: A11.**" in text.splitlines()[2]
    assert "| A11 | stored as 1 \\| 2 |" in text


def test_the_html_needs_no_other_file_and_folds_the_details(written: str) -> None:
    shown = as_html(written)
    assert shown.count("<details") == 3 and "<details open" not in shown
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
