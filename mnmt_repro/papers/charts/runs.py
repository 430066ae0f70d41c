"""Charts of how far runs are to be trusted: trained again, and forecast from their beginnings."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import GREY, diagonal, tips, weight_color
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.results.repeats import BEGINNING, END

MINUS = "\N{MINUS SIGN}"
LEAST = 1e-10  # difference that a logarithmic axis shows


def repeats_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Differences at the end against those at the beginning; dashed, the bounds of the rule.

    Parameters
    ----------
    table
        From `repeats_table`; repeats that are identical are left out.
    """
    apart = table[table["ends"] != 0]
    shown = apart[["run", "cohort", "starts from"]].assign(
        begins=apart["begins"].abs().clip(lower=LEAST), ends=apart["ends"].abs()
    )
    x = alt.X("begins:Q", title="difference at the first point of the learning curve")
    x = x.scale(type="log").axis(format="~%", values=[10.0**n for n in range(-10, 1, 2)])
    y = alt.Y("ends:Q", title="difference of the final test loss")
    y = y.scale(type="log").axis(format="~%", values=[10.0**n for n in range(-6, 0)])
    tooltip = tips("run", "cohort", "begins|.1e", "ends|.2%")
    colour = alt.Color("starts from:N", title="starts from")
    dots = alt.Chart(shown).mark_point(size=70).encode(x, y, colour, tooltip=tooltip)
    limits = pd.DataFrame({"begins": [BEGINNING], "ends": [END]})
    rules = alt.Chart(limits).mark_rule(color=GREY, strokeDash=[6, 4])
    return (rules.encode(x=x) + rules.encode(y=y) + dots).properties(width=480, height=280)


def small(value: float) -> str:
    """A difference over many orders of magnitude, which no line is broken in.

    >>> small(0.0), small(1.23e-06)
    ('0', '+1.2e−06')
    """
    return f"{value:+.1e}".replace("-", MINUS) if value else "0"


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
