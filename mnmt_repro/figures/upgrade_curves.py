"""The chart of quality against updates: Paper B's Figure 4."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from mnmt_repro.analysis.upgrade_curves import PRINTED, SCRATCH, TARGET, TEST, UPGRADED
from mnmt_repro.figures.theme import CATEGORIES, GREY


def quality_chart(points: pd.DataFrame) -> alt.HConcatChart:
    """Figure 4: share of the baseline's quality against updates, a panel a shape.

    Parameters
    ----------
    points
        From `figure4`, with some quality known.
    """
    x = alt.X(
        "updates:Q",
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=alt.Axis(format="~%", values=[0.001, 0.01, 0.1, 1.0]),
        title="share of its updates",
    )
    y = alt.Y("quality:Q", axis=alt.Axis(format="%"), title=None)
    colours = alt.Scale(domain=[SCRATCH, UPGRADED], range=list(CATEGORIES[:2]))
    colour = alt.Color("model:N", scale=colours, title=None)
    shapes = alt.Scale(domain=[TEST, PRINTED], range=["circle", "diamond"])
    shape = alt.Shape("points:N", scale=shapes, title=None)
    tooltip = [
        "model",
        "points",
        alt.Tooltip("updates", format=".1%"),
        alt.Tooltip("loss", format=".3f"),
        alt.Tooltip("quality", format=".1%"),
    ]
    target = alt.Chart(pd.DataFrame({"quality": [TARGET]}))
    rule = target.mark_rule(strokeDash=[6, 4], color=GREY).encode(y=y)
    panels = []
    for name, group in points.dropna(subset=["quality"]).groupby("shape", sort=False):
        lines = alt.Chart(group[group["points"] == "validation"]).mark_line(strokeWidth=1)
        dots = alt.Chart(group[group["points"].isin([TEST, PRINTED])]).mark_point(opacity=1)
        panels.append(
            alt.layer(
                rule,
                lines.encode(x, y, colour, detail="seed:N"),
                dots.encode(x, y, colour, shape, tooltip=tooltip),
            ).properties(title=str(name), width=150, height=220)
        )
    title = alt.TitleParams("share of the baseline's quality", fontSize=12, fontWeight="normal")
    return alt.hconcat(*panels, title=title).resolve_scale(color="shared", shape="shared")


def reached(share: float) -> str:
    """A share of `compute_to_reach` as a table shows it.

    >>> reached(0.0625), reached(math.inf)
    ('6.2%', 'not reached')
    """
    return "not reached" if math.isinf(share) else f"{share:.1%}"
