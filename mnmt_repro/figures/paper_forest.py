"""Forest plots: our differences with their intervals, beside those that a paper prints."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.figures.theme import CATEGORIES, GREY

HERE = "Here: gain in % of the loss"
PRINTED = "Paper B: gain in spBLEU"
_ROW = 13  # pixels for each mark of a row


def two_sides(cells: pd.DataFrame) -> pd.DataFrame:
    """Turn each cell into a row for our gain and a row for the printed difference.

    Parameters
    ----------
    cells
        With the columns `variants.GAIN`, ``difference`` and, where the paper tests its
        differences, ``mark``, as `ablations.cells` returns them. Cells without our gain are left
        out.

    Returns
    -------
    DataFrame
        ``side`` (`HERE` or `PRINTED`), ``value, low, high``, and ``clear``: whether our interval
        leaves zero out, or the paper marks the difference; and the columns of the cells that name
        them.
    """
    known = cells.dropna(subset=["gain, %"])
    names = known[[name for name in _NAMES if name in known]]
    clear = known["low"] * known["high"] > 0
    ours = names.assign(
        side=HERE, value=known["gain, %"], low=known["low"], high=known["high"], clear=clear
    )
    marked = known["mark"] != "" if "mark" in known else False
    printed = names.assign(side=PRINTED, value=known["difference"], clear=marked)
    return pd.concat([ours, printed.dropna(subset=["value"])], ignore_index=True)


_NAMES = ("variant", "group", "pair", "grouping", "up-sampled")


def gains_forest(
    sides: pd.DataFrame, *, rows: str, colour: str, offset: str = "", title: str = ""
) -> alt.FacetChart:
    """Draw our gains with 95 % intervals, and the printed differences on the same rows.

    A filled mark is a difference that is clear of zero. Each side has a scale of its own.

    Parameters
    ----------
    sides
        From `two_sides`.
    rows, colour
        Columns of the vertical axis and of the colour, in the order of the frame.
    offset
        Column by which the marks of one row are moved apart; `colour` by default.
    title
        Title of the legend.
    """
    offset = offset or colour
    order, shades, apart = (list(dict.fromkeys(sides[name])) for name in (rows, colour, offset))
    axis = alt.Axis(labelLimit=220, grid=True, ticks=False, tickBand="extent")
    y = alt.Y(f"{rows}:N", sort=order, title=None, axis=axis)
    at = alt.YOffset(f"{offset}:N", sort=apart, scale=alt.Scale(paddingOuter=0.5))
    low = alt.X(
        "low:Q", title="← worse\u2003\u2003better →", scale=alt.Scale(nice=False, padding=8)
    )
    scale = alt.Scale(domain=shades, range=list(CATEGORIES[: len(shades)]))
    colours = alt.Color(f"{colour}:N", scale=scale, title=title or None)
    tooltip = [
        *(alt.Tooltip(f"{name}:N") for name in dict.fromkeys((rows, colour, offset))),
        *(alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("value", "low", "high")),
    ]
    base = alt.Chart().encode(y=y, yOffset=at)
    zero = alt.Chart().mark_rule(color=GREY).encode(x=alt.datum(0))
    lines = base.mark_rule(strokeWidth=1.4).encode(low, x2="high:Q", color=colours)
    marks = base.encode(x="value:Q", tooltip=tooltip)
    dots = marks.mark_point(size=46, opacity=1).encode(color=colours)
    holes = marks.transform_filter("!datum.clear").mark_point(size=14, opacity=1, color="white")
    drawn = [side for side in (HERE, PRINTED) if side in set(sides["side"])]
    return (
        alt.layer(zero, lines, dots, holes, data=sides)
        .properties(width=220, height=len(order) * (_ROW * len(apart) + 6))
        .facet(facet=alt.Facet("side:N", sort=drawn, title=None), columns=len(drawn))
        .resolve_scale(x="independent")
    )
