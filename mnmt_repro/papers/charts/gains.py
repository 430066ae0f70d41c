"""How pages show gains of variants over their controls: in few columns, with marks."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from mnmt_repro.papers.charts.provenance import Provenance

INTERVAL = "95 % interval"


def source(rows: pd.DataFrame) -> Provenance | str:
    """Provenance of stored rows beside printed numbers, or a sentence where there are none."""
    return Provenance.of(rows) if len(rows) else "Paper B, in data/papers; no run of ours."


def narrow(table: pd.DataFrame) -> pd.DataFrame:
    """A table of gains without what a reader can do without.

    ``low`` and ``high`` become one column, a printed ``mark`` goes with its ``difference`` and ours
    with the gain, and columns without any value go, as do seeds where all rows have as many.
    """
    frame = table.drop(columns=["mark", "our mark", "high"], errors="ignore")
    if "our mark" in table:
        frame["gain, %"] = _marked(table["gain, %"], table["our mark"], ".2f")
    if "mark" in table:
        frame["difference"] = _marked(table["difference"], table["mark"], ".1f")
    frame["low"] = [
        interval(low, high) or None for low, high in zip(table["low"], table["high"], strict=True)
    ]
    if "seeds" in table and len(set(table["seeds"]) - {0}) < 2:
        frame = frame.drop(columns="seeds")
    return frame.rename(columns={"low": INTERVAL}).dropna(axis=1, how="all")


def _marked(values: Iterable[float], marks: Iterable[str], form: str) -> list[str | None]:
    return [
        None if math.isnan(value) else f"{value:+{form}}{mark}"
        for value, mark in zip(values, marks, strict=True)
    ]


def interval(low: float, high: float) -> str:
    """An interval as pages print it, in one piece; nothing where there is none.

    >>> interval(-0.5, 1.25).replace(chr(160), " "), interval(math.nan, 1.0)
    ('-0.50 to +1.25', '')
    """
    return "" if math.isnan(low) else f"{low:+.2f}\u00a0to\u00a0{high:+.2f}"
