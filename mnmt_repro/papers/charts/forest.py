"""Estimates in rows, with their intervals, beside what a paper prints: one chart for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.display import Figure, show
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, INK, plain
from mnmt_repro.papers.charts.verdicts import SOURCE
from mnmt_repro.papers.claims.report import claim_measures
from mnmt_repro.papers.cohorts.names import setting_label

PRINTED_SERIES = "the paper"
HERE, IN_PAPER = "Here: gain in % of the loss", "Paper B: gain in spBLEU"
SLOT = 13  # pixels: a row has one for its label and one for each line of marks
BAND = "#eef0f3"
_TALL = 400  # pixels, from which on a panel's lower axis is out of sight of its first rows
_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "cross", "diamond")
_NAN = float("nan")
_GIVEN: dict[str, Any] = {"low": _NAN, "high": _NAN, "group": "", "series": "ours", "clear": True}
_ROW = ("label", "series", "value", "low", "high", "clear")


def forest(
    table: pd.DataFrame,
    title: str | list[str],
    *,
    marks: Mapping[str, float] | None = None,
    log: bool = False,
    domain: tuple[float, float] | None = None,
    form: str = "~f",
    width: int = 330,
    columns: int = 1,
    shared: bool = True,
) -> alt.ConcatChart:
    """Draw a row for each label, a panel for each group, and a colour and shape for each series.

    Labels stand in bands above their rows, so that the chart is narrow enough for a phone and no
    line crosses them. A tall panel repeats its horizontal axis above its rows.

    Parameters
    ----------
    table
        ``label, value``, and where wanted ``low, high, group, series`` (at most six) and ``clear``,
        whose marks are hollow where it is false. Rows keep their order; those without a value are
        left out. Series of one label share its line, unless two of them have intervals.
    title
        Of the horizontal axis, perhaps in several lines.
    marks
        Dashed vertical lines: what is written beside each, perhaps nothing, to its place.
    log, form
        Of that axis: whether it is logarithmic, and how its numbers are written.
    domain
        Of that axis; an interval that leaves it is cut off. By default all is shown.
    columns
        Of panels. With more than one, each panel has its own horizontal axis, and all have the same
        rows, so that those of one height belong together.
    shared
        Whether panels below one another have one horizontal axis. If not, each has its own.
    """
    table = table.assign(**{name: value for name, value in _GIVEN.items() if name not in table})
    known = list(dict.fromkeys(table["series"].fillna("")))
    table = table.dropna(subset=["value"]).fillna({"series": ""})
    lines, series = marks or {}, list(dict.fromkeys(table["series"]))
    own_axes = columns > 1 or not shared
    ours = [name for name in known if name != PRINTED_SERIES]
    styles = {name: (CATEGORIES[i], _SHAPES[i]) for i, name in enumerate(ours)}
    styles[PRINTED_SERIES] = (INK, "diamond")
    colours, shapes = ([styles[name][i] for name in known] for i in (0, 1))
    told = None if table["clear"].all() else "hollow: not clear of zero"
    across = 3 if max(map(len, series), default=0) <= 16 else 1  # so that a phone has room
    legend = None
    if len(series) > 1:
        legend = alt.Legend(title=told, orient="top", columns=across, values=series)
    if domain:
        table = table.assign(**{end: table[end].clip(*domain) for end in ("low", "high")})
    spans = table.dropna(subset=["low"]).groupby(["group", "label"])["series"]
    apart = (spans.nunique() > 1).any()
    groups = [(str(name), rows) for name, rows in table.groupby("group", sort=False)]
    panels = []
    for place, (group, rows) in enumerate(groups, start=1):
        shown = (rows if own_axes else table)[["value", "low", "high"]].stack()
        spread = [*shown, *lines.values()]
        ends = list(domain or (min(spread), max(spread)))
        scale = alt.Scale(type="log" if log else "linear", domain=ends, nice=False, padding=8)
        beside = table if columns > 1 else rows
        labels = list(dict.fromkeys(beside["label"].map(plain)))
        slots = [name for name in series if name in set(beside["series"])] if apart else ["all"]
        rows = rows.assign(label=rows["label"].map(plain))
        y = alt.Y("label:N", sort=labels, axis=None, scale=alt.Scale(paddingInner=0.12))
        offset = alt.YOffset("slot:N", sort=["", *slots], scale=alt.Scale(domain=["", *slots]))
        places = pd.DataFrame(product(labels, ["", *slots]), columns=["label", "slot"])
        bands = alt.Chart(places).encode(x=alt.value(0), x2=alt.value("width"), y=y, yOffset=offset)
        names = alt.Chart(places[places["slot"] == ""]).encode(
            x=alt.value(2), y=y, text="label:N", yOffset=offset
        )
        written: dict[str, Any] = {"align": "left", "baseline": "middle", "fontSize": 11}
        base = alt.Chart(rows[[*_ROW]].assign(slot=rows["series"] if apart else "all")).encode(
            y,
            yOffset=offset,
            color=alt.Color("series:N", legend=legend).scale(domain=known, range=colours),
            tooltip=["label", "series", *(alt.Tooltip(c, format=".3~g") for c in _ROW[2:5])],
        )
        shape = alt.Shape("series:N", scale=alt.Scale(domain=known, range=shapes), legend=legend)
        last = own_axes or place == len(groups)
        height = SLOT * (1 + len(slots)) * len(labels)
        bare = alt.X("value:Q", scale=scale, axis=None)
        ticks: dict[str, Any] = {"format": form, "tickCount": 6, "labelOverlap": True}
        x = bare.title(title if last else None).axis(**ticks, gridOpacity=0.6)
        tall = height > _TALL
        above = bare.title(title).axis(**ticks, orient="top", grid=False) if tall else bare
        room = 24 + 14 * (1 if isinstance(title, str) else len(title)) if tall else 2
        at = alt.Chart(pd.DataFrame({"value": lines.values(), "mark": lines.keys()}))
        holes = base.transform_filter("!datum.clear").mark_point(filled=True, size=16, opacity=1)
        layers = [
            bands.mark_rect(color=BAND, opacity=0.45),
            at.mark_rule(strokeDash=[4, 3], color=GREY).encode(x),
            bands.transform_filter("!datum.slot").mark_rect(color=BAND, opacity=1),
            names.mark_text(**written, color=INK),
            base.mark_rule(strokeWidth=1.6).encode(
                alt.X("low:Q", scale=scale, axis=None), x2="high:Q"
            ),
            base.mark_point(filled=True, size=55, opacity=1).encode(above, shape=shape),
            holes.encode(bare, color=alt.value("white"), shape=shape),
            at.mark_text(align="left", baseline="bottom", dx=3, fontSize=11, color=INK).encode(
                bare, y=alt.value(-room), text="mark:N"
            ),
        ]
        size = {"width": width, "height": height}
        panel = alt.layer(*layers, **size).resolve_axis(x="independent")  # one below, one above
        panels.append(panel.properties(title=group) if group else panel)
    return alt.concat(*panels, columns=columns, spacing=20 if own_axes else 6)


def of_claims(stored: pd.DataFrame, groups: Mapping[str, str], measure: str = "") -> pd.DataFrame:
    """The measure behind the verdicts of some claims, a row a setting and pair, for `forest`.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    groups
        Claim to the title of its panel.
    measure
        Which one; by default that of each claim's effect.
    """
    found = [
        claim_measures(stored, claim, measure).assign(group=group, series="our runs")
        for claim, group in groups.items()
    ]
    columns = ["label", "group", "series", "value", "low", "high"]
    return _labelled(pd.concat(found, ignore_index=True))[columns]


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    rows = table[["setting", "pair"]].itertuples(index=False)
    return table.assign(label=[setting_label(*row) for row in rows])


_PANELS = {
    "settled": "the paper's text per parameter",
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
    table = table.sort_values("group", key=lambda name: name.map(order), kind="stable")
    axis = title if isinstance(title, str) else " ".join(title)
    return show(
        forest(_labelled(table), title, **options),
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
    sides: pd.DataFrame, labels: pd.Series[str], series: pd.Series[str]
) -> alt.ConcatChart:
    """Draw both sides of `two_sides` next to each other, to the right where a variant is better."""
    return forest(
        sides.assign(label=labels, series=series, group=sides["side"]),
        "right of zero is better",
        marks={"": 0},
        width=220,
        columns=2,
    )
