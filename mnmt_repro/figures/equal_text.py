"""How far a pair in a mixture is behind the single pair, before and after as much text of it.

A mixture shows a pair only part of the budget. So its loss above that of the single-pair model of
the same size is taken apart at the point where that model had read as much of the pair:

    L(p, N) - L(1, N)  =  [L(p, N) - L(1, N; the same text)]  +  [L(1, N; the same text) - L(1, N)]
                               at equal text                          text

The parts bound the causes and are not the causes: at equal text the mixture has taken 1/p times the
updates. So the first is the least that sharing the model can cost, and the second the most that can
be due to text not shown. Losses are those of validation, since a single-pair model's is known at
points of its training.
"""

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
