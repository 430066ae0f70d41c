"""Figure 6 in its three panels: domains, language similarity and direction."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import PRINTED_SERIES
from mnmt_repro.papers.charts.theme import diagonal, tips, weight_color
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.fractions import _VALUES, CAPACITIES, ESTIMATORS

TOP = 1.6  # of the axis; bands that reach beyond it are cut


def fraction_panels(lines: pd.DataFrame, printed: pd.DataFrame | None = None) -> alt.ConcatChart:
    """Figure 6 by one estimator: a panel each for what is compared, with bands or ranges.

    Parameters
    ----------
    lines
        From `fraction_lines`, of one estimator. Colours are what is compared, dashes are
        languages, and the grey diagonal is f = p. Values beyond 1.6 are cut off.
    printed
        Values of the paper, ``panel, line, p, f``: triangles in the colours of their lines.
    """
    top = min(TOP, max(1.05, lines["f_high"].max(), lines["f"].max()))
    marks = pd.DataFrame(columns=["panel", "line", "p", "f"]) if printed is None else printed
    panels = [
        _panel(str(panel), group, top, marks[marks["panel"] == panel])
        for panel, group in lines.groupby("panel", sort=False, observed=True)
    ]
    if len(panels) == 1:
        panels = [panels[0].properties(width=300)]
    chart = alt.concat(*panels, columns=3)
    return chart.resolve_scale(color="independent", strokeDash="independent")


def _panel(
    panel: str, lines: pd.DataFrame, top: float, printed: pd.DataFrame
) -> alt.LayerChart | alt.FacetChart:
    scale = alt.Scale(domain=[0, top])
    legend = alt.Legend(
        title=None, orient="top", columns=1, symbolType="stroke", symbolOpacity=1, labelLimit=0
    )
    x = alt.X("p:Q", title="weight p", scale=alt.Scale(domain=[0, 1.02]))
    y = alt.Y("f:Q", title="effective fraction f", scale=scale)
    order = list(dict.fromkeys(lines["line"]))
    colour = alt.Color("line:N", sort=order, legend=legend)
    dash = alt.StrokeDash("language:N", legend=legend)
    detail = ["line:N", "language:N"]
    base = alt.Chart(lines.drop(columns="panel"))
    joint = (lines["estimator"] == ESTIMATORS["eq10"]).all()
    mark = base.mark_area if joint else base.mark_rule
    spread = mark(opacity=0.13 if joint else 0.5, clip=True).encode(
        x, alt.Y("f_low:Q", scale=scale), alt.Y2("f_high:Q"), colour, detail=detail
    )
    tooltip = ["line", "language", "p", *(alt.Tooltip(v, format=".3f") for v in _VALUES), "sizes"]
    line = base.mark_line(point=True, clip=True).encode(x, y, colour, dash, tooltip=tooltip)
    layers = [spread, diagonal(x, y), line]
    printed = printed[printed["line"].isin(order)]
    if len(printed):
        marks = alt.Chart(printed.drop(columns="panel")).mark_point(
            shape="triangle-up", size=170, filled=False, strokeWidth=2, opacity=1
        )
        layers.append(marks.encode(x, y, colour, tooltip=["line", "p", "f"]))
    return alt.layer(*layers).properties(title=panel, width=150, height=210)


@framed("label", "series", "value", "low", "high")
def capacity_rows(table: pd.DataFrame, printed: Mapping[str, float]) -> Rows:
    """Rows of `relative_capacity` at one weight for `forest.forest`, by both estimators.

    Parameters
    ----------
    printed
        ``what, language`` of a row, as ``"into English, German"``, to the f / p that the paper
        prints for it.
    """
    for row in table.to_dict("records"):
        label = f"{row['what']}, {row['language']}"
        for key, names in CAPACITIES.items():
            values = dict(zip(("value", "low", "high"), (row[name] for name in names), strict=True))
            yield {"label": label, "series": ESTIMATORS[key], **values}
        if label in printed:
            yield {"label": label, "series": PRINTED_SERIES, "value": printed[label]}


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
        tooltip = tips("p", "similarity", "f|.3f")
        bars = base.mark_rule(opacity=0.4).encode(x, y="f_low:Q", y2="f_high:Q", color=colour)
        line = base.mark_line(point=True).encode(x, y, colour, tooltip=tooltip)
        panels.append((bars + line).properties(title=str(language), width=220, height=240))
    return alt.hconcat(*panels).resolve_scale(color="shared")
