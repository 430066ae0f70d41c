"""The chart of gradients of batches: implicit scalarization, section 2.2."""

from __future__ import annotations

import altair as alt
import pandas as pd


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
            tooltip=["sentences", "what", alt.Tooltip("value", format=".3g")],
        )
        .properties(width=360, height=220)
    )
