"""Table 7, which groups languages by resource level, against Tables 8, 9 and 12."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, LEVELS, directions
from mnmt_repro.papers.effects.audit.checks import check, checked
from mnmt_repro.papers.effects.audit.tables import printed_scores, printed_table
from mnmt_repro.papers.effects.framed import Rows

_EARLIER = "Table 7 is at 30k updates, Table 12 at 50k despite its heading"


@checked
def table_7_over_levels() -> Rows:
    """Recompute Table 7's means over all languages from its levels, counted in Table 9.

    By Table 9's caption the very low level is a part of the low one.
    """
    printed = _printed()
    within, beside = (_languages(nested=nested) for nested in (True, False))
    apart = (printed.loc[beside.index].mul(beside, axis=0).sum() / beside.sum()).to_numpy()
    reading = (
        f"{_other_levels()}; with the very low level beside the low one and not inside it, the "
        f"means would be {apart.min():.1f} to {apart.max():.1f}"
    )
    for name in GROUPINGS:
        where = f"Table 7, {name}, all: of its levels, by Table 9's counts"
        mean = float((printed[name][within.index] * within).sum() / within.sum())
        yield check(where, float(printed[name]["all"]), mean, tolerance=0.1, reading=reading)


@checked
def table_7_from_table_12() -> Rows:
    """Average Table 12's Mt25-wide over Table 9's levels; compare with Table 7's first column."""
    printed, scores = _printed()["Mt25"], _by_language()
    levels = printed_table(9).set_index("language")["level"]
    for level in LEVELS:
        inside = ("low", "very low") if level == "low" else (level,)
        yield check(
            f"Table 7, Mt25, {level}: mean of Table 12's Mt25-wide",
            float(printed[level]),
            float(scores[levels[scores.index].isin(inside)].mean()),
            tolerance=0.1,
            reading=_EARLIER if level == "very low" else _other_levels(),
        )


@checked
def very_low_from_tables_8_and_12() -> Rows:
    """Table 7's very low level from Table 8's differences and Table 12's wide baseline.

    By Table 9 its languages are Belarusian and Nepali, whose four directions are among Table 8's.
    """
    codes = printed_table(9).query("level == 'very low'")["language"]
    baseline = printed_scores().pivot(index="pair", columns="model", values="spbleu")["M25-wide"]
    printed, pairs = _printed(), [*directions(tuple(codes))]
    gains = printed_table(8).pivot(index="pair", columns="grouping", values="value")
    for name in map(str, gains):
        mean = float((baseline + gains[name])[pairs].mean())
        where = f"Table 7, {name}, very low: of Tables 8 and 12"
        value = float(printed[name]["very low"])
        yield check(where, value, mean, tolerance=0.15)  # three numbers, each rounded to 0.1


def level_cuts() -> pd.DataFrame:
    """Levels other than Table 9's, languages ordered by size, that Table 7's means allow.

    Of all cuts of the 25 languages into four contiguous levels, those whose rows of Table 7,
    weighted by their languages, give all four printed means within rounding. The very low level is
    beside the low one: as a part of it, as Table 9's caption has it, no cut gives these means.

    Returns
    -------
    DataFrame
        How many languages are ``high, mid, low, very low`` (low without the very low ones);
        ``distance``, the largest difference of a level's mean in Table 12's Mt25-wide from Table
        7's; in its order, nearest first.
    """
    sizes = printed_table(9).sort_values("value", ascending=False)["language"]
    by_size = _by_language()[sizes].to_numpy()
    printed = _printed()
    found = []
    for ends in combinations(range(1, len(sizes)), len(LEVELS) - 1):
        counts = np.diff([0, *ends, len(sizes)])
        parts = np.split(by_size, ends)
        means = counts @ printed.loc[[*LEVELS]].to_numpy() / len(sizes)
        if (np.abs(means - printed.loc["all"].to_numpy()) <= 0.1 + 1e-9).all():
            levels = np.array([part.mean() for part in parts])
            distance = np.abs(levels - printed.loc[[*LEVELS], "Mt25"].to_numpy()).max()
            found.append([*counts.tolist(), float(distance)])
    return pd.DataFrame(found, columns=[*LEVELS, "distance"]).sort_values(
        "distance", ignore_index=True
    )


def _printed() -> pd.DataFrame:
    """Table 7: a row a level, a column a grouping."""
    return printed_table(7).pivot(index="level", columns="grouping", values="value")


def _languages(*, nested: bool) -> pd.Series[int]:
    """How many languages Table 9 has of each level; `nested`, the very low ones among the low."""
    counts = printed_table(9)["level"].value_counts()
    return counts.rename({"very low": "low"}).groupby(level=0).sum() if nested else counts


def _by_language() -> pd.Series[float]:
    """Mean spBLEU of Table 12's Mt25-wide, both directions, by language."""
    table = printed_scores().query("model == 'Mt25-wide'")
    return table.groupby("language")["spbleu"].mean()


def _other_levels() -> str:
    level = printed_scores().query("model == 'Mt25-wide'").groupby("level")["spbleu"].mean()
    return (
        "the levels behind Table 7 are not those of Table 9: Table 12's Mt25-wide has "
        f"{level['high']:.1f} on the high and {level['mid']:.1f} on the mid level, but "
        f"{level['low']:.1f} and {level['very low']:.1f} on the two low ones"
    )
