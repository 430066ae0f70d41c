"""Where Paper B's printed numbers disagree with one another, in points of spBLEU."""

from __future__ import annotations

import re

import altair as alt
import pandas as pd

from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.figures.theme import CATEGORIES, GREY

_PAIR = re.compile(r"\b[a-z]{3}-[a-z]{3}\b")


def score_chart(found: pd.DataFrame) -> alt.LayerChart:
    """Draw by how much printed scores are above what other printed numbers give.

    A grey bar is what rounding alone can explain.

    Parameters
    ----------
    found
        From `score_disagreements`.
    """
    cell = found["cell"].str.replace(_PAIR, lambda code: pair_name(code[0]), regex=True)
    frame = found.assign(cell=cell, low=-found["tolerance"], high=found["tolerance"])
    axis = alt.Axis(labelLimit=260, grid=True, ticks=False)
    y = alt.Y("cell:N", sort=list(frame["cell"]), title=None, axis=axis)
    x = alt.X("difference:Q", title="printed minus recomputed, spBLEU")
    checks = list(dict.fromkeys(frame["check"]))
    scale = alt.Scale(domain=checks, range=list(CATEGORIES[: len(checks)]))
    legend = alt.Legend(columns=1, labelLimit=260)
    tooltip = [
        *(alt.Tooltip(f"{name}:N") for name in ("cell", "check")),
        *(alt.Tooltip(f"{name}:Q", format=".2f") for name in ("published", "recomputed")),
    ]
    base = alt.Chart(frame).encode(y=y)
    rounding = base.mark_bar(color=GREY, opacity=0.35, height=7).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(size=50, opacity=1).encode(
        x, color=alt.Color("check:N", scale=scale, title=None, legend=legend), tooltip=tooltip
    )
    return (rounding + dots).properties(width=380, height=16 * len(frame))
