"""The chart of the effective fraction against the similarity of the targets."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.analysis.fraction_lines import ESTIMATORS
from mnmt_repro.figures.theme import weight_color


def similarity_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Fraction by the joint law against similarity, a panel a language, a colour a weight.

    Parameters
    ----------
    table
        From `by_similarity`.
    """
    joint = table[table["estimator"] == ESTIMATORS["eq10"]]
    colour = weight_color(list(joint["p"]))
    panels = []
    for language, group in joint.groupby("language", sort=False):
        base = alt.Chart(group[["p", "similarity", "f", "f_low", "f_high"]])
        x = alt.X("similarity:Q", title="share of the lexicon in common", axis=alt.Axis(format="%"))
        y = alt.Y("f:Q", title="effective fraction", scale=alt.Scale(zero=True))
        tooltip = ["p", "similarity", alt.Tooltip("f", format=".3f")]
        bars = base.mark_rule(opacity=0.4).encode(x, y="f_low:Q", y2="f_high:Q", color=colour)
        line = base.mark_line(point=True).encode(x, y, colour, tooltip=tooltip)
        panels.append((bars + line).properties(title=str(language), width=220, height=240))
    return alt.hconcat(*panels).resolve_scale(color="shared")
