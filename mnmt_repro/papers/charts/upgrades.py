"""The chart of leads of upgraded models over those from scratch: Paper B's Table 1."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import PRINTED_SERIES, forest
from mnmt_repro.papers.effects.upgrades import LAST_SHARES, MODEL_CHANGES


def lead_chart(table: pd.DataFrame) -> alt.ConcatChart:
    """Leads with their intervals, a panel an upgraded model, a row a group of languages.

    Parameters
    ----------
    table
        With the columns `LEAD`; a diamond is what the paper prints.
    """
    ours = table.assign(value=table["lead"], series="ours: lower loss")
    paper = table.assign(value=table["paper"], series=PRINTED_SERIES)
    rows = pd.concat([ours, paper.drop(columns=["low", "high"])])
    rows = rows.assign(label=rows["group"], group=rows["upgraded"].map(_titled))
    return forest(rows, "gain over the model from scratch, %", marks={"": 0})


def _titled(model: str) -> str:
    """Title of a panel: the shape of an upgraded model or its name, and its updates.

    >>> _titled("Mt25-wide"), _titled("M25, rate halved, 130%")
    ('wider, 50% of the updates', 'M25, rate halved, 130% of the updates')
    """
    name, *last = model.rsplit(", ", 1)
    share = last[0] if last else f"{LAST_SHARES[name]:.0%}"
    return f"{MODEL_CHANGES.get(name, name)}, {share} of the updates"
