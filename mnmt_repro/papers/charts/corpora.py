"""The chart of a corpus: its sentences by domain."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, tips
from mnmt_repro.papers.effects.corpora import DOMAINS


def domain_chart(table: pd.DataFrame) -> alt.Chart:
    """Stacked bars of `domains`, a row per language, the largest on top."""
    order = table.groupby("language")["sentences"].sum().sort_values(ascending=False)
    shown = [name for name in DOMAINS.values() if name in set(table["domain"])]
    colours = dict(zip(DOMAINS.values(), CATEGORIES, strict=True))
    colour = alt.Color("domain:N", title=None, legend=alt.Legend(columns=2))
    return (
        alt.Chart(table)
        .mark_bar()
        .encode(
            alt.X("sentences:Q", title="training sentence pairs", axis=alt.Axis(format="~s")),
            alt.Y("language:N", title=None, sort=list(order.index)),
            colour.scale(domain=shown, range=[colours[name] for name in shown]),
            tooltip=tips("language", "domain", "sentences|,"),
        )
        .properties(width=420, height=alt.Step(16))
    )
