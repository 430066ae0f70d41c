"""The chart of what doubling the size does to the reducible loss."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.analysis.names import pair_name
from mnmt_repro.figures.theme import GREY


def doubling_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Factor of one doubling against the weight, with 95 % intervals; one for all dashed."""
    panels = []
    for pair, group in table.groupby("pair"):
        base = alt.Chart(group[["p", "factor", "low", "high", "common"]])
        x = alt.X("p:Q", title="weight p", scale=alt.Scale(domain=[0, 1]))
        scale = alt.Scale(zero=False)
        y = alt.Y("factor:Q", scale=scale, title="reducible loss at 2N over that at N")
        dots = base.mark_point().encode(x, y, tooltip=["p", alt.Tooltip("factor", format=".4f")])
        bars = base.mark_rule().encode(x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
        law = base.mark_line(strokeDash=[6, 4], color=GREY).encode(
            x, y=alt.Y("common:Q", scale=scale)
        )
        panel = (law + bars + dots).properties(title=pair_name(str(pair)), width=220, height=220)
        panels.append(panel)
    return alt.hconcat(*panels)
