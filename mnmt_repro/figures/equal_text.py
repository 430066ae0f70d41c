"""The chart of how far a pair in a mixture is behind, before and after as much text."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.analysis.equal_text import PARTS
from mnmt_repro.analysis.names import pair_name
from mnmt_repro.figures.theme import GREY, size_axis, weight_color


def equal_text_chart(parts: pd.DataFrame) -> alt.FacetChart:
    """Both parts against size: a column a pair, a row a part, a colour a weight.

    Parameters
    ----------
    parts
        From `split`, not empty.
    """
    long = parts.melt(["pair", "p", "n"], list(PARTS), var_name="part", value_name="nats")
    long = long.assign(pair=long["pair"].map(pair_name), part=long["part"].map(PARTS))
    base = alt.Chart(long)
    line = base.mark_line(point=True).encode(
        x=size_axis(),
        y=alt.Y("nats:Q", title="nats"),
        color=weight_color(list(long["p"])),
        tooltip=["part", "p", "n", alt.Tooltip("nats", format="+.3f")],
    )
    zero = base.mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=alt.datum(0))
    return (
        (zero + line)
        .properties(width=250, height=170)
        .facet(
            row=alt.Row("part:N", title=None, sort=list(PARTS.values())),
            column=alt.Column("pair:N", title=None),
        )
    )
