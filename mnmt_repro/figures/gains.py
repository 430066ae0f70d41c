"""How pages show gains of variants over their controls: in few columns, with marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from mnmt_repro.analysis.variants import Variants
from mnmt_repro.cohorts.catalogue import find_cohort
from mnmt_repro.figures.display import Table, show_table
from mnmt_repro.figures.provenance import Provenance

INTERVAL = "95 % interval"
FORMATS = {"loss": ".3f", "gain, %": "+.2f", "gain": "+.2f", "p": ".2g"}
"""How `show_gains` shows a table of them."""


def source(rows: pd.DataFrame) -> Provenance | str:
    """Provenance of stored rows beside printed numbers, or a sentence where there are none."""
    return Provenance.of(rows) if len(rows) else "Paper B, in data/papers; no run of ours."


def how_many_stored(variants: Variants) -> str:
    """How many of a cohort's declared runs are stored, in a sentence."""
    declared = {run.config_hash for run in find_cohort(variants.cohort, variants.tier).runs()}
    found = len(declared & set(variants.own["config_hash"]))
    if found == len(declared):
        return f"All {found} declared runs are stored."
    if found == 0:
        return f"None of {len(declared)} declared runs is stored yet."
    are = "is" if found == 1 else "are"
    told = f"{found} of {len(declared)} declared runs {are} stored"
    return f"{told}; what needs the others is a dash."


def show_gains(
    table: pd.DataFrame,
    *,
    formats: Mapping[str, Any] | None = None,
    caption: str = "",
    **about: Any,
) -> Table:
    """Display a table of gains in few columns; the CSV has all.

    See `narrow`; where all gains rest on as many seeds, the caption says on how many.

    Parameters
    ----------
    table
        Shown; ``low, high`` and the other columns of `GAIN` may be among its columns.
    data, formats, caption, about
        As for `display.show_table`; formats of columns that are not shown do no harm.
    """
    shown, wanted = narrow(table), {**FORMATS, **(formats or {})}
    seeds = set(table["seeds"]) - {0} if "seeds" in table else set()
    count = seeds.pop() if len(seeds) == 1 else 0
    told = f" {'One seed' if count == 1 else f'{count:g} seeds'} a row." if count else ""
    return show_table(
        shown,
        data=table,
        formats={
            column: form
            for column, form in wanted.items()
            if column in shown and (callable(form) or is_numeric_dtype(shown[column]))
        },
        caption=caption.strip() + told,
        **about,
    )


def narrow(table: pd.DataFrame) -> pd.DataFrame:
    """A table of gains without what a reader can do without.

    ``low`` and ``high`` become one column, a printed ``mark`` goes with its ``difference`` and ours
    with the gain, and columns without any value go, as do seeds where all rows have as many.
    """
    frame = table.drop(columns=["mark", "our mark", "high"], errors="ignore")
    for name in {"gain, %", "gain"} & set(table) if "our mark" in table else ():
        frame[name] = _marked(table[name], table["our mark"], ".2f")
    if "mark" in table:
        frame["difference"] = _marked(table["difference"], table["mark"], ".1f")
    if "low" in table:
        frame["low"] = [
            interval(low, high) or None
            for low, high in zip(table["low"], table["high"], strict=True)
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
