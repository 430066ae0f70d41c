"""The chart of Paper B's languages, by their share of the text."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, tips
from mnmt_repro.papers.effects.corpora import TEXTS


def shares_chart(found: pd.DataFrame) -> alt.LayerChart:
    """Draw each language's share of some texts; languages in the paper's order of size.

    Parameters
    ----------
    found
        From `shares`; the first text is drawn in grey.
    """
    largest_first = found[found["text"] == TEXTS[0]].sort_values("share", ascending=False)["name"]
    texts = list(dict.fromkeys(found["text"]))
    x = alt.X("share:Q", title="% of all sentence pairs").scale(type="log", nice=False, padding=8)
    y = alt.Y("name:N", sort=list(largest_first), title=None)
    colour = alt.Color("text:N", title=None).scale(domain=texts, range=[GREY, *CATEGORIES])
    base = alt.Chart(found).encode(y=y)
    lines = base.mark_rule(color=GREY, strokeWidth=0.6).encode(
        x=alt.X("min(share):Q"), x2="max(share):Q"
    )
    tooltip = tips("name:N", "text:N", "pairs:Q|,", "share:Q|.2f")
    dots = base.mark_point(size=40).encode(
        x, color=colour, shape=alt.Shape("group:N", title=None), tooltip=tooltip
    )
    return (lines + dots).properties(width=400, height=16 * len(largest_first))
