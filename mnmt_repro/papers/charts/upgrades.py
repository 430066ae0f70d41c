"""The chart of leads of upgraded models over those from scratch: Paper B's Table 1."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.papers.charts.forest import PRINTED_SERIES, forest
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, tips
from mnmt_repro.papers.cohorts.conlang_upgrade import SIMILARITIES, UPGRADE_SHARES
from mnmt_repro.papers.effects.updates_saved import LIKE, UNLIKE
from mnmt_repro.papers.effects.upgrades import (
    LAST_SHARES,
    MODEL_CHANGES,
    PRINTED,
    SCRATCH,
    TARGET,
    TEST,
    UPGRADED,
)


def lead_chart(table: pd.DataFrame, title: str = "better than from scratch, %") -> alt.ConcatChart:
    """Leads with their intervals, a panel an upgraded model, a row a group of languages.

    Parameters
    ----------
    table
        With the columns `LEAD`; a diamond is what the paper prints.
    title
        Of the axis.
    """
    ours = table.assign(value=table["lead"], series="ours: lower loss")
    paper = table.assign(value=table["paper"], series=PRINTED_SERIES)
    rows = pd.concat([ours, paper.drop(columns=["low", "high"])])
    rows = rows.assign(label=rows["group"], group=rows["upgraded"].map(_titled))
    return forest(rows, title, marks={"": 0})


def _titled(model: str) -> str:
    """Title of a panel: the shape of an upgraded model or its name, and its updates.

    >>> _titled("Mt25-wide"), _titled("M25, rate halved, 130%")
    ('wider, 50% of the updates', 'M25, rate halved, 130% of the updates')
    """
    name, *last = model.rsplit(", ", 1)
    share = last[0] if last else f"{LAST_SHARES[name]:.0%}"
    return f"{MODEL_CHANGES.get(name, name)}, {share} of the updates"


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
                tooltip=tips("similarity", "group", "loss|.3f"),
            )
            .properties(title=[model, f"{updates:.0%} of updates"], width=150, height=200)
        )
    return alt.hconcat(*panels).resolve_scale(color="shared", y="shared")


def quality_chart(points: pd.DataFrame) -> alt.HConcatChart:
    """Paper B's Figure 4: share of the baseline's quality against updates, a panel a shape.

    Parameters
    ----------
    points
        From `figure4`, with some quality known.
    """
    x = alt.X("updates:Q", title="share of its updates")
    x = x.scale(type="log", nice=False, padding=8).axis(format="~%", values=[0.001, 0.01, 0.1, 1.0])
    y = alt.Y("quality:Q", axis=alt.Axis(format="%"))
    colours = alt.Scale(domain=[UPGRADED, SCRATCH], range=list(CATEGORIES[:2]))
    colour = alt.Color("model:N", scale=colours, title=None)
    shapes = alt.Scale(domain=[TEST, PRINTED], range=["circle", "diamond"])
    shape = alt.Shape("points:N", scale=shapes, title=None)
    tooltip = tips("model", "points", "updates|.1%", "loss|.3f", "quality|.1%")
    target = alt.Chart(pd.DataFrame({"quality": [TARGET]}))
    rule = target.mark_rule(strokeDash=[6, 4], color=GREY).encode(y=y)
    panels: list[alt.LayerChart | alt.FacetChart] = []
    for name, group in points.dropna(subset=["quality"]).groupby("shape", sort=False):
        titled = y.title(None if panels else "share of the baseline's quality")
        lines = alt.Chart(group[group["points"] == "validation"]).mark_line(strokeWidth=1)
        dots = alt.Chart(group[group["points"].isin([TEST, PRINTED])]).mark_point(opacity=1)
        panels.append(
            alt.layer(
                rule.encode(titled),
                lines.encode(x, titled, colour, detail="seed:N"),
                dots.encode(x, titled, colour, shape, tooltip=tooltip),
            ).properties(title=str(name), width=150, height=220)
        )
    return alt.hconcat(*panels).resolve_scale(color="shared", shape="shared")


def reached(share: float) -> str:
    """A share of `compute_to_reach` as a table shows it.

    >>> reached(0.0625), reached(math.inf)
    ('6.2%', 'not reached')
    """
    return "not reached" if math.isinf(share) else f"{share:.1%}"
