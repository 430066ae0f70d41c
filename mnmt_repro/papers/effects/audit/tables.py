"""The papers' printed tables, as transcribed in `data/papers`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, foreign
from mnmt_repro.papers.effects.published import table

GROUPS = ("all", "original", "added")
PARTS = (*GROUPS, "related", "other original")
"""Groups of the paper's tables, and original languages parted by whether they are up-sampled."""
UPGRADES = {"Mt25": "M25", "Mt25-wide": "M25-wide", "Mt25-deep": "M25-deep"}
"""Upgraded model to the baseline trained from scratch."""

METRIC_NAMES = {"spbleu": "spBLEU", "chrfpp": "chrF++"}

_NUMBERS = ("row", "column", "updates", "alpha", "gamma_old", "gamma_new", "threshold")


def printed_table(number: int) -> pd.DataFrame:
    """Load Table `number` of Paper B, one row a cell.

    Returns
    -------
    DataFrame
        The columns of the file (see `data/papers/README.md`); where it has values, `value` as
        float (NaN for an empty cell) and `decimals`, how many digits are printed behind the point.

    Raises
    ------
    InputError
        If there is no such table.

    Examples
    --------
    >>> first = printed_table(1).iloc[1]
    >>> first["model"], float(first["value"]), int(first["decimals"])
    ('M25', 31.6, 1)
    """
    frame = table(number).copy()
    if "value" in frame:
        frame["decimals"] = frame["value"].str.partition(".")[2].str.len()
        frame["value"] = pd.to_numeric(frame["value"])
    for column in frame.columns.intersection(list(_NUMBERS)):
        frame[column] = pd.to_numeric(frame[column])
    return frame


def grouping(name: str) -> pd.DataFrame:
    """Return one of `GROUPINGS`, the divisions of the 25 languages into original and added ones.

    Returns
    -------
    DataFrame
        Indexed by language: `name`, `family`, `level`, `script` and `bitext` (sentence pairs) of
        Table 9; `group` ("original" or "added") and `upsampled` of Table 2, 10 or 11.
    """
    chosen = GROUPINGS[name]
    languages = printed_table(9).set_index("language").rename(columns={"value": "bitext"})
    frame = languages[["name", "family", "level", "script", "bitext"]].copy()
    frame["group"] = np.where(frame.index.isin(chosen.added), "added", "original")
    frame["upsampled"] = frame.index.isin([*chosen.added, *chosen.related])
    return frame


def printed_scores() -> pd.DataFrame:
    """Return Table 12, one row a direction and model, with what groups them.

    Columns: pair, model, spbleu, chrfpp (in points of 100, as Table 1 prints it), language (the one
    beside English), direction ("en-xx" or "xx-en"), group and level.
    """
    return _directions().copy()


def of_group(frame: pd.DataFrame, group: str) -> pd.DataFrame:
    """Rows of one group of directions, or all of them."""
    return frame if group == "all" else frame[frame["group"] == group]


def over_all(number: int, rows: str) -> pd.Series[float]:
    """Values of Table `number` over all directions, by model, of the rows that a query chooses."""
    return printed_table(number).query(f"group == 'all' and {rows}").set_index("model")["value"]


def column_mean(model: str, group: str, metric: str = "spbleu") -> float:
    """Average one column of Table 12 over a group of directions."""
    frame = _directions()
    return float(of_group(frame[frame["model"] == model], group)[metric].mean())


@cache
def _directions() -> pd.DataFrame:
    cells = printed_table(12)
    frame = cells.pivot(index=["pair", "model"], columns="metric", values="value").reset_index()
    frame["chrfpp"] *= 100
    frame["language"] = frame["pair"].map(foreign)
    frame["direction"] = frame["pair"].str.startswith("eng").map({True: "en-xx", False: "xx-en"})
    languages = grouping("Mt25")[["group", "level"]]
    return frame.merge(languages, left_on="language", right_index=True).sort_values(
        ["model", "pair"], ignore_index=True
    )
