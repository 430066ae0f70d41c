"""Verdicts of Paper B beside those of an old model's luck counted apart, which decide nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mnmt_repro.claims import NO_ROWS, Evidence, History, load_claims, to_json
from mnmt_repro.claims.sensitivity import coverage, with_luck_apart
from mnmt_repro.experiments.languages25 import directions_of
from mnmt_repro.figures.contrasts import MAIN, REPEATED, Bench
from mnmt_repro.figures.verdicts import scope_table
from mnmt_repro.repository import ROOT

APART = "luck apart"


def luck_table(stored: Sequence[Mapping[str, Any]], rows: pd.DataFrame) -> pd.DataFrame:
    """Each claim that compares runs of software25, as judged and with an old model's luck apart.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    rows
        From `results.load`, whole.

    Returns
    -------
    DataFrame
        ``claim, title, setting, verdict, measured``, and the last two for luck apart; claims that
        lack runs are left out. The verdicts are those of the rule alone.
    """
    found = with_luck_apart(
        load_claims(ROOT / "data" / "claims"), Evidence(frame=rows), History(ROOT)
    )
    other = scope_table(json.loads(to_json(found))).set_index("claim")
    judged = scope_table(stored)
    same = judged["setting"] == judged["claim"].map(other["setting"])
    judged = judged[same & (judged["by the rule"] != NO_ROWS)]
    table = judged[["claim", "title", "setting", "measured"]].reset_index(drop=True)
    table.insert(3, "verdict", judged["by the rule"].to_numpy())
    for column, name in (("by the rule", "verdict"), ("measured", "measured")):
        table[f"{name}, {APART}"] = table["claim"].map(other[column])
    table["measured"] = judged["measure"].str.replace("_", " ").to_numpy() + " " + table["measured"]
    return table


def in_words(table: pd.DataFrame, rows: pd.DataFrame, tier: str = "mini") -> str:
    """Which verdicts would differ, and how large the two noises are; empty without verdicts."""
    if table.empty:
        return ""
    moved = table[table["verdict"] != table[f"verdict, {APART}"]]
    told = [
        f"{row['claim']} would be *{row[f'verdict, {APART}']}*, not *{row['verdict']}*"
        for row in moved.to_dict("records")
    ]
    text = f"Of {len(table)} verdicts, {len(moved)} would differ" + (
        f": {'; '.join(told)}." if told else "."
    )
    main = Bench(rows=rows, cohort=MAIN, tier=tier).study(directions_of("all"))
    alike = replace(main, scope=replace(main.scope, cohorts=REPEATED))
    apart = replace(alike, apart=True)
    return (
        "With all runs taken as independent, the seed moves a run's mean loss by "
        f"{_told(alike.noise)}; by {_told(main.noise)} in claims whose rules read it off the main "
        "condition alone. "
        f"Taken apart, it does so by {_told(apart.noise)}, and an old model's luck moves all its "
        f"upgrades by {_told(apart.luck)}. With luck and noise like these, and three seeds, an "
        "interval of the rules holds an upgrade's true difference from a baseline not 95 but "
        f"{coverage(apart.luck[0], apart.noise[0]):.0%} of the time (simulated). {text}"
    )


def _told(noise: tuple[float, int]) -> str:
    return f"{noise[0]:.2%} (on {noise[1]} degrees of freedom)"
