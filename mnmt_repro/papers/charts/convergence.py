"""Charts of the convergence correction: Appendix G on our runs."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.theme import diagonal, size_axis, weight_color
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.convergence import STATES


def cells_chart(found: pd.DataFrame) -> alt.ConcatChart:
    """Distance from the law of each corrected cell, before and after the correction.

    Parameters
    ----------
    found
        From `corrected_cells`.
    """
    label = [f"{row.pair}, N = {row.n:,}" for row in found.itertuples()]
    long = found.assign(label=label).melt("label", ["before", "after"], "series")
    return forest(long, "distance from the law", marks={"": 0}, form="+.0%")


def law_chart(points: pd.DataFrame, curves: pd.DataFrame) -> alt.VConcatChart:
    """Loss against size with the correction off (left) and on (right), a row a pair.

    Parameters
    ----------
    points, curves
        From `law_data`. Corrected cells are squares.
    """
    rows: list[alt.HConcatChart] = []
    colour = weight_color(list(points["p"]))
    for pair, of_pair in points.groupby("pair"):
        panels = []
        for state in STATES:
            group = of_pair[of_pair["state"] == state]
            lines = curves[(curves["pair"] == pair) & (curves["state"] == state)]
            x = size_axis()
            low, high = of_pair["loss"].min(), of_pair["loss"].max()
            scale = alt.Scale(zero=False, domain=[low, high], padding=8)
            y = alt.Y("loss:Q", scale=scale, title="test loss (nats per token)")
            shape = alt.Shape("cell:N", title=None)
            shape = shape.scale(domain=["corrected", "left alone"], range=["square", "circle"])
            named = group.assign(cell=np.where(group["moved"], "corrected", "left alone"))
            dots = (
                alt.Chart(named[["p", "n", "loss", "cell"]])
                .mark_point(size=60)
                .encode(x, y, colour, shape=shape, tooltip=["p", "n", "loss"])
            )
            law = alt.Chart(lines[["p", "n", "loss"]]).mark_line(clip=True).encode(x, y, colour)
            title = f"{pair_name(str(pair))}, {state}"
            panels.append((law + dots).properties(title=title, width=230, height=220))
        rows.append(alt.hconcat(*panels))
    return alt.vconcat(*rows)


def curve_chart(seen: pd.DataFrame, law: pd.DataFrame) -> alt.HConcatChart:
    """Validation loss against step (dots) and the power law beyond the end (dashed), by pair."""
    panels = []
    for pair, group in seen.groupby("pair"):
        x = alt.X("step:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="updates")
        y = alt.Y("loss:Q", scale=alt.Scale(zero=False), title="validation loss (nats per token)")
        colour = alt.Color("size:N", title="model")
        dots = alt.Chart(group).mark_point().encode(x, y, colour, tooltip=["size", "step", "loss"])
        line = alt.Chart(law[law["pair"] == pair]).mark_line(strokeDash=[6, 4]).encode(x, y, colour)
        title = f"{pair_name(str(pair))}, p = {group['p'].iloc[0]:g}"
        panels.append((dots + line).properties(title=title, width=240, height=240))
    return alt.hconcat(*panels)


def trust_chart(found: pd.DataFrame) -> alt.HConcatChart:
    """What the loss still fell against what was predicted, a panel a pair; on the line if right."""
    panels = []
    for pair, group in found.assign(predicted_fall=found["reached"] - found["predicted"]).groupby(
        "pair"
    ):
        end = float(max(group["fall"].max(), group["predicted_fall"].max()))
        x = alt.X("predicted_fall:Q", title="fall predicted (nats per token)")
        y = alt.Y("fall:Q", title="fall observed (nats per token)")
        dots = (
            alt.Chart(group[["p", "n", "predicted_fall", "fall"]])
            .mark_point()
            .encode(x, y, weight_color(list(found["p"])), tooltip=["p", "n"])
        )
        panel = (diagonal(x, y, (0, end)) + dots).properties(
            title=pair_name(str(pair)), width=220, height=220
        )
        panels.append(panel)
    return alt.hconcat(*panels)
