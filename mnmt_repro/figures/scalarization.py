"""Implicit and explicit scalarization (section 2.2), by exact arithmetic on a small example.

At any one set of weights of a model each target token contributes a gradient, which here is a
number. Implicit scalarization draws sentences, a pair with probability p; explicit scalarization
adds mean losses per token with weights w. Every draw that there can be is counted with its
probability, in fractions, so nothing is rounded and nothing is sampled.
"""

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
