"""Charts of the same runs at several budgets."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.theme import (
    CATEGORIES,
    GREY,
    size_axis,
    size_color,
    tips,
    weight_color,
)
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.settled import TEXT_PARTS

_APART = 0.02
"""Distance of the marks of two budgets at one weight."""


def budget_laws_chart(table: pd.DataFrame) -> alt.ConcatChart:
    """Exponents (top) and slopes of the fraction (bottom, 95 %) against the weight.

    A column per pair, a colour per budget. Slopes of one weight stand side by side around it.

    Parameters
    ----------
    table
        From `laws_by_budget`.
    """
    named = table.assign(tokens=[f"{budget / 1e6:g}M tokens" for budget in table["budget"]])
    names = list(dict.fromkeys(named.sort_values("budget")["tokens"]))
    colour = alt.Color("tokens:N", title="budget")
    colour = colour.scale(domain=names, range=list(CATEGORIES[: len(names)]))
    colour = colour.legend(orient="top")  # above both rows, which share it
    middle = (len(names) - 1) / 2
    named["beside"] = named["p"] + _APART * (named["tokens"].map(names.index) - middle)
    weights = alt.Scale(domain=[0, 1])
    x = alt.X("p:Q", title="weight p", scale=weights)
    tooltip = tips("p", "tokens", "alpha|.3f", "slope|+.3f")
    pairs = sorted(named["pair"].unique())

    def exponents(pair: str) -> alt.Chart:
        y = alt.Y("alpha:Q", scale=alt.Scale(zero=False), title="exponent α")
        return (
            alt.Chart(named[named["pair"] == pair])
            .mark_line(point=True)
            .encode(x, y, colour, tooltip=tooltip)
            .properties(title=pair_name(pair), width=250, height=150)
        )

    def slopes(pair: str) -> alt.LayerChart:
        mine = named[(named["pair"] == pair) & named["slope"].notna()]
        base = alt.Chart(mine)
        weight = alt.X("beside:Q", title="weight p", scale=weights)
        zero = alt.Chart(pd.DataFrame({"slope": [0.0]})).mark_rule(color=GREY, strokeDash=[2, 3])
        y = alt.Y("slope:Q", title="slope of log f")
        bars = base.mark_rule().encode(weight, alt.Y("low:Q"), colour, y2="high:Q")
        dots = base.mark_point().encode(weight, y, colour, tooltip=tooltip)
        return (zero.encode(y=y) + bars + dots).properties(
            title=pair_name(pair), width=250, height=150
        )

    return alt.concat(*map(exponents, pairs), *map(slopes, pairs), columns=len(pairs))


def fraction_against_budget(fractions: pd.DataFrame) -> alt.VConcatChart:
    """Effective fraction against budget, a block a pair, a panel a weight, a colour a size."""
    colour = size_color()
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    x = alt.X("budget:Q", scale=scale, title="target tokens, all pairs")
    rows = []
    for pair, of_pair in fractions.groupby("pair"):
        panels = [
            alt.Chart(group[["n", "budget", "f"]])
            .mark_line(point=True)
            .encode(
                x.axis(format="~s", values=sorted(int(b) for b in group["budget"].unique())),
                alt.Y("f:Q", scale=alt.Scale(zero=False), title="effective fraction f"),
                colour,
                tooltip=tips("n", "budget", "f|.3f"),
            )
            .properties(title=f"{pair_name(str(pair))}, p = {p:g}", width=230, height=150)
            for p, group in of_pair.groupby("p")
        ]
        rows.append(alt.concat(*panels, columns=2).resolve_scale(color="shared"))
    return alt.vconcat(*rows).resolve_scale(color="shared")


def equal_text_chart(parts: pd.DataFrame) -> alt.FacetChart:
    """Both parts against size: a column a pair, a row a part, a colour a weight.

    Parameters
    ----------
    parts
        From `split_gap`, not empty.
    """
    long = parts.melt(["pair", "p", "n"], list(TEXT_PARTS), var_name="part", value_name="nats")
    long = long.assign(pair=long["pair"].map(pair_name), part=long["part"].map(TEXT_PARTS))
    base = alt.Chart(long)
    line = base.mark_line(point=True).encode(
        x=size_axis(),
        y=alt.Y("nats:Q", title="nats per token"),
        color=weight_color(list(long["p"])),
        tooltip=tips("part", "p", "n", "nats|+.3f"),
    )
    zero = base.mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=alt.datum(0))
    return (
        (zero + line)
        .properties(width=250, height=170)
        .facet(
            row=alt.Row("part:N", title=None, sort=list(TEXT_PARTS.values())),
            column=alt.Column("pair:N", title=None),
        )
    )


def exponent_chart(table: pd.DataFrame) -> alt.ConcatChart:
    """Exponent at the least weight over that at p = 1, by setting, a panel a pair.

    Parameters
    ----------
    table
        From `other_causes`.
    """
    share = table["α, least weight"] / table["α alone"]
    rows = pd.DataFrame({"group": table["pair"], "label": table["fitted to"], "value": share})
    return forest(rows, "exponent at the least weight / at p = 1", marks={"": 1})
