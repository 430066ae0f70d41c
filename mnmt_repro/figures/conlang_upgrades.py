"""The chart of added languages that are alike an old one, or like none."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.analysis.conlang_upgrades import LIKE, UNLIKE
from mnmt_repro.experiments.conlang_upgrade import (
    SIMILARITIES,
    UPGRADE_SHARES,
)
from mnmt_repro.figures.theme import CATEGORIES


def added_language_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Loss of both added languages against similarity, a panel a model.

    Parameters
    ----------
    table
        From `losses`, with some rows of added languages.
    """
    added = table[table["group"].isin([LIKE, UNLIKE])]
    colours = alt.Scale(domain=[LIKE, UNLIKE], range=list(CATEGORIES[:2]))
    colour = alt.Color("group:N", title=None, scale=colours)
    panels = []
    for model, updates in (("from scratch", 1.0), *(("upgraded", s) for s in UPGRADE_SHARES)):
        shown = added[(added["model"] == model) & np.isclose(added["updates"], updates)]
        panels.append(
            alt.Chart(shown)
            .mark_line(point=True)
            .encode(
                alt.X("similarity:Q", axis=alt.Axis(values=list(SIMILARITIES))),
                alt.Y("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)"),
                colour,
                tooltip=["similarity", "group", alt.Tooltip("loss", format=".3f")],
            )
            .properties(title=[model, f"{updates:.0%} of updates"], width=150, height=200)
        )
    return alt.hconcat(*panels).resolve_scale(color="shared", y="shared")
