"""How far runs are to be trusted: differences in words, and forecasts from their beginnings."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import diagonal, weight_colours
from mnmt_repro.papers.cohorts.names import pair_name

MINUS = "\N{MINUS SIGN}"


def small(value: float) -> str:
    r"""A share in per cent, over many orders of magnitude, which no line is broken in.

    >>> small(0.0), small(1.23e-05), small(-0.0207)
    ('0', '+0.0012\xa0%', '−2.1\xa0%')
    """
    return f"{100 * value:+.2g}\N{NO-BREAK SPACE}%".replace("-", MINUS) if value else "0"


def trust_chart(extrapolated: pd.DataFrame) -> alt.HConcatChart:
    """What the loss still fell against what was predicted, a panel a pair; on the line if right."""
    weights = sorted(set(extrapolated["p"]))
    colour = alt.Color("p:O", title="weight p", legend=alt.Legend(columns=5, symbolOpacity=1))
    colour = colour.scale(domain=weights, range=weight_colours(weights))
    panels = []
    for pair, group in extrapolated.assign(
        predicted_fall=extrapolated["reached"] - extrapolated["predicted"]
    ).groupby("pair"):
        end = float(max(group["fall"].max(), group["predicted_fall"].max()))
        x = alt.X("predicted_fall:Q", title="fall predicted (nats per token)")
        y = alt.Y("fall:Q", title="fall observed (nats per token)")
        dots = alt.Chart(group[["p", "n", "predicted_fall", "fall"]]).mark_point()
        dots = dots.encode(x, y, colour, tooltip=["p", "n"])
        panel = diagonal(x, y, (0, end)) + dots
        panels.append(panel.properties(title=pair_name(str(pair)), width=220, height=220))
    return alt.hconcat(*panels)
