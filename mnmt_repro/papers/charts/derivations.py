"""Charts of derivations: what doubling does, and gradients of batches."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import GREY, tips
from mnmt_repro.papers.cohorts.names import pair_name


def doubling_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Factor of one doubling against the weight, with 95 % intervals; one for all dashed."""
    panels = []
    for pair, group in table.groupby("pair"):
        base = alt.Chart(group[["p", "factor", "low", "high", "common"]])
        x = alt.X("p:Q", title="weight p", scale=alt.Scale(domain=[0, 1]))
        scale = alt.Scale(zero=False)
        y = alt.Y("factor:Q", scale=scale, title="reducible loss at 2N over that at N")
        dots = base.mark_point().encode(x, y, tooltip=tips("p", "factor|.4f"))
        bars = base.mark_rule().encode(x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
        law = base.mark_line(strokeDash=[6, 4], color=GREY).encode(
            x, y=alt.Y("common:Q", scale=scale)
        )
        panel = (law + bars + dots).properties(title=pair_name(str(pair)), width=220, height=220)
        panels.append(panel)
    return alt.hconcat(*panels)


def batch_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Standard deviation over batches, and how far their mean is off, against sentences a batch."""
    long = pd.concat(
        [
            table[["sentences"]].assign(value=table["deviation"], what="standard deviation"),
            table[["sentences"]].assign(value=table["off"].abs(), what="mean, off by"),
        ]
    )
    return (
        alt.Chart(long[long["value"] > 0])
        .mark_line(point=True)
        .encode(
            alt.X("sentences:Q", scale=alt.Scale(type="log", base=2), title="sentences a batch"),
            alt.Y("value:Q", scale=alt.Scale(type="log"), title="gradient a token"),
            alt.Color("what:N", title=None),
            tooltip=tips("sentences", "what", "value|.3g"),
        )
        .properties(width=360, height=220)
    )
