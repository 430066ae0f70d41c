"""Lines, dots, bands and a paper's printed values against one number: the chart of most pages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_repro.papers.charts import theme
from mnmt_repro.papers.charts.theme import INK, is_printed, legible, plain, weight_colours
from mnmt_repro.papers.cohorts.names import pair_title

LABEL_GAP = 14  # pixels between the labels of two lines
LABEL_WIDTH = 0.15  # of a label, about, as a share of the horizontal range
WIDE = 835  # pixels of a row of panels with all that is beside them
AXIS, LETTER, SPACING = 48, 7, 30  # pixels of a vertical axis, of a letter, and between panels
LEADER = 14  # pixels from the end of a line to its label


def lines(
    curves: pd.DataFrame,
    x: str,
    y: str,
    *,
    by: str,
    panel: str = "",
    dots: pd.DataFrame | None = None,
    printed: pd.DataFrame | None = None,
    interval: tuple[str, str] | None = None,
    dashed: Collection[object] = (),
    log: Collection[str] = (),
    titles: Mapping[str, str] | None = None,
    marks: Mapping[str, float] | None = None,
    diagonal: bool = False,
    domain: tuple[float, float] | None = None,
    shared: bool = True,
    columns: int = 2,
    height: int = 300,
    width: int = WIDE,
) -> alt.ConcatChart:
    """Draw one line for each value of a column, labelled at its end, in panels.

    Mixture weights and model sizes (`by` is ``p`` or ``n``) get dark to light colours, other values
    a colour each.

    Parameters
    ----------
    curves
        Columns `x` and `y`, `by` (what tells lines apart), and perhaps `panel`.
    dots
        Observed values in the same columns. By default the points of the lines are marked if there
        are at most twelve of them in a line.
    printed
        Values that the paper prints, in the same columns, drawn in ink as diamonds: filled for the
        first value of `by`, else hollow. A value without an `x`, such as a bound for all sizes, is
        a dashed line across the panel with what its column ``says``.
    interval
        Columns of `curves` with the ends of a band, or of `dots` with the ends of a bar.
    dashed
        Values of `by` whose lines are dashed.
    log
        Those of `x` and `y` whose axis is logarithmic. A logarithmic `x` is a model size.
    titles
        Of the axes, from `x` and `y`.
    marks
        Horizontal dotted lines: what is written at their left end, to their height.
    diagonal
        Whether a dotted line shows where `x` and `y` are equal.
    domain
        Of the vertical axis; what lies beyond is cut off. By default all is shown.
    shared
        Whether all panels have one vertical range.
    columns, height, width
        Panels beside one another, the height of one in pixels, and the width of their row.
    """
    titles = {x: x, y: y} | dict(titles or {})
    drawn = [x, y, by, *(interval or ()), *([panel] if panel else []), "says"]
    whole = [by, panel]
    curves = _short(curves.dropna(subset=[x, y]), drawn, whole)
    dots, printed = (None if f is None else _short(f, drawn, whole) for f in (dots, printed))
    names = list(dict.fromkeys(curves[by]))
    if len(of_paper := curves[curves[by].map(is_printed)]):
        printed = pd.concat([printed, of_paper])
    if printed is not None:
        printed = printed.assign(fill=np.where(printed[by] == printed[by].iloc[0], INK, "white"))
    colours = _colours(by, names)
    kinds = [[5, 4] if each in dashed else [1, 0] for each in names]
    dash = alt.StrokeDash(f"{by}:N", legend=None, scale=alt.Scale(domain=names, range=kinds))
    groups = [("", curves)] if not panel else list(curves.groupby(panel, sort=False))
    frames = [frame for frame in (curves, dots, printed) if frame is not None]
    across = min(columns, len(groups))
    label = LETTER * max(len(_label(by, name)) for name in names) + LEADER
    width = (width - SPACING * (across - 1)) // across - AXIS - label
    charts = []
    for place, (name, own) in enumerate(groups):
        at = [
            None if f is None else f if not panel else f[f[panel] == name] for f in (dots, printed)
        ]
        inside = frames if shared or not panel else [f[f[panel] == name] for f in frames]
        heights = [*pd.concat([f[[y]] for f in inside])[y], *(marks or {}).values()]
        bands = [f[end] for f in inside for end in interval or () if end in f]
        ends = domain or _ends(heights, pd.concat(bands) if bands else [], log=y in log)
        named = titles if place % columns == 0 else titles | {y: ""}
        chart = _panel(
            own, x, y, by, *at, colours=colours, interval=interval, dash=dash, log=log, ends=ends,
            titles=named, marks=marks or {}, diagonal=diagonal, height=height,
        )  # fmt: skip
        title = pair_title(str(name)) if panel == "pair" else plain(str(name))
        charts.append(chart.properties(title=title, width=width, height=height))
    return alt.concat(*charts, columns=columns, spacing=SPACING)


def _panel(
    curves: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    dots: pd.DataFrame | None,
    printed: pd.DataFrame | None,
    *,
    colours: Sequence[alt.Color],
    interval: tuple[str, str] | None,
    dash: alt.StrokeDash,
    log: Collection[str],
    ends: Sequence[float],
    titles: Mapping[str, str],
    marks: Mapping[str, float],
    diagonal: bool,
    height: int,
) -> alt.LayerChart | alt.FacetChart:
    colour, of_text = colours
    down = _scale(y, log, domain=list(ends), nice=False)
    powers = alt.Axis(labelExpr=theme.LOG_LABELS) if y in log else alt.Undefined
    axis_y = alt.Y(f"{y}:Q", title=titles[y] or None, scale=down, axis=powers)
    sized = {"labelExpr": theme.SIZE_LABELS, "tickCount": 5} if x in log else {"tickCount": 6}
    along = _scale(x, log, nice=False, padding=8)
    axis_x = alt.X(f"{x}:Q", title=titles[x], scale=along, axis=alt.Axis(**sized))
    tooltip = [by, *(alt.Tooltip(field, format=".4~g") for field in (x, y))]
    layers: list[alt.Chart] = []
    if diagonal:
        layers.append(theme.diagonal(axis_x, axis_y, (curves[x].min(), curves[x].max())))
    if marks:
        at = alt.Chart(pd.DataFrame({y: marks.values(), "mark": marks.keys()})).encode(axis_y)
        layers.append(at.mark_rule(strokeDash=[2, 3], color=theme.GREY))
        written: dict[str, Any] = {"align": "left", "baseline": "bottom", "dx": 4}
        layers.append(at.mark_text(**written, color=INK).encode(x=alt.value(0), text="mark:N"))
    base, seen = alt.Chart(curves), alt.Chart(curves if dots is None else dots)
    spans = [(curves, base.mark_area(opacity=0.15, clip=True))]
    spans += [] if dots is None else [(dots, seen.mark_rule(opacity=0.5, clip=True))]
    for frame, span in spans:
        if interval and set(interval) <= set(frame):
            low, high = interval
            layers.append(span.encode(axis_x, alt.Y(f"{low}:Q", scale=down), alt.Y2(high), colour))
    few = dots is None and bool(curves.groupby(by).size().max() <= 12)
    line = base.mark_line(clip=True, point=few)
    layers.append(line.encode(axis_x, axis_y, colour, dash, tooltip=tooltip, detail=f"{by}:N"))
    if dots is not None:
        layers.append(seen.mark_point(clip=True).encode(axis_x, axis_y, colour, tooltip=tooltip))
    if printed is not None and len(printed) and x not in printed:
        layers += _bounds(printed, curves, y, by, alt.Y(f"{y}:Q", scale=down))
    elif printed is not None and len(printed):
        of_paper = alt.Chart(printed).mark_point(shape="diamond", size=100, opacity=1, stroke=INK)
        fill = alt.Fill("fill:N", scale=None)
        layers.append(of_paper.encode(axis_x, axis_y, fill, tooltip=tooltip))
    places = label_places(curves, dots, x, y, by, ends=ends, log=y in log, height=height)
    led = alt.Chart(places.merge(curves[[by, x, y]])).mark_rule(x2Offset=LEADER - 2, opacity=0.6)
    beside = alt.Y2("label_y")
    layers.append(led.encode(axis_x, alt.Y(f"{y}:Q", scale=down), colour, alt.X2(x), beside))
    text = alt.Chart(places).mark_text(align="left", dx=LEADER, fontWeight=600)
    end = alt.Y("label_y:Q", scale=down)
    layers.append(text.encode(axis_x, end, of_text, text="label:N"))
    return alt.layer(*layers).resolve_scale(color="independent")


def _bounds(
    printed: pd.DataFrame, curves: pd.DataFrame, y: str, by: str, at: alt.Y
) -> Iterator[alt.Chart]:
    """A line across the panel for each value, written on at the end that is farther from curves."""
    of_line = curves.groupby(by)[y]
    left, right = of_line.first(), of_line.last()
    for row in printed.to_dict("records"):
        base = alt.Chart(pd.DataFrame([row])).encode(at, color=alt.value(INK))
        yield base.mark_rule(strokeDash=[6, 3], strokeWidth=1.5)
        at_left = (left - row[y]).abs().min() > (right - row[y]).abs().min()
        side: Any = {"align": "left", "dx": 4} if at_left else {"align": "right", "dx": -4}
        text = base.mark_text(baseline="bottom", dy=-2, **side)
        yield text.encode(x=alt.value(0 if at_left else "width"), text="says:N")


def label_places(
    curves: pd.DataFrame,
    dots: pd.DataFrame | None,
    x: str,
    y: str,
    by: str,
    *,
    ends: Sequence[float],
    log: bool,
    height: int,
) -> pd.DataFrame:
    """Where the label of each line stands: beside its end, and no nearer to another than a line.

    If dots would lie under half of the labels, all stand at the right edge, as if lines went on.
    There weights and sizes are listed in their order, because no line leads to its label.

    Returns
    -------
    DataFrame
        `by`, `x`, ``label`` and ``label_y``, in the unit of `y`.

    Examples
    --------
    >>> curves = pd.DataFrame({"n": [1, 1], "loss": [2.0, 2.01], "way": ["a", "b"]})
    >>> label_places(curves, None, "n", "loss", "way", ends=(1, 3), log=False, height=140).round(1)
      way  n label  label_y
    0   a  1     a      1.9
    1   b  1     b      2.1
    """
    forward, back = (np.log, np.exp) if log else (float, float)
    low, high = map(forward, ends)
    of_line = curves.assign(**{y: curves[y].map(forward)}).sort_values(x).groupby(by, sort=False)
    heights = of_line[y].mean().sort_values().index
    before, last = (of_line.nth(k).set_index(by)[[x, y]] for k in (-2, -1))
    last = last.loc[heights]
    gap = min(LABEL_GAP * (high - low) / height, (high - low) / len(last))

    def spread(at: pd.DataFrame) -> pd.DataFrame:
        """Push neighbours apart, both equally, and back into the panel."""
        at = at.sort_values(y, kind="stable")  # of lines that meet, the higher ones come last
        placed = np.clip(at[y].to_numpy(float), low + gap / 2, high)
        for _ in range(500):
            push = np.clip(gap - np.diff(placed), 0, None) / 2
            placed[:-1] -= push
            placed[1:] += push
            placed = np.clip(placed, low + gap / 2, high)
        return at.assign(**{y: placed})

    places = spread(last)
    if dots is not None:
        right = np.subtract.outer(dots[x].to_numpy(), places[x].to_numpy())
        above = np.subtract.outer(dots[y].map(forward).to_numpy(), places[y].to_numpy())
        under = (right > 0) & (right < LABEL_WIDTH * np.ptp(curves[x])) & (abs(above) < 0.7 * gap)
        if under.any(axis=0).mean() >= 0.5:
            slope = ((last[y] - before[y]) / (last[x] - before[x])).fillna(0)
            edge = curves[x].max()
            places = spread(last.assign(**{x: edge, y: last[y] + slope * (edge - last[x])}))
            if by in ("p", "n"):
                rises = places.index[0] < places.index[-1]
                places = places.sort_index(ascending=rises).assign(**{y: places[y].array})
    written = [_label(by, name) for name in places.index]
    return places.reset_index()[[by, x]].assign(label=written, label_y=places[y].map(back).array)


def _short(
    frame: pd.DataFrame, columns: Sequence[str], whole: Sequence[str | None]
) -> pd.DataFrame:
    """What is drawn of a frame, its numbers in five digits, so that pages stay small.

    Some columns stay whole: curves and dots of one value share a colour and a panel.
    """
    own = frame[[name for name in dict.fromkeys(columns) if name in frame]].reset_index(drop=True)
    numbers = own.select_dtypes("float").columns.difference([*whole])
    return own.assign(**{name: own[name].map(lambda v: float(f"{v:.5g}")) for name in numbers})


def _label(by: str, name: Any) -> str:
    form = {"p": "p = {:.2g}", "n": "N = {:,.0f}"}.get(by)
    return form.format(name) if form else plain(str(name))


def _amount(name: Any) -> float:
    """The number that ends a name, such as of a weight, a size, or ``similarity 0.25``."""
    number = str(name).rpartition(" ")[2]
    return float(number) if re.fullmatch(r"[\d.]+(e[+-]?\d+)?", number) else np.nan


MOST_BAND = 0.25
"""By how much of the axis, at each end, bands may make it longer; beyond, they are cut off."""


def _ends(values: Sequence[float], bands: Sequence[float], *, log: bool) -> tuple[float, float]:
    def placed(numbers: Sequence[float]) -> NDArray[np.float64]:
        shown = np.array([each for each in numbers if np.isfinite(each) and (each > 0 or not log)])
        return np.log(shown) if log else shown

    shown = placed(values)
    length = np.ptp(shown) or 1
    most = MOST_BAND * length
    every = np.clip([*shown, *placed(bands)], shown.min() - most, shown.max() + most)
    low, high = every.min() - 0.04 * length, every.max() + 0.04 * length
    if log:
        return float(np.exp(low)), float(np.exp(high))
    return float(0 if every.min() >= 0 > low else low), float(high)


def _scale(field: str, log: Collection[str], **options: Any) -> alt.Scale:
    return alt.Scale(type="log" if field in log else "linear", zero=alt.Undefined, **options)


def _colours(by: str, names: Sequence[Any]) -> list[alt.Color]:
    """The colours of marks, and those of their labels, which are no lighter than can be read."""
    ordered = sorted((name for name in names if np.isfinite(_amount(name))), key=_amount)
    even = [np.sin(np.pi / 2 * k / len(ordered)) ** 2 for k in range(len(ordered))]
    places = ordered if by == "p" and np.ptp(ordered) >= 0.5 else even
    known = theme.colours(names)
    if by in ("p", "n") or len(ordered) > 2:
        known |= dict(zip(ordered, weight_colours(places), strict=True))
    field = alt.Color(f"{by}:{'O' if by in ('p', 'n') else 'N'}", legend=None)
    ranges = ([*known.values()], [*map(legible, known.values())])
    return [field.scale(domain=[*known], range=each) for each in ranges]
