"""Estimates with their intervals, a row each: the chart that stands in place of a table."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_repro.figures.theme import CATEGORIES, GREY, INK

ROW, OFFSET = 18, 7  # pixels of a row, and of each further series in it
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def interval_chart(
    table: pd.DataFrame,
    title: str | list[str],
    *,
    marks: Mapping[str, float] | None = None,
    log: bool = False,
    domain: tuple[float, float] | None = None,
    form: str = "~r",
    width: int = 330,
) -> alt.LayerChart | alt.FacetChart:
    """Draw a row for each label, and a colour and shape for each series.

    Parameters
    ----------
    table
        ``label, value``; where wanted ``low, high`` and ``series``, at most five. Rows keep their
        order; those without a value are left out.
    title
        Of the horizontal axis, perhaps in several lines.
    marks
        Dashed vertical lines: what each stands for, to its place.
    log, form
        Of the horizontal axis: whether it is logarithmic, and how its numbers are written.
    domain
        Of that axis; an interval that leaves it is cut off. By default all is shown.
    """
    rows = table.reindex(columns=["label", "series", "value", "low", "high"])
    rows = rows.dropna(subset=["value"]).fillna({"series": ""})
    labels, series = list(dict.fromkeys(rows["label"])), list(dict.fromkeys(rows["series"]))
    known = list(dict.fromkeys(table["series"])) if "series" in table else series
    values = [*rows[["value", "low", "high"]].stack(), *(marks or {}).values()]
    ends = list(domain or (min(values), max(values)))
    if domain:
        rows = rows.assign(low=rows["low"].clip(*ends), high=rows["high"].clip(*ends))
    scale = alt.Scale(type="log" if log else "linear", domain=ends, nice=False, padding=8)
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(format=form, tickCount=5))
    y = alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(labelLimit=240, grid=True))
    legend = alt.Legend(title=None, columns=1, values=series) if len(series) > 1 else None
    colours = alt.Scale(domain=known, range=list(CATEGORIES[: len(known)]))
    shapes = alt.Scale(domain=known, range=list(_SHAPES[: len(known)]))
    base = alt.Chart(rows).encode(y=y, color=alt.Color("series:N", scale=colours, legend=legend))
    several = rows["low"].notna().any() and rows.groupby("label")["series"].nunique().max() > 1
    if several:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=series))
    tooltip = ["label", "series", *(alt.Tooltip(c, format=".3g") for c in ("value", "low", "high"))]
    layers: list[alt.Chart] = [
        base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        base.mark_point(size=48, filled=True).encode(
            x=x, shape=alt.Shape("series:N", scale=shapes, legend=legend), tooltip=tooltip
        ),
    ]
    if marks:
        lines = pd.DataFrame({"value": list(marks.values()), "mark": list(marks)})
        at = alt.Chart(lines).encode(x=alt.X("value:Q", scale=scale))
        text = at.mark_text(align="left", baseline="bottom", dx=3, dy=-3, fontSize=11, color=INK)
        layers = [at.mark_rule(strokeDash=[4, 3], color=GREY), *layers]
        layers.append(text.encode(y=alt.value(0), text="mark:N"))
    height = (ROW + OFFSET * several * (len(series) - 1)) * len(labels) + 4
    return alt.layer(*layers, width=width, height=height)
