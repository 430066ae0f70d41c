"""Stored runs that were trained again: how near they came, and what that says of noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.figures.names import cohort_name
from mnmt_repro.figures.theme import GREY
from mnmt_repro.results.repeats import BEGINNING, END, compare

KEY = ["run_id", "pair", "test_set", "domain"]
MINUS = "\N{MINUS SIGN}"
LEAST = 1e-10  # difference that a logarithmic axis shows
ONE_THREAD = ", 1 thread(s)"  # what every run of the mini tier has


def repeats_table(
    rows: pd.DataFrame,
    stored: Iterable[Mapping[str, Any]],
    repeats: Iterable[Mapping[str, Any]],
) -> pd.DataFrame:
    """What came of training stored runs again, a row a repeat.

    Parameters
    ----------
    rows
        From `results.load`; says which cohort a run belongs to.
    stored, repeats
        From `results.load_runs` and `results.load_repeats`.

    Returns
    -------
    DataFrame
        Run, the first cohort that declares it, size, what it `starts from`, processor of the stored
        run and of the repeat, and differences as fractions of the stored: `begins` at the first
        point of the learning curve, `ends` in the mean test loss, `row` where a test set differs
        most.

    Raises
    ------
    InputError
        When the run that was trained again is not stored.
    """
    kept = {content["run"]["run_id"]: content for content in stored}
    cohorts = rows.drop_duplicates("run_id").set_index("run_id")["cohort"]
    table = []
    for again in repeats:
        first = kept.get(again["run"]["run_id"])
        if first is None:
            raise InputError(
                f"there is a repeat of run {again['run']['run_id']}, which is not stored"
            )
        run, found = first["run"], compare(first, again)
        verdict = "identical" if found.identical else "yes" if found.reproduced else "no"
        table.append(
            {
                "run": run["run_id"],
                "cohort": cohort_name(cohorts.get(run["run_id"], "")),
                "size": run["size"],
                "starts from": "an old model" if run["config"].get("upgrade") else "scratch",
                "stored on": run["hardware"].removesuffix(ONE_THREAD),
                "again on": again["run"]["hardware"].removesuffix(ONE_THREAD),
                "begins": found.beginning,
                "ends": found.mean,
                "row": found.largest,
                "reproduced": verdict,
            }
        )
    columns = ["run", "cohort", "size", "starts from", "stored on", "again on"]
    return pd.DataFrame(table, columns=[*columns, "begins", "ends", "row", "reproduced"])


def chart(table: pd.DataFrame) -> alt.LayerChart:
    """Differences at the end against those at the beginning; dashed, the bounds of the rule.

    Parameters
    ----------
    table
        From `repeats_table`; repeats that are identical are left out.
    """
    apart = table[table["ends"] != 0]
    shown = apart[["run", "cohort", "starts from"]].assign(
        begins=apart["begins"].abs().clip(lower=LEAST), ends=apart["ends"].abs()
    )
    x = alt.X(
        "begins:Q",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~e", tickCount=6),
        title="difference at the first point of the learning curve",
    )
    y = alt.Y(
        "ends:Q",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~%"),
        title="difference of the final test loss",
    )
    tooltip = [
        "run",
        "cohort",
        alt.Tooltip("begins", format=".1e"),
        alt.Tooltip("ends", format=".2%"),
    ]
    colour = alt.Color("starts from:N", title="starts from")
    dots = alt.Chart(shown).mark_point(size=70).encode(x, y, colour, tooltip=tooltip)
    limits = pd.DataFrame({"begins": [BEGINNING], "ends": [END]})
    rules = alt.Chart(limits).mark_rule(color=GREY, strokeDash=[6, 4])
    return (rules.encode(x=x) + rules.encode(y=y) + dots).properties(width=480, height=280)


def small(value: float) -> str:
    """A difference over many orders of magnitude, which no line is broken in.

    >>> small(0.0), small(1.23e-06)
    ('0', '+1.2e−06')
    """
    return f"{value:+.1e}".replace("-", MINUS) if value else "0"


def noise_of_repeats(rows: pd.DataFrame, repeats: Iterable[Mapping[str, Any]]) -> tuple[float, int]:
    """Standard deviation of a run's loss, relative, from stored runs that were trained again.

    Two runs that begin alike and differ in rounding lie apart by the noise of both: the root mean
    square of the differences of log losses, over the square root of two. It is a lower bound on
    the noise between seeds, which draw other weights and batches besides.

    Parameters
    ----------
    rows
        From `results.load`, of one test set and domain.

    Returns
    -------
    The deviation, NaN where no run of `rows` was trained again with another outcome, and on how
    many losses it rests.
    """
    records = [
        {"run_id": again["run"]["run_id"]} | {k: row[k] for k in (*KEY[1:], "cross_entropy")}
        for again in repeats
        for row in again["rows"]
    ]
    if not records:
        return float("nan"), 0
    own = rows[rows["p"] > 0].drop_duplicates(KEY)
    both = own.merge(pd.DataFrame(records), on=KEY, suffixes=("", "_again"))
    apart = np.log(both["cross_entropy_again"] / both["cross_entropy"])
    apart = apart[apart != 0]
    deviation = float(np.sqrt(np.mean(apart**2) / 2)) if len(apart) else float("nan")
    return deviation, len(apart)
