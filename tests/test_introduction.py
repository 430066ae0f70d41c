"""The README says of no claim what its stored verdict does not; the list of exhibits is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import STYLE
from mnmt_repro.papers.charts.scoreboard import scale_chart, scales
from mnmt_repro.papers.claims import load_claims, load_exhibits, read_stored
from mnmt_repro.papers.claims.report import headlines
from mnmt_repro.papers.claims.schema import ALL, EXHIBITS_FILE, Claim
from mnmt_repro.papers.cohorts.software25 import KINDS
from mnmt_repro.papers.cohorts.software25_runs import PAPER

ROOT = Path(__file__).resolve().parents[1]
SIGN_OF = {verdict: sign for verdict, (sign, _) in STYLE.items()}


def signs(text: str) -> dict[str, str]:
    """Claim to the sign it is given, in a list such as ``(✓ B1, B2, ↗ B5)``."""
    signed, sign = {}, ""
    every = "".join(map(re.escape, SIGN_OF.values()))
    for part in re.findall(rf"(?<=[(\s])[{every}](?= [AB]\d)|(?<=[\s])[AB]\d+(?=[,)])", text):
        if part in SIGN_OF.values():
            sign = part
        else:
            signed[part] = sign
    return signed


def test_the_readme_follows_the_verdicts() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    said = signs(text)
    assert len(said) == len(re.findall(r"\b[AB]\d+\b", text)) > 5
    stored = headlines(read_stored(ROOT))["verdict"].map(SIGN_OF).to_dict()
    assert said == {claim: stored[claim] for claim in said}


def claims() -> list[Claim]:
    return load_claims(ROOT / "data" / "claims")


def exhibits(tmp_path: Path, old: str, new: str) -> Path:
    """A checkout whose list of exhibits is changed."""
    text = (ROOT / EXHIBITS_FILE).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / EXHIBITS_FILE
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    (tmp_path / "book").symlink_to(ROOT / "book")
    return tmp_path


def test_every_figure_and_table_has_a_row_and_every_claim_a_figure() -> None:
    listed = load_exhibits(ROOT, claims())
    assert [each.id for each in listed] == list(ALL)
    assert {claim for each in listed for claim in each.claims} >= {
        claim.id
        for claim in claims()
        if claim.id != "A19"  # of Appendix G, which has no figure
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: B Table 12", "id: B Table 13", "B Table 12 is listed 0 times"),
        ("claims: [A14]", "claims: [A99]", "A Figure 1: there is no claim A99"),
        ("page: paper-a/planner", "page: paper-a/plan", "there is no page book/paper-a/plan"),
        ("page: paper-a/planner, ", "", "give a page with a chart and an answer, or a reason"),
        ("claims: [], reason: a drawing", "claims: []", "B Figure 1: give a claim that judges it"),
        ("shows: The trade-off", "show: The trade-off", "A Figure 1: .*'show'"),
    ],
)
def test_a_list_with_a_gap_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_exhibits(exhibits(tmp_path, old, new), claims())


def test_paper_bs_sizes_are_those_of_its_shapes() -> None:
    rows = pd.DataFrame(columns=["run_id", "variant", "corpus", "n_non_embedding", "chrfpp"])
    table = scales(rows.assign(target_tokens=[])).set_index(["paper", "quantity"])
    range_ = table.loc[("B", "parameters without embeddings"), ["low", "high"]]
    counted = [parameter_counts(PAPER.model(kind))["non_embedding"] for kind in KINDS]
    assert range_.tolist() == [min(counted), max(counted)]


def test_scales_compare_the_papers_with_our_rows() -> None:
    rows = pd.DataFrame(
        {
            "run_id": ["a", "b", "b"],
            "variant": [None, "Mt25", "Mt25"],
            "corpus": ["webtech", "software25", "software25"],
            "n_non_embedding": [100, 300, 300],
            "target_tokens": [1000, 2000, 2000],
            "chrfpp": [None, 2.0, 4.0],
        }
    )
    table = scales(rows)
    ours = table[table["whose"] == "ours"].set_index(["paper", "quantity"])["high"]
    assert ours["A", "parameters without embeddings"] == 100
    assert ours["B", "chrF++"] == 3.0  # the mean over a run's directions
    scale_chart(table).to_dict()
