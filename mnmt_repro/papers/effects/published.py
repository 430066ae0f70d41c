"""The papers' printed tables, as transcribed in ``data/papers``, and what Paper B compares in them.

Nothing of them is typed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, foreign
from mnmt_repro.repository import ROOT

PAPERS = ROOT / "data" / "papers"

NOTICEABLE = 0.3
"""Where a table prints no marks, a difference of so many points of spBLEU counts as marked."""


@cache
def _text(number: int) -> pd.DataFrame:
    """Table `number` of Paper B as text, empty cells as ``""``; see ``data/papers/README.md``."""
    path = PAPERS / f"paper-b-table-{number:02d}.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such table; Paper B has Tables 1 to 12")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def comparisons(number: int, controls: Sequence[str]) -> pd.DataFrame:
    """Cells of Table 3, 4, 5, 6, 7 or 11 (right) of Paper B against their controls.

    Parameters
    ----------
    controls
        Variants that others are compared with; a row's control is that of the same model.

    Returns
    -------
    DataFrame
        ``variant`` (as in the store), ``group`` (``all``, ``original``, ``added`` or a resource
        level), ``value`` in points of spBLEU, its ``difference`` from the control (NaN of a control
        itself) and ``mark``: a star where that is marked as significant, in brackets where the
        table prints no marks and the difference is `NOTICEABLE`.

    Raises
    ------
    InputError
        When the table is none of comparisons, or has no row of a control.

    Examples
    --------
    >>> table = comparisons(6, ["old 1, new 1"]).set_index(["variant", "group"])
    >>> float(table["difference"]["old 0.5, new 5", "all"])
    0.3
    """
    rows = _variants(number)
    if missing := set(controls) - set(rows["variant"]):
        raise InputError(f"Table {number} of Paper B has no row {sorted(missing)[0]!r}")
    own = rows["variant"].isin(controls)
    base = rows[own].set_index(["model", "group"])["value"]
    control = base.reindex(pd.MultiIndex.from_frame(rows[["model", "group"]])).to_numpy()
    difference = (rows["value"] - control).round(6).mask(own)
    printed = rows["mark"] != ""
    noticed = (difference.abs() >= NOTICEABLE).map({True: "(*)", False: ""})
    mark = printed.map({True: "*", False: ""}) if printed.any() else noticed
    return rows.assign(difference=difference, mark=mark.mask(own, "")).drop(columns="model")


def _variants(number: int) -> pd.DataFrame:
    """Cells of a table of comparisons: ``model, variant, group, value, mark``."""
    rows = _text(number)
    if number in (3, 4):
        variant = rows["model"] + ", " + rows["setting"]
    elif number == 5:
        variant = "alpha " + rows["alpha"] + rows["related"].map({"yes": ", related", "no": ""})
    elif number == 6:
        variant = "old " + rows["gamma_old"] + ", new " + rows["gamma_new"]
    elif number == 7:
        variant = rows["grouping"]
        rows = rows.assign(model="", group=rows["level"])
    elif number == 11:
        rows = rows[rows["part"] == "right"]
        variant = "f " + rows["threshold"] + ", gamma " + rows["gamma_old"]
        # Its control is not in the table: the wide model with the full recipe, Table 3.
        recipe = _text(3)
        recipe = recipe[(recipe["model"] == "Mt25-wide") & (recipe["setting"] == "full recipe")]
        rows = pd.concat([recipe, rows])
        variant = pd.concat([pd.Series("full recipe", index=recipe.index), variant])
    else:
        raise InputError(f"Table {number} of Paper B is no table of comparisons")
    named = rows.assign(variant=variant.to_numpy(), value=rows["value"].astype(float))
    return named[["model", "variant", "group", "value", "mark"]].reset_index(drop=True)


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
    frame = _text(number).copy()
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


@cache
def printed_scores() -> pd.DataFrame:
    """Return Table 12, one row a direction and model, with what groups them; not to be written to.

    Columns: pair, model, spbleu, chrfpp (in points of 100, as Table 1 prints it), language (the one
    beside English), group and level.
    """
    cells = printed_table(12)
    frame = cells.pivot(index=["pair", "model"], columns="metric", values="value").reset_index()
    frame["chrfpp"] *= 100
    frame["language"] = frame["pair"].map(foreign)
    languages = grouping("Mt25")[["group", "level"]]
    return frame.merge(languages, left_on="language", right_index=True).sort_values(
        ["model", "pair"], ignore_index=True
    )


def of_group(frame: pd.DataFrame, group: str) -> pd.DataFrame:
    """Rows of one group of directions, or all of them."""
    return frame if group == "all" else frame[frame["group"] == group]


def over_all(number: int, rows: str) -> pd.Series[float]:
    """Values of Table `number` over all directions, by model, of the rows that a query chooses."""
    return printed_table(number).query(f"group == 'all' and {rows}").set_index("model")["value"]


def column_mean(model: str, group: str, metric: str = "spbleu") -> float:
    """Average one column of Table 12 over a group of directions."""
    frame = printed_scores()
    return float(of_group(frame[frame["model"] == model], group)[metric].mean())
