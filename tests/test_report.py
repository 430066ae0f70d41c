"""`report`: a page for a reviewer that answers first, and the list of outputs for CODECHECK."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml
from stored_claims import ROOT, declared_claims, made_verdict, stored_table

from mnmt_repro.papers.claims import load_exhibits
from mnmt_repro.papers.commands.report import codecheck, hashes, report
from mnmt_repro.papers.commands.verify import PASSED

EFFECTS = {"A11": (4.0, 3.5, 4.5), "B5": (-0.8, -0.9, -0.7)}  # at least 3, and at least 0


def written(folder: Path, wrong: dict[str, str]) -> str:
    """A report on a claim that is reproduced, one that is not, and one without rows."""
    claims = [declared_claims()[name] for name in ("A11", "A14", "B5")]
    verdicts = [
        made_verdict(
            claim, post_hoc=claim.id == "B5", headline=EFFECTS.get(claim.id, (float("nan"),))
        )
        for claim in claims
    ]
    table = stored_table(folder, *verdicts)
    return report(ROOT, ROOT / "data" / "claims", table, claims, wrong)


def test_the_answer_comes_first_each_claim_follows_and_no_other_file_is_needed(
    tmp_path: Path,
) -> None:
    text = written(tmp_path, {})
    body = text.partition("</h1>")[2]
    assert body.startswith(f"<p><b>{PASSED}</b></p>")
    assert "Of 3 claims: " in body and "Post hoc: 1." in body
    assert "For 2 claims the limit was committed before the rows" in body
    for claim in ("A11", "A14", "B5"):
        assert f'<tbody id="claim-{claim.lower()}"' in body
    assert "4.0 times (3.5 to 4.5)" in body and "nan" not in body.lower().replace("nano", "")
    assert "<script" not in text and "src=" not in text and "<link" not in text
    links = set(re.findall(r'href="([^"]+)"', text))
    assert all(link.startswith(("data:text/csv", "#")) for link in links)


def test_a_verdict_that_does_not_follow_is_the_first_thing_said(tmp_path: Path) -> None:
    body = written(tmp_path, {"A11": "stored as <1>"}).partition("</h1>")[2]
    assert "from the stored rows: A11.</b>" in body.partition("</p>")[0]
    assert "<td>stored as &lt;1&gt;</td>" in body


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
