"""Estimates in rows, with their intervals, beside what a paper prints: one chart for all pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.display import Figure, show
from mnmt_repro.papers.charts.theme import GREY, INK, LOG_LABELS, PRINTED, is_printed, looks, plain
from mnmt_repro.papers.charts.verdicts import SOURCE
from mnmt_repro.papers.claims.report import claim_measures
from mnmt_repro.papers.cohorts.names import setting_label

PRINTED_SERIES = "the paper"
HERE, IN_PAPER = "Here: gain in % of the loss", "Paper B: gain in spBLEU"
ROW, LINE = 12, 11  # pixels: what each row has beside its lines of marks, and each of these
WIDE = 540  # pixels of the panels of one row, their labels aside
_USUAL: dict[str, Any] = {
    "low": math.nan,
    "high": math.nan,
    "group": "",
    "series": "ours",
    "clear": True,
}


def forest(
    table: pd.DataFrame,
    title: str | list[str],
    *,
    marks: Mapping[str, float] | None = None,
    log: bool = False,
    domain: tuple[float, float] | None = None,
    form: str = "~f",
    columns: int = 1,
    width: int = WIDE,
) -> alt.ConcatChart:
    """Draw a row for each label, a panel for each group, and a colour and shape for each series.

    Parameters
    ----------
    table
        ``label, value``, and where wanted ``low, high, group, series`` (at most six) and ``clear``,
        whose marks are hollow where it is false. Rows keep their order; those without a value are
        left out. Series of one label have a line each where two of them have intervals.
    title
        Of the horizontal axis, perhaps in several lines.
    marks
        Dashed vertical lines: what is written above each, perhaps nothing, to its place.
    log, form
        Of that axis: whether it is logarithmic, and how its numbers are written.
    domain
        Of that axis; an interval that leaves it is cut off. By default all is shown.
    columns
        Of panels. Panels beside one another have the same rows, and an axis each.
    width
        Of the panels of one row in pixels, their labels aside.
    """
    table = table.assign(**{name: value for name, value in _USUAL.items() if name not in table})
    known = list(dict.fromkeys(table["series"].fillna("")))
    table = table.dropna(subset=["value"]).fillna({"series": ""})
    table = table.assign(label=table["label"].map(plain))
    if domain:
        table = table.assign(**{end: table[end].clip(*domain) for end in ("low", "high")})
    spans = table.dropna(subset=["low"]).groupby(["group", "label"])["series"]
    apart = bool((spans.nunique() > 1).any())
    groups = [(str(name), rows) for name, rows in table.groupby("group", sort=False)]
    panels = []
    for place, (group, rows) in enumerate(groups):
        own_range = rows if columns > 1 else table
        spread = [*own_range[["value", "low", "high"]].stack(), *(marks or {}).values()]
        scale = alt.Scale(
            type="log" if log else "linear",
            domain=list(domain or (min(spread), max(spread))),
            nice=False,
            padding=8,
        )
        powers = LOG_LABELS if log and form == "~f" else alt.Undefined
        axis = alt.Axis(format=form, tickCount=6, labelOverlap=True, labelExpr=powers)
        last = columns > 1 or place == len(groups) - 1
        x = alt.X("value:Q", scale=scale, axis=axis, title=title if last else None)
        panel = _panel(
            rows,
            x,
            scale,
            labels=list(dict.fromkeys((table if columns > 1 else rows)["label"])),
            named=place % columns == 0,
            slots=[name for name in known if name in set(rows["series"])] if apart else [],
            style=PRINTED if is_printed(group) else _style(known, table),
            marks=marks or {},
        )
        sized = panel.properties(width=width // columns)
        panels.append(sized.properties(title=group) if group else sized)
    chart = alt.concat(*panels, columns=columns, spacing=14)
    return chart.configure_legend(orient="top", columns=3)  # which narrow screens replace


def _style(known: list[str], table: pd.DataFrame) -> dict[str, Any]:
    """Colour and shape of each series, and what the key says of them."""
    said = "" if table["clear"].all() else "hollow: not clear of zero"
    if table["group"].map(is_printed).any():
        said += "; diamonds: the paper, on the same lines"
    legend = alt.Legend(title=said or None, labelLimit=300, titleLimit=500)
    return looks("series:N", known, legend if table["series"].nunique() > 1 else None)


def _panel(
    rows: pd.DataFrame,
    x: alt.X,
    scale: alt.Scale,
    *,
    labels: list[str],
    named: bool,
    slots: list[str],
    style: Mapping[str, Any],
    marks: Mapping[str, float],
) -> alt.LayerChart | alt.FacetChart:
    axis = alt.Axis(title=None, labelLimit=360, ticks=False, domain=False, labels=named)
    y: dict[str, Any] = {"y": alt.Y("label:N", sort=labels, axis=axis).scale(domain=labels)}
    if slots:
        y["yOffset"] = alt.YOffset("series:N", sort=slots).scale(domain=slots, paddingOuter=0.6)
    fields = ["label", "series", "value", "low", "high", "clear"]
    numbers = [alt.Tooltip(name, format=".3~g") for name in fields[2:5]]
    base = alt.Chart(rows[fields]).encode(
        **y, color=style["color"], tooltip=["label", "series", *numbers]
    )
    at = alt.Chart(pd.DataFrame({"value": marks.values(), "mark": marks.keys()})).encode(x)
    low = alt.X("low:Q", scale=scale)
    hollow = base.transform_filter("!datum.clear").mark_point(filled=True, size=16, opacity=1)
    layers = [
        at.mark_rule(strokeDash=[4, 3], color=GREY),
        base.mark_rule(strokeWidth=1.8).encode(low, x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x, shape=style["shape"]),
        hollow.encode(x, color=alt.value("white"), shape=style["shape"]),
        at.mark_text(baseline="bottom", dy=-2, color=INK).encode(y=alt.value(0), text="mark:N"),
    ]
    return alt.layer(*layers).properties(height=len(labels) * (ROW + LINE * max(len(slots), 1)))


_PANELS = {
    "settled": "long runs, the paper's text per parameter",
    "steady": "with a final decay",
    "external": "public runs",
    "": "stopped early",
}
"""Of tiers: runs that ended with a decay come first."""


def claim_figure(
    stored: pd.DataFrame,
    claim: str,
    measure: str,
    title: str | list[str],
    caption: str,
    *,
    n: str = "n_non_embedding",
    **options: Any,
) -> Figure:
    """Show the measure behind a claim's verdicts in each of its settings, runs with a decay first.

    Parameters
    ----------
    stored, claim, measure
        As for `claim_measures`.
    title, options
        As for `forest`.
    caption
        The finding.
    n
        Settings with this parameter count as the size are shown.
    """
    table = claim_measures(stored, claim, measure)
    table = table[table["n"] == n].rename(columns={"kind": "series"})
    order = {name: place for place, name in enumerate(_PANELS.values())}
    table = table.assign(group=table["tier"].map(_PANELS).fillna(_PANELS[""]))
    order |= {name: place for place, name in enumerate(dict.fromkeys(table["setting"]))}
    by = ["group", "setting", "pair"]
    table = table.sort_values(by, key=lambda names: names.map(lambda name: order.get(name, name)))
    labels = [setting_label(*row) for row in table[["setting", "pair"]].itertuples(index=False)]
    axis = title if isinstance(title, str) else " ".join(title)
    return show(
        forest(table.assign(label=labels), title, **options),
        name=f"{measure.replace('_', '-')}-{claim.lower()}",
        alt=f"{axis}: a row for each setting and pair.",
        data=table,
        provenance=SOURCE,
        caption=caption,
    )


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
        ``side`` (`HERE` or `IN_PAPER`), ``value, low, high``, and ``clear``: whether our interval
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
    printed = names.assign(side=IN_PAPER, value=known["difference"], clear=marked)
    return pd.concat([ours, printed.dropna(subset=["value"])], ignore_index=True)


_NAMES = ("variant", "group", "pair", "grouping", "up-sampled")


def gains_forest(
    sides: pd.DataFrame, labels: pd.Series[str], series: pd.Series[str], title: str
) -> alt.ConcatChart:
    """Draw both sides of `two_sides` next to each other; the title names what is gained over."""
    return forest(
        sides.assign(label=labels, series=series, group=sides["side"]),
        title,
        marks={"": 0},
        columns=2,
    )
