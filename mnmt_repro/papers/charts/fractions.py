"""Charts of fractions against size, and of the trade-off frontier: Figures 7 and 18."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit, frontier
from mnmt_repro.laws.fraction import Form
from mnmt_repro.papers.charts.theme import (
    LIGHTER,
    diagonal,
    size_color,
    tips,
)
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.fractions import form_curves, fractions, observed_frontier
from mnmt_repro.papers.effects.scaling import PairFits

BAND_DRAWS = 300
_EVERY, _DIGITS = 3, 4  # points of a curve that are drawn, and decimals of a loss, for small pages


def frontier_chart(
    laws: Mapping[str, FractionFit],
    points: pd.DataFrame,
    title: str = "loss (nats per token)",
    least: float | None = None,
) -> alt.LayerChart:
    """Figures 7 and 18: predicted frontier (dashed) and observed trade-offs, a colour a size.

    The band of a curve joins the lower and the upper 95 % limits of the law, by refits to resampled
    residuals.

    Parameters
    ----------
    points
        With the column ``loss``, which may hold a score that the laws were fitted to.
    title
        What it is, for the axes.
    least
        At which the axes begin; by default where what is drawn does.

    Raises
    ------
    InputError
        When the laws are not of two pairs.
    """
    if len(laws) != 2:
        raise InputError(f"a frontier is drawn for two pairs, got {', '.join(laws)}")
    first, second = sorted(laws)
    seen = observed_frontier(points)
    predicted = frontier(laws, sorted(seen["n"].unique()), draws=BAND_DRAWS)
    edges = predicted.pivot(
        index=["n", "point"], columns="pair", values=["loss", "low", "high"]
    ).reset_index()
    for pair in (first, second):  # the curves run to infinity; keep what the points span
        low, high = seen[pair].min(), seen[pair].max()
        margin = 0.05 * (high - low)
        edges = edges[edges["loss", pair].between(low - margin, high + margin)]
    edges = edges[edges["point"] % _EVERY == 1].round(_DIGITS)  # with that of equal weights

    def side(edge: str, order: int) -> pd.DataFrame:
        return pd.DataFrame(
            {"n": edges["n"], "place": order * (1 + edges["point"])}
            | {pair: edges[edge, pair] for pair in (first, second)}
        )

    colour = size_color()
    scale = alt.Scale(zero=False)
    if least is not None:
        scale.domainMin = least
    x = alt.X(f"{first}:Q", scale=scale, title=f"{pair_name(first)}, {title}")
    y = alt.Y(f"{second}:Q", scale=scale, title=f"{pair_name(second)}, {title}")
    # Out along the high edge and back along the low one.
    around = pd.concat([side("high", -1), side("low", 1)]).sort_values(["n", "place"])
    band = alt.Chart(around).mark_line(filled=True, strokeWidth=0, fillOpacity=0.15, clip=True)
    curves = alt.Chart(side("loss", 1)).mark_line(strokeDash=[6, 4], clip=True)
    dots = alt.Chart(seen).mark_point().encode(x, y, colour, tooltip=["n", "p", first, second])
    fill = alt.Fill("n:O", scale=LIGHTER, legend=None)
    return (
        band.encode(x, y, fill, order="place:Q")
        + curves.encode(x, y, colour, order="place:Q")
        + dots
    ).properties(width=440, height=400)


def form_chart(fits: PairFits, laws: Mapping[Form, Mapping[str, FractionFit]]) -> alt.HConcatChart:
    """Figures 7 and 18, left: fractions of the joint law (dots, 95 %) and both forms of f̂.

    Dotted: f = p.
    """
    dots, curves = fractions(fits), form_curves(laws)
    panels = []
    for pair, group in curves.groupby("pair"):
        x = alt.X("p:Q", title="weight p", scale=alt.Scale(domain=[0, 1]))
        y = alt.Y("f:Q", title="effective fraction f")
        lines = (
            alt.Chart(group[["form", "p", "f"]])
            .mark_line()
            .encode(
                x,
                y,
                color=alt.Color("form:N", title="fraction"),
                strokeDash=alt.StrokeDash("form:N", title="fraction"),
            )
        )
        own = dots[dots["pair"] == pair]
        seen = alt.Chart(own[["p", "f", "f_low", "f_high"]])
        points = seen.mark_point(color="black").encode(x, y, tooltip=tips("p", "f|.3f"))
        bars = seen.mark_rule(color="black", opacity=0.4).encode(x, y="f_low:Q", y2="f_high:Q")
        panel = (diagonal(x, y) + bars + lines + points).properties(width=230, height=240)
        panels.append(panel.properties(title=pair_name(str(pair))))
    return alt.hconcat(*panels)
