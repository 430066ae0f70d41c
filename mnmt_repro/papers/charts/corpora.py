"""The chart of a corpus: its sentences by domain."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import looks
from mnmt_repro.papers.effects.corpora import DOMAINS


def domain_chart(table: pd.DataFrame) -> alt.Chart:
    """Stacked bars of `domains`, a row per language, the largest on top."""
    order = table.groupby("language")["sentences"].sum().sort_values(ascending=False)
    shown = [name for name in DOMAINS.values() if name in set(table["domain"])]
    return (
        alt.Chart(table)
        .mark_bar()
        .encode(
            alt.X("sentences:Q", title="training sentence pairs", axis=alt.Axis(format="~s")),
            alt.Y("language:N", title=None, sort=list(order.index)),
            looks("domain:N", shown, alt.Legend(title=None, columns=2))["color"],
            tooltip=["language", "domain", alt.Tooltip("sentences", format=",")],
        )
        .properties(width=420, height=alt.Step(16))
    )
