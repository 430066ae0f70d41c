"""Verdicts of a checkout: stored, compared with the rows, told, and asked for by commands."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from command_line import fails
from stored_claims import (
    ROOT,
    entry,
    made_claim,
    made_evidence,
    made_verdict,
    mean_loss,
    setting,
    stored_table,
    write_claims,
)

from mnmt_repro.__main__ import main
from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims import (
    differences,
    read_stored,
    to_detail,
    to_json,
    to_table,
    to_text,
    verify,
)
from mnmt_repro.papers.claims.judging import EFFECTS
from mnmt_repro.papers.claims.report import COLUMNS, headlines, write_stored
from mnmt_repro.papers.claims.schema import ALL, EXHIBITS_FILE
from mnmt_repro.papers.commands.report import with_stored_order
from mnmt_repro.papers.commands.verify import PASSED, REMEDY, changed_files
from mnmt_repro.papers.effects.evidence import Evidence
from mnmt_repro.repository import git

WAYS = {name: setting(name) for name in ("half", "text-matched")}
CLAIM = made_claim(
    beside=setting("beside", kind="generated languages"),
    robustness=WAYS,
    sensitivity=(setting("total", n="n_total"),),
)
EFFECT = (4.0, 3.5, 4.51234567)


@pytest.fixture(autouse=True)
def effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFECTS, "made", mean_loss)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))


def test_a_row_that_no_claim_reads_cannot_change_unseen(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    for name in ("same", "changed", "removed"):
        (tmp_path / "store" / name).write_text("1")
    assert changed_files(tmp_path / "store") == []  # without git, nothing is known
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (("init",), ("add", "."), (*who, "commit", "-m", "rows")):
        git(tmp_path, *arguments)
    (tmp_path / "store" / "changed").write_text("2")
    (tmp_path / "store" / "removed").unlink()
    (tmp_path / "store" / "new").write_text("3")
    assert changed_files(tmp_path / "store") == ["changed", "removed"]


# --- the table ---------------------------------------------------------------------------------


def test_what_is_stored_is_read_again(tmp_path: Path) -> None:
    verdict = made_verdict(CLAIM, headline=EFFECT, beside=(2.0, 1.0, 2.9), half=(3.9, 3.8, 4.0))
    table = stored_table(tmp_path, verdict)
    assert tuple(table.columns) == COLUMNS
    assert (to_table([verdict])["limit"] == table["limit"]).all()  # no word is NaN
    effects = table[table["measure"] == "capacity"].set_index("role")
    assert list(effects.index) == ["headline", "beside", "half", "text-matched", "sensitivity 1"]
    assert effects["verdict"].tolist() == ["reproduced", "not reproduced", "", "", ""]
    first = effects.loc["headline"]
    assert first[["value", "low", "high", "seeds", "runs"]].tolist() == [4.0, 3.5, 4.51235, 4, 8]
    assert first["resolution"] == pytest.approx((4.51235 - 3.5) / 2, abs=1e-5)
    assert (first["limit"], first["side"], first["post_hoc"]) == ("3", ">=", "no")
    assert (first["robust"], first["why"]) == ("not known", "")
    lacks = effects.loc["text-matched"]
    assert math.isnan(lacks["value"]) and lacks["why"] == "no rows yet" and lacks["robust"] == ""
    assert set(table.loc[table["measure"] == "beside", "value"]) == {0.5}
    assert differences([verdict], table) == {}
    assert headlines(table)["verdict"].to_dict() == {"Z1": "reproduced"}


def test_where_nothing_is_stored_there_are_no_rows(tmp_path: Path) -> None:
    assert read_stored(tmp_path).empty and tuple(read_stored(tmp_path).columns) == COLUMNS
    verdict = made_verdict(CLAIM, headline=EFFECT)
    assert differences([verdict], read_stored(tmp_path)) == {"Z1": "no stored verdict"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"value": 4.2}, "value: stored 4.2, but the rows give 4.0"),
        ({"low": 3.3}, "low: stored 3.3"),
        ({"verdict": "undecided"}, "verdict: stored undecided, but the rows give reproduced"),
        ({"seeds": 3.0}, "seeds: stored 3.0"),
        ({"part": "eng-deu"}, "not stored"),
        ({"value": 4.01}, ""),  # rounding, or another sample of draws
        ({"low": 3.54}, ""),  # a twentieth of the width
        ({"why": "in other words"}, ""),
        ({"post_hoc": "not known"}, ""),  # where there is no history
    ],
)
def test_a_changed_number_or_word_is_a_difference(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    verdict = made_verdict(CLAIM, headline=EFFECT)
    table = stored_table(tmp_path, verdict)
    table.loc[0, list(change)] = list(change.values())
    found = differences([verdict], table)
    assert bool(found) == bool(told) and told in found.get("Z1", "")


def test_rows_and_claims_that_are_missing_are_differences(tmp_path: Path) -> None:
    first, second = (made_verdict(made_claim(id=name), headline=EFFECT) for name in ("Z1", "Z2"))
    table = stored_table(tmp_path, first, second)
    assert differences([first], table) == {"Z2": "stored, but no claim any more"}
    assert differences([first, second], table[table["claim"] == "Z1"]) == {
        "Z2": "no stored verdict"
    }
    fewer = table.drop(table.index[(table["claim"] == "Z2") & (table["measure"] == "beside")])
    assert differences([first, second], fewer) == {"Z2": "headline, here, all, beside: not stored"}
    more = made_verdict(made_claim(), headline=EFFECT)
    more.headline.outcome.units["all"].pop("beside")  # type: ignore[attr-defined]
    assert "stored, but not measured now" in differences([more, second], table)["Z1"]


@pytest.mark.parametrize("how", ["empty", "other columns", "a word for a number"])
def test_a_torn_file_is_told(tmp_path: Path, how: str) -> None:
    path = write_stored([made_verdict(CLAIM, headline=EFFECT)], _folder(tmp_path))
    whole = path.read_text(encoding="utf-8")
    path.write_bytes(
        {
            "empty": b"",
            "other columns": whole.replace("verdict", "word", 1).encode(),
            "a word for a number": whole.replace("4.0,", "four,", 1).encode(),
        }[how]
    )
    with pytest.raises(InputError, match=r"verdicts\.csv: no table of verdicts.*restore the file"):
        read_stored(tmp_path)


def _folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "claims").mkdir(parents=True)
    return tmp_path


# --- for programs and for readers --------------------------------------------------------------


def test_json_has_the_documented_keys_and_no_nan() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    known = made_verdict(CLAIM, post_hoc=None, headline=EFFECT, half=(3.9, 3.8, 4.0))
    limits = made_claim(id="Z2", limit=(-0.1, 0.1), side="within")
    first, second = json.loads(to_json([known, made_verdict(limits)]), parse_constant=refuse)
    assert all(f"`{key}`" in str(to_json.__doc__) for key in first)
    assert (first["id"], first["verdict"], first["post_hoc"]) == ("Z1", "reproduced", None)
    assert first["ways"] == {
        "half": {"value": 3.9, "low": 3.8, "high": 4.0},
        "text-matched": {"value": None, "low": None, "high": None},
    }
    assert (second["value"], second["limit"]) == (None, [-0.1, 0.1])


def test_text_has_a_line_a_claim_and_counts_them() -> None:
    late = made_verdict(made_claim(id="Z2", title="late"), post_hoc=True, headline=(2.0, 1.0, 2.5))
    text = to_text([made_verdict(CLAIM, headline=EFFECT), late, made_verdict(made_claim(id="Z3"))])
    first, second, third, count = text.splitlines()
    assert first.startswith("Z1   reproduced ") and "4 [3.5, 4.512], limit at least 3" in first
    assert second.startswith("Z2   not reproduced, post hoc late: 2 [1, 2.5]")
    assert third.startswith("Z3   undecided") and third.endswith("no rows yet")
    assert count == "1 reproduced, 1 not reproduced, 1 undecided"


def test_one_claim_is_told_with_its_limit_its_settings_and_its_note() -> None:
    claim = made_claim(
        **{**vars(CLAIM), "statement": "It rises.", "reason": "Printed.", "note": "Seeds differ.",
           "page": "a/b"}
    )  # fmt: skip
    told = to_detail(made_verdict(claim, headline=EFFECT))
    for part in (
        "Z1 reproduced: x\nthe paper (x): It rises.",
        "limit: at least 3. Printed.",
        "robust: not known",
        "headline, here (real text): reproduced",
        "text-matched, text-matched (real text)\n  no rows yet",
        "    capacity 4 [3.5, 4.512]",
        "Seeds differ. (book/a/b.ipynb)",
    ):
        assert part in told, part


def test_without_a_history_the_order_of_commits_is_the_stored_one(tmp_path: Path) -> None:
    stored = stored_table(tmp_path, made_verdict(CLAIM, post_hoc=True, headline=EFFECT))
    blind = stored_table(tmp_path, made_verdict(CLAIM, post_hoc=None, headline=EFFECT))
    assert with_stored_order(blind, stored)["post_hoc"].tolist() == stored["post_hoc"].tolist()
    none = with_stored_order(blind, stored.iloc[:0])
    assert set(none["post_hoc"]) == {"not known", ""}
    now = stored_table(tmp_path, made_verdict(CLAIM, post_hoc=False, headline=EFFECT))
    assert with_stored_order(now, stored)["post_hoc"].tolist() == now["post_hoc"].tolist()


# --- a whole checkout --------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: two claims, no rows, and a list of exhibits."""
    monkeypatch.chdir(tmp_path)
    write_claims(tmp_path, entry("Z1"), entry("Z2", side="<="))
    (tmp_path / "data" / "results").mkdir()
    listed = {"exhibits": [{"id": name, "shows": "x", "reason": "none"} for name in ALL]}
    path = tmp_path / EXHIBITS_FILE
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(listed), encoding="utf-8")
    (tmp_path / "CITATION.cff").write_bytes((ROOT / "CITATION.cff").read_bytes())
    return tmp_path


def test_stored_verdicts_follow_until_the_rows_change(checkout: Path) -> None:
    evidence = made_evidence()
    verdicts = verify(checkout, evidence=evidence)
    found = [verdict.headline.outcome.verdict for verdict in verdicts]
    assert found == ["reproduced", "not reproduced"]
    write_stored(verdicts, checkout)

    def wrong(frame: pd.DataFrame) -> dict[str, str]:
        return differences(verify(checkout, evidence=Evidence(frame=frame)), read_stored(checkout))

    assert wrong(evidence.frame) == {}
    assert set(wrong(evidence.frame.iloc[:0])) == {"Z1", "Z2"}
    # The same verdict with another number no longer follows either.
    told = wrong(evidence.frame.assign(cross_entropy=3.5))
    assert "value" in told["Z1"] and "verdict" not in told["Z1"]


def test_one_claim_of_those_that_there_are(checkout: Path) -> None:
    (found,) = verify(checkout, evidence=made_evidence(), only="z2")
    assert found.claim.id == "Z2"
    with pytest.raises(InputError, match="Z7: no such claim in .*; there are Z1, Z2"):
        verify(checkout, only="Z7")


def test_the_store_is_that_of_the_argument_else_of_the_environment(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torn run shows which store was read."""
    assert {each.headline.outcome.verdict for each in verify(checkout)} == {"undecided"}
    for name in ("named", "other"):
        (tmp_path / name / "corpus").mkdir(parents=True)
        (tmp_path / name / "corpus" / "torn.json").write_text("{")
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(tmp_path / "named"))
    with pytest.raises(InputError, match="named/corpus/torn.json"):
        verify(checkout)
    with pytest.raises(InputError, match="other/corpus/torn.json"):
        verify(checkout, store=tmp_path / "other")


# --- commands ----------------------------------------------------------------------------------

Shown = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shown(checkout: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    """The exit status of a command on the checkout, and what it prints."""

    def run(command: str, *options: str) -> tuple[int, str, str]:
        code = main([command, "--root", str(checkout), *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_verify_fails_until_the_verdicts_are_stored(checkout: Path, shown: Shown) -> None:
    code, out, err = shown("verify", "--json")
    assert code == 1 and [each["id"] for each in json.loads(out)] == ["Z1", "Z2"]
    assert "Z1: no stored verdict" in err and REMEDY in err
    assert "Failed: 2 stored verdicts do not follow from the stored rows: Z1, Z2." in err
    code, out, err = shown("verify", "--write")
    assert code == 0 and "2 undecided" in out and "written: " in err
    code, out, err = shown("verify")
    assert (code, err) == (0, "") and out.endswith(f"{PASSED}\n")
    assert f"{len(ALL)} figures and tables of the papers" in out
    code, out, _ = shown("verify", "--only", "Z1")
    assert code == 0 and out.endswith("The stored verdict of Z1 agrees.\n")
    stored = checkout / "data/claims/verdicts.csv"
    stored.write_text(stored.read_text("utf-8").replace("undecided", "reproduced", 1), "utf-8")
    code, _, err = shown("verify")
    assert code == 1 and "Failed: 1 stored verdict does not follow" in err
    assert "verdict: stored reproduced, but the rows give undecided" in err


def test_verify_refuses_what_cannot_be(checkout: Path, capsys) -> None:
    command = ["verify", "--root", str(checkout)]
    fails([*command, "--only", "Z99"], capsys, "Z99: no such claim")
    fails([*command, "--only", "Z1", "--write"], capsys, "leave out --only")


def test_report_has_the_exit_status_of_verify(checkout: Path, shown: Shown) -> None:
    out = checkout / "review"
    code, _, err = shown("report", "--out", str(out))
    assert code == 1 and "Failed: 2 stored verdicts" in err, err
    assert "from the stored rows: Z1, Z2." in (out / "report.html").read_text("utf-8")
    assert shown("verify", "--write")[0] == 0
    code, told, err = shown("report", "--out", str(out))
    assert code == 0 and err.splitlines()[-1] == PASSED
    assert told.split() == [str(out / "report.html")]
    assert PASSED in (out / "report.html").read_text("utf-8")
