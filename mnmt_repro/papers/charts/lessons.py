"""Charts of the lessons that are too long to be read in a cell."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, size_axis, sliders

SLIDERS = {
    "alpha": ("exponent α ", 0.0, 1.5, 0.01, 0.5),
    "log_beta": ("log₁₀ of factor β ", 0.0, 5.0, 0.01, 2.0),
    "l_inf": ("irreducible loss L∞ ", 0.0, 1.0, 0.005, 0.0),
}
"""Parameter of the chart to its label, lowest and highest value, step, and value at the start."""


def law_sliders(points: pd.DataFrame, floor: float) -> alt.LayerChart | alt.FacetChart:
    """Observed losses and a power law that the reader sets with three sliders.

    Parameters
    ----------
    points
        ``n`` (parameters) and ``loss`` (nats per token), a row for each size.
    floor
        The exact irreducible loss, nats per token.
    """
    params = sliders(*((name, *about) for name, about in SLIDERS.items()))
    first, last = np.log10(points["n"].min()) - 0.1, np.log10(points["n"].max()) + 0.5
    heights = [0.7 * floor, 1.5 * points["loss"].max()]
    y = alt.Y("loss:Q", title="test loss, nats per token")
    y = y.scale(type="log", domain=heights, nice=False).axis(tickCount=6, format="~g")
    x = size_axis()
    law = "l_inf + pow(10, log_beta) * pow(datum.n, -alpha)"
    curve = (
        alt.Chart(alt.sequence(first, last, 0.02, as_="log_n"))
        .transform_calculate(n="pow(10, datum.log_n)")
        .transform_calculate(loss=law)
        .mark_line(color=CATEGORIES[0], clip=True)
        .encode(x, y)
    )
    dots = alt.Chart(points).mark_point(color=CATEGORIES[1], filled=True, size=60)
    dots = dots.encode(x, y, tooltip=["n:Q", "loss:Q"])
    at_floor = alt.Chart(pd.DataFrame({"loss": [floor]})).encode(y)
    exact = at_floor.mark_rule(strokeDash=[4, 3], color=GREY)
    named = at_floor.mark_text(text="exact floor", align="right", baseline="bottom", dx=-4, dy=-2)
    error = (
        alt.Chart(points)
        .transform_calculate(squared=f"pow(({law}) / datum.loss - 1, 2)")
        .transform_aggregate(mean="mean(squared)")
        .transform_calculate(said="'typical error: ' + format(sqrt(datum.mean), '.0%')")
        .mark_text(align="left", fontSize=14, fontWeight=600, color=CATEGORIES[0])
        .encode(text="said:N", x=alt.value(10), y=alt.value(225))
    )
    exact += named.encode(x=alt.value("width"))
    drawn = alt.layer(curve, exact, dots, error).add_params(*params)
    return drawn.properties(width=450, height=240)
