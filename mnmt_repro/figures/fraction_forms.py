"""The chart of both forms of the fraction: Figures 7 and 18, left."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from mnmt_repro.analysis.fraction_forms import form_curves
from mnmt_repro.analysis.fractions import fractions
from mnmt_repro.analysis.names import pair_name
from mnmt_repro.analysis.scaling import PairFits
from mnmt_repro.figures.theme import diagonal
from mnmt_repro.laws import FractionFit


def form_chart(fits: PairFits, laws: Mapping[str, Mapping[str, FractionFit]]) -> alt.HConcatChart:
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
        points = seen.mark_point(color="black").encode(
            x, y, tooltip=["p", alt.Tooltip("f", format=".3f")]
        )
        bars = seen.mark_rule(color="black", opacity=0.4).encode(x, y="f_low:Q", y2="f_high:Q")
        panel = (diagonal(x, y) + bars + lines + points).properties(width=230, height=240)
        panels.append(panel.properties(title=pair_name(str(pair))))
    return alt.hconcat(*panels)
