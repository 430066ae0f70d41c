"""Charts of what training changes in old weights: Paper B's Figures 3, 5 and 6."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, tips
from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, INTO, OUT, foreign
from mnmt_repro.papers.effects.forgetting import BLOCKS, SETTINGS

STACKS = ("encoder", "decoder")
SIDES = (OUT, INTO)
_COLOUR = alt.Scale(domain=list(SETTINGS.values()), range=[CATEGORIES[0], CATEGORIES[1]])
_EDGE = math.sqrt(10)  # a bin of Fisher information is half a decade


def forgotten_chart(points: pd.DataFrame) -> alt.HConcatChart:
    """Figures 3 and 6 left: a panel a side, a row a language, a dot a setting, joined by a line.

    A star marks languages that are up-sampled as relatives of added ones.
    """
    star = points["pair"].map(foreign).isin(GROUPINGS["Mt25"].related)
    points = points.assign(language=points["language"] + star.map({True: " *", False: ""}))
    order = list(dict.fromkeys(points["language"]))
    ends = [float(points["rise"].min()), float(points["rise"].max())]
    scale = alt.Scale(domain=ends, padding=6)
    x = alt.X("rise:Q", scale=scale, title="loss added (nats per token)").axis(tickCount=5)
    y = alt.Y("language:N", sort=order, title=None)
    colour = alt.Color("setting:N", title=None, scale=_COLOUR)
    tooltip = tips("language", "setting", "rise|.3f", "pairs", "seeds")
    panels = []
    for side in SIDES:
        base = alt.Chart(points[points["direction"] == side])
        joined = base.mark_line(color=GREY, strokeWidth=1).encode(x, y, detail="pair:N")
        dots = base.mark_point(opacity=1).encode(x, y, colour, tooltip=tooltip)
        panels.append((joined + dots).properties(title=side, width=215, height=alt.Step(16)))
    return alt.hconcat(*panels).resolve_scale(color="shared")


def moved_chart(points: pd.DataFrame) -> alt.HConcatChart:
    """Figure 5: distance by layer, a panel a stack, a colour a block, dashed without scaling."""
    shown = points.assign(name="L" + points["layer"].astype(str))
    y = alt.Y("distance:Q", title="Frobenius distance")
    colour = alt.Color("block:N", title=None, sort=list(BLOCKS.values())).legend(labelLimit=200)
    dash = alt.StrokeDash("setting:N", title=None)
    dash = dash.scale(domain=list(SETTINGS.values()), range=[[1, 0], [5, 4]])
    dash = dash.legend(symbolType="stroke")
    tooltip = tips("name", "block", "setting", "distance|.3f", "seeds")
    panels = []
    for stack in STACKS:
        here = shown[shown["stack"] == stack]
        order = list(dict.fromkeys(here["name"]))
        x = alt.X("name:N", sort=order, axis=alt.Axis(labelAngle=0), title="layer")
        line = alt.Chart(here).mark_line(point=True)
        panel = line.encode(x, y, colour, dash, detail=["block:N", "setting:N"], tooltip=tooltip)
        panels.append(panel.properties(title=stack, width=230, height=260))
    return alt.hconcat(*panels).resolve_scale(y="shared")


def fisher_chart(bins: pd.DataFrame, marked: pd.DataFrame) -> alt.LayerChart:
    """Figure 6 right, with a line at each of `thresholds`.

    The ends of the axis hold whatever lies beyond: at its left weights of less information or none.
    """
    first, last = bins["high"].min(), bins["low"].max()
    shown = bins.assign(
        left=bins["low"].where(bins["low"] > 0, first / _EDGE),
        right=bins["high"].where(bins["high"] < math.inf, last * _EDGE),
    ).drop(columns=["low", "high"])  # infinity is no JSON
    scale = alt.Scale(type="log", nice=False)
    x = alt.X("left:Q", scale=scale, axis=alt.Axis(format=".0e"), title="Fisher information")
    tooltip = tips("left|.1e", "right|.1e", "share|.2%", "share above|.2%")
    bars = alt.Chart(shown).mark_bar(color=CATEGORIES[0], opacity=0.8).encode(
        x,
        alt.X2("right:Q"),
        alt.Y("share:Q", axis=alt.Axis(format="%"), title="share of the old weights"),
        alt.Y2(datum=0),
        tooltip=tooltip,
    )  # fmt: skip
    lines = alt.Chart(marked.assign(label=[f"{share:.0%}" for share in marked["share"]]))
    at = alt.X("ours:Q", scale=scale)
    rule = lines.mark_rule(color=CATEGORIES[1], strokeDash=[6, 4]).encode(at)
    text = lines.mark_text(baseline="bottom", color=CATEGORIES[1]).encode(
        at, alt.Text("label:N"), y=alt.value(-3)
    )
    return (bars + rule + text).properties(width=540, height=260)
