"""Stored runs that are trained again: compared by hand, stored once, told by the command."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_results import content

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.errors import InputError
from mnmt_repro.papers.effects.uncertainty import noise_of_repeats, repeats_table
from mnmt_repro.repository import ROOT
from mnmt_repro.results.repeats import BEGINNING, END, compare

QUICK = ROOT / "data" / "results" / "conlang-upgrade-sim1" / "1076f5ed6d0a.json"
"""The stored run that takes least time, half a minute, and needs no corpus."""


def again(losses=(4.5, 4.25), beginning: float = 1.0, **run) -> dict:
    """`content`, trained again: other losses at the end, the curve's first point times a factor."""
    found = copy.deepcopy(content(**run))
    for row, loss in zip(found["rows"], losses, strict=True):
        row["cross_entropy"] = loss
    found["curve"][0]["cross_entropy"] *= beginning
    return found


def test_differences_by_hand() -> None:
    same = compare(content(), again())
    assert same.identical and same.reproduced and "bit for bit" in str(same)
    found = compare(content(), again((4.41, 4.335)))  # -2 % and +2 %
    assert not found.identical and found.reproduced
    assert found.mean == pytest.approx((4.41 + 4.335) / (4.5 + 4.25) - 1)
    assert found.largest == pytest.approx(-0.02) or found.largest == pytest.approx(0.02)
    one = compare(content(), again((4.5, 4.2)))
    assert one.largest == pytest.approx(4.2 / 4.25 - 1)
    assert one.where == "eng-zho indomain all"
    begun = compare(content(), again(beginning=1 - BEGINNING / 2))
    assert begun.beginning == pytest.approx(-BEGINNING / 2)
    assert begun.reproduced and not begun.identical


@pytest.mark.parametrize(
    "worse",
    [
        again((4.5 * (1 + 1.2 * END), 4.25 * (1 + 1.2 * END))),
        again(beginning=1 + 1.2 * BEGINNING),
    ],
)
def test_what_lies_beyond_a_bound_is_not_reproduced(worse: dict) -> None:
    found = compare(content(), worse)
    assert not found.reproduced and "not reproduced" in str(found)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"vocabulary_hash": "voc-2"}, "vocabulary_hash"),
        ({"target_tokens": 6_000_001}, "target_tokens"),
    ],
)
def test_another_text_or_budget_is_another_run(changes: dict, told: str) -> None:
    found = compare(content(), again(**changes))
    assert found.other == (told,) and not found.reproduced and told in str(found)


def test_other_batches_rows_or_points_are_another_run() -> None:
    batches, rows, points = again(), again(), again()
    batches["rows"][1]["passes"] = 1.26
    rows["rows"][1]["test_set"] = "newstest21"
    for point in points["curve"]:
        point["step"] += 1
    for other, told in (
        (batches, "passes"),
        (rows, "test sets"),
        (points, "points of the learning curve"),
    ):
        assert compare(content(), other).other == (told,)
    with pytest.raises(InputError, match="run-b is no repeat of run-a"):
        compare(content(), content("run-b"))


def test_a_run_that_went_on_from_a_shorter_one_is_compared_where_both_have_points() -> None:
    first, last = content()["curve"][0]["step"], content()["curve"][-1]["step"]
    stored = content()
    stored["curve"].insert(0, {**stored["curve"][0], "step": first - 1, "cross_entropy": 9.0})
    assert compare(stored, again()).identical
    late = again()
    late["curve"] = [point for point in late["curve"] if point["step"] == last]
    late["curve"][0]["cross_entropy"] *= 1 + BEGINNING / 2
    found = compare(stored, late)
    assert found.beginning == pytest.approx(BEGINNING / 2) and not found.identical


def test_an_outcome_is_stored_once_and_read_back(tmp_path: Path) -> None:
    first = results.write_repeat(again((4.6, 4.3)), root=tmp_path)
    later = again((4.6, 4.3), started="2026-02-02T00:00:00+00:00")
    assert results.write_repeat(later, root=tmp_path) == first
    assert results.write_repeat(again((4.6, 4.3), hardware="other"), root=tmp_path) != first
    found = results.load_repeats(root=tmp_path)
    assert len(found) == 2 and {each["run"]["run_id"] for each in found} == {"run-a"}
    assert results.load_runs(tmp_path) == []  # a repeat is no run of the store
    first.rename(first.with_name("run-b-0.json"))
    with pytest.raises(InputError, match=r"run-b-0\.json: holds webtech/repeats/run-a-"):
        results.load_repeats(root=tmp_path)
    torn = again((4.6, 4.3))
    del torn["rows"][0]["passes"]
    with pytest.raises(InputError, match=r"repeat of run 'run-a': rows\[0\]\.passes is missing"):
        results.write_repeat(torn, root=tmp_path)


def test_the_table_of_repeats() -> None:
    rows = pd.DataFrame([{"run_id": "run-a", "cohort": "webtech-en-dezh"}])
    repeats = [again(), again((4.41, 4.165)), again((3.0, 3.0), hardware="other")]
    table = repeats_table(rows, [content()], repeats)
    assert list(table["reproduced"]) == ["identical", "yes", "no"]
    assert table["again on"].iloc[2] == "other"
    assert table["ends"].iloc[1] == pytest.approx(-0.02)
    with pytest.raises(InputError, match="a repeat of run run-a, which is not stored"):
        repeats_table(rows, [], repeats)


def test_the_noise_of_one_run_is_the_difference_of_two_over_root_two() -> None:
    own = pd.DataFrame([{"run_id": "run-a", **row} for row in content()["rows"]])
    repeats = [again((4.5 * np.exp(0.02), 4.25)), again((4.5 * np.exp(-0.01), 4.25))]
    sd, count = noise_of_repeats(own[own["pair"] == "eng-deu"], repeats)
    assert count == 2  # a loss that did not move is of a processor that rounds alike
    assert sd == pytest.approx(np.sqrt((0.02**2 + 0.01**2) / 2 / 2))
    assert noise_of_repeats(own, [])[1] == 0
    assert noise_of_repeats(own.assign(p=0.0), repeats)[1] == 0  # a pair that is not trained on
    sd, count = noise_of_repeats(own, [again()])
    assert np.isnan(sd) and count == 0


def test_the_command_lists_the_quickest_and_refuses_what_is_not_stored(capsys) -> None:
    assert main(["retrain"]) == 0
    first = capsys.readouterr().out.split()[0]
    (quickest,) = QUICK.parents[1].glob(f"*/{first}.json")
    took = [results.read_run(path)["run"]["wall_seconds"] for path in (quickest, QUICK)]
    assert took[0] <= took[1]
    assert main(["retrain", "nothing"]) == 2
    assert "no stored run is called nothing" in capsys.readouterr().err


def test_the_code_still_gives_a_stored_run(tmp_path: Path, capsys) -> None:
    store = tmp_path / "store" / QUICK.parent.name
    store.mkdir(parents=True)
    shutil.copy(QUICK, store)
    command = ["retrain", QUICK.stem, "--results", str(tmp_path / "store")]
    command += ["--runs", str(tmp_path / "runs"), "--workers", "1"]
    assert main([*command, "--keep"]) == 0
    told = capsys.readouterr().err
    assert "reproduced" in told or "bit for bit" in told
    [repeat] = results.load_repeats(root=tmp_path / "store")
    assert compare(results.read_run(QUICK), repeat).reproduced

    # Rows that this code does not give are found out; what is finished is only scored again.
    tampered = json.loads(QUICK.read_text(encoding="utf-8"))
    for row in tampered["rows"]:
        row["cross_entropy"] *= 0.9
    (store / QUICK.name).write_text(json.dumps(tampered), encoding="utf-8")
    assert main(command) == 1
    assert "not reproduced" in capsys.readouterr().err
