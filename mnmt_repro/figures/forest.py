"""Estimates with their intervals in rows, beside what a paper prints: in place of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from mnmt_repro.claims.claim_measures import claim_measures
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.figures.theme import CATEGORIES, GREY, INK

PRINTED_SERIES = "the paper"
"""The series of printed values: black diamonds, without an interval."""
SLOT = 13  # pixels: a row has one for its label and one for each series
_SHAPES = ("circle", "square", "triangle-up", "triangle-down")


def forest(
    table: pd.DataFrame,
    *,
    title: str,
    log: bool = False,
    reference: float | None = None,
    form: str = "~g",
    width: int = 330,
) -> alt.VConcatChart:
    """Draw a row for each label, a panel for each group, and a colour and shape for each series.

    Labels stand above their rows, so that the chart is narrow enough for a phone.

    Parameters
    ----------
    table
        ``label, value``, and where wanted ``low, high, group, series``. Rows keep their order.
    title
        Of the horizontal axis.
    log
        Whether that axis is logarithmic.
    reference
        Where a dashed line stands, such as 1 for a ratio.
    form
        Of the numbers on the axis.
    """
    given: dict[str, Any] = {
        "low": float("nan"),
        "high": float("nan"),
        "group": "",
        "series": "ours",
    }
    table = table.copy()
    for name, value in given.items():
        if name not in table:
            table[name] = value
    series = list(dict.fromkeys(table["series"]))
    ours = [name for name in series if name != PRINTED_SERIES]
    colours = {**dict(zip(ours, CATEGORIES, strict=False)), PRINTED_SERIES: INK}
    shapes = {**dict(zip(ours, _SHAPES, strict=False)), PRINTED_SERIES: "diamond"}
    legend = alt.Legend(title=None) if len(series) > 1 else None
    ends = table[["value", "low", "high"]].stack()
    spread = [*ends, *([] if reference is None else [reference])]
    scale = alt.Scale(
        type="log" if log else "linear", domain=[min(spread), max(spread)], nice=not log, padding=8
    )
    panels: list[alt.LayerChart | alt.FacetChart] = []
    for group, own in table.groupby("group", sort=False):
        labels = list(dict.fromkeys(own["label"]))
        columns = ["label", "series", "value", "low", "high"]
        here = [name for name in series if name in set(own["series"])]
        y = alt.Y("label:N", sort=labels, axis=None, scale=alt.Scale(paddingInner=0.12))
        offset = alt.YOffset("series:N", sort=["", *here], scale=alt.Scale(domain=["", *here]))
        names = alt.Chart(pd.DataFrame({"label": labels, "series": ""}))
        text = names.mark_text(align="left", baseline="middle", fontSize=11, color=INK)
        base = alt.Chart(own[columns]).encode(
            y=y,
            yOffset=offset,
            color=alt.Color(
                "series:N",
                scale=alt.Scale(domain=series, range=[colours[name] for name in series]),
                legend=legend,
            ),
        )
        axis = alt.Axis(format=form, tickCount=6, labelOverlap=True, gridOpacity=0.6)
        last = len(panels) == table["group"].nunique() - 1
        x = alt.X("value:Q", scale=scale, axis=axis, title=title if last else None)
        tooltip = ["label", "series", *(alt.Tooltip(name, format=".3~g") for name in columns[2:])]
        shape = alt.Shape(
            "series:N",
            scale=alt.Scale(domain=series, range=[shapes[name] for name in series]),
            legend=legend,
        )
        layers: list[alt.Chart] = [
            text.encode(x=alt.value(2), y=y, yOffset=offset, text="label:N"),
            base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
            base.mark_point(filled=True, size=55).encode(x=x, shape=shape, tooltip=tooltip),
        ]
        if reference is not None:
            line = alt.Chart(pd.DataFrame({"value": [reference]}))
            layers.insert(0, line.mark_rule(strokeDash=[4, 3], color=GREY).encode(x=x))
        height = SLOT * (1 + len(here)) * len(labels)
        panel = alt.layer(*layers).properties(width=width, height=height)
        panels.append(panel.properties(title=str(group)) if group else panel)
    return alt.vconcat(*panels, spacing=6)


def of_claims(
    stored: Sequence[Mapping[str, Any]],
    groups: Mapping[str, str],
    measure: str,
    printed: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """The measure behind the verdicts of some claims, a row a setting and pair, for `forest`.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    groups
        Claim to the title of its panel; a claim without measures has none.
    measure
        Which one.
    printed
        Claim to the value that the paper prints, which gets a row.
    """
    parts = []
    for claim, group in groups.items():
        found = claim_measures(stored, claim, measure)
        if found.empty:
            continue
        labels = [
            f"{setting}: {pair_name(pair) if '-' in pair and ' ' not in pair else pair}"
            for setting, pair in zip(found["setting"], found["pair"], strict=True)
        ]
        found = found.assign(label=labels, group=group, series="our runs")
        if printed and claim in printed:
            row = {
                "label": "Paper A",
                "value": printed[claim],
                "group": group,
                "series": PRINTED_SERIES,
            }
            parts.append(pd.DataFrame([row]))
        parts.append(found[["label", "group", "series", "value", "low", "high"]])
    columns = ["label", "group", "series", "value", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
