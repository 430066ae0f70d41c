"""The chart of leads of upgraded models over those from scratch: Paper B's Table 1."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.analysis.upgrades import BUDGETS, SHAPES
from mnmt_repro.figures.theme import CATEGORIES, GREY

_WHOSE = {"lead": "ours: lower loss", "paper": "paper: higher spBLEU"}


def lead_chart(table: pd.DataFrame, title: str = "better than from scratch, %") -> alt.ConcatChart:
    """Leads with their intervals, a panel an upgraded model, a row a group of languages.

    Parameters
    ----------
    table
        With the columns `LEAD`; a diamond is what the paper prints.
    title
        Of the axis.
    """
    ends = table[["lead", "low", "high", "paper"]].to_numpy()
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[float(np.nanmin(ends)), float(np.nanmax(ends))], padding=6),
        axis=alt.Axis(tickCount=3),
        title=title,
    )
    y = alt.Y("group:N", sort=list(dict.fromkeys(table["group"])), title=None)
    known = [whose for column, whose in _WHOSE.items() if table[column].notna().any()]
    marks = {
        "color": alt.Color(
            "whose:N",
            title=None,
            scale=alt.Scale(domain=known, range=list(CATEGORIES[:2])),
            legend=alt.Legend() if len(known) > 1 else None,
        ),
        "shape": alt.Shape(
            "whose:N",
            title=None,
            scale=alt.Scale(domain=known, range=["circle", "diamond"]),
            legend=alt.Legend() if len(known) > 1 else None,
        ),
    }
    panels = []
    for model, mine in table.groupby("upgraded", sort=False):
        long = mine.rename(columns=_WHOSE).melt(
            ["group", "low", "high"], list(_WHOSE.values()), var_name="whose"
        )
        long = long.dropna(subset=["value"])
        tooltip = ["group", alt.Tooltip("value", format="+.2f")]
        zero = alt.Chart(pd.DataFrame({"value": [0.0]})).mark_rule(color=GREY).encode(x)
        ours = long[long["whose"] == _WHOSE["lead"]].dropna(subset=["low"])
        bars = alt.Chart(ours).mark_rule(color=CATEGORIES[0], strokeWidth=2)
        ends_of = {"x": alt.X("low:Q", title=title), "x2": alt.X2("high:Q")}
        dots = alt.Chart(long).mark_point(opacity=1, size=60)
        panels.append(
            alt.layer(
                zero,
                bars.encode(y=y, tooltip=["group", "low", "high"], **ends_of),
                dots.encode(x, y, tooltip=tooltip, **marks),
            ).properties(
                title=alt.TitleParams(_titled(str(model)), fontSize=12),
                width=145,
                height=alt.Step(26),
            )
        )
    return alt.concat(*panels, columns=3).resolve_scale(color="shared", shape="shared")


def _titled(model: str) -> list[str]:
    """Two lines above a panel: the shape of an upgraded model or its name, and its updates.

    >>> _titled("Mt25-wide"), _titled("M25, rate halved, 130%")
    (['wider', '50% of the updates'], ['M25, rate halved', '130% of the updates'])
    """
    name, *last = model.rsplit(", ", 1)
    share = last[0] if last else f"{BUDGETS[name]:.0%}"
    return [SHAPES.get(name, name), f"{share} of the updates"]
