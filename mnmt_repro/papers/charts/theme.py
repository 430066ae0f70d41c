"""What all charts share: their theme, and the colours of categories and of weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair
import numpy as np
import pandas as pd

INK = "#1b1f24"
GREY = "#5c6670"
GRID = "#e4e7eb"

#: Colours of categories such as language pairs (Okabe and Ito, readable with any colour vision).
CATEGORIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_OLD, _NEW, _UPGRADE, _OTHER, *_MORE = CATEGORIES
#: What has one colour in all charts of Paper B.
_KEY = {
    **dict.fromkeys(("original", "from the old model", "old weights", "old language"), _OLD),
    **dict.fromkeys(("added", "new", "new language", "up-sampled: yes"), _NEW),
    **dict.fromkeys(("upgrade", "with scaling", "ours: lower loss", "ours, real text"), _UPGRADE),
    **dict.fromkeys(("finished baseline", "baseline still improving"), _UPGRADE),
    **dict.fromkeys(("all", "without scaling", "up-sampled: no", "old model of Mt25-v1"), _OTHER),
    **dict(zip(("old model of Mt25-v2", "old model of M12t25"), _MORE, strict=True)),
    "scratch": GREY,
}
#: Dark to light: readable without colour vision, and in print. It ends in amber, not in green, so
#: that the weights from 0.5 on, whose lines lie close together, differ in hue.
_DARK_TO_LIGHT = ("#440154", "#414487", "#31688e", "#1f8080", "#5c8a1e", "#c47500")
BILLIONS = "replace(format(datum.value, '~s'), 'G', 'B')"
"""Writes a number on an axis in short, as 300M or 2.7B."""
_POWER = "pow(10, floor(log(datum.value) / LN10 + 1e-9))"
_ROUND = f"indexof([4, 6, 8, 9], round(datum.value / {_POWER})) < 0"
SIZE_LABELS = f"{_ROUND} ? {BILLIONS} : ''"
"""Vega's expression for round labels of a logarithmic axis of sizes: even a short axis has two."""
LOG_LABELS = f"{_ROUND} ? format(datum.value, '~g') : ''"
"""The same for an axis of other numbers."""
_MAX_ROWS = 20_000  # in one chart; beyond it a page grows slow, so aggregate first


@altair.theme.register("mnmt", enable=True)
def theme() -> altair.theme.ThemeConfig:
    """Return the theme of all charts: white ground, thin grid, colour-blind safe categories."""
    text = {"labelColor": GREY, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 13}
    axis = {"domainColor": GREY, "tickColor": GREY, "gridColor": GRID, "titleFontWeight": 500}
    axis["labelFlush"] = False  # flushed end labels stand beside their ticks
    axis["labelSeparation"] = 6  # or labels of a logarithmic axis may touch: 6k7k
    legend: dict[str, Any] = {**text, "symbolStrokeWidth": 2.5, "symbolSize": 90, "columns": 3}
    legend["orient"] = "bottom"  # beside a chart there is no room
    legend["layout"] = {"bottom": {"direction": "vertical", "anchor": "start"}}
    config: Any = {  # plain dicts, which altair types as its own
        "background": "white",
        "font": "Arial, Liberation Sans, sans-serif",
        "padding": 8,
        "view": {"continuousWidth": 540, "continuousHeight": 320, "stroke": None},
        "axis": {**text, **axis},
        "legend": legend,
        "header": {**text, "labelFontWeight": 600, "labelColor": INK},
        "title": {"anchor": "start", "frame": "group", "fontSize": 14, "color": INK},
        "line": {"strokeWidth": 1.8},
        "text": {"fontSize": 12},
        "point": {"size": 45, "filled": True},
        "range": {"category": list(CATEGORIES)},
    }
    return altair.theme.ThemeConfig(config=config)


altair.data_transformers.enable("default", max_rows=_MAX_ROWS, consolidate_datasets=True)


def weight_colours(weights: Iterable[float]) -> list[str]:
    """Give each weight p in [0, 1] its colour, the same in every figure: dark to light.

    The place in the palette is the arcsine of the square root of p. It spreads the weights near 0
    and those near 1.

    Examples
    --------
    >>> weight_colours([0, 0.5, 1])
    ['#440154', '#287487', '#c47500']
    """
    known = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in _DARK_TO_LIGHT])
    places = np.linspace(0, 1, len(known))
    colours = []
    for weight in weights:
        at = np.arcsin(np.sqrt(weight)) / (np.pi / 2)
        mixed = [np.interp(at, places, channel) for channel in known.T]
        colours.append("#" + "".join(f"{round(float(value)):02x}" for value in mixed))
    return colours


def is_printed(name: object) -> bool:
    """Whether what is so named is a paper's. It is drawn in ink, and as a diamond.

    >>> is_printed("the paper"), is_printed("Paper B: gain in spBLEU"), is_printed("ours for A")
    (True, True, False)
    """
    return str(name).lower().removeprefix("the ").startswith("paper")


def colours(names: Iterable[Any]) -> dict[Any, str]:
    """Give each name its colour: one that it has in all charts, or the next one that is free.

    >>> colours(["added", "mine", "the paper"])
    {'added': '#d55e00', 'mine': '#0072b2', 'the paper': '#1b1f24'}
    """
    known = {name: INK if is_printed(name) else _KEY.get(name) for name in names}
    free = (colour for colour in CATEGORIES if colour not in known.values())
    return {name: colour or next(free, GREY) for name, colour in known.items()}


PRINTED = {"color": altair.value(INK), "shape": altair.value("diamond")}
"""Encodings of a paper's printed values, however many series they have."""
_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "cross", "triangle-right")


def looks(field: str, names: Iterable[Any], legend: altair.Legend | None) -> dict[str, Any]:
    """Encode a field of names as colour and shape. Beyond six of ours, shapes repeat."""
    known, free = colours(names), iter(_SHAPES)
    shapes = ["diamond" if is_printed(name) else next(free, "circle") for name in known]
    colour, shape = altair.Color(field, legend=legend), altair.Shape(field, legend=legend)
    return {
        "color": colour.scale(domain=[*known], range=[*known.values()]),
        "shape": shape.scale(domain=[*known], range=shapes),
    }


def legible(colour: str) -> str:
    """Darken a colour so far that text in it can be read on white, at a contrast of 4.5.

    >>> legible("#0072b2"), legible("#e69f00")
    ('#0072b2', '#9c6b00')
    """
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    light = float((channels / 255) ** 2.2 @ [0.2126, 0.7152, 0.0722])
    darker = channels * min(1, (0.18 / max(light, 0.01)) ** (1 / 2.2))
    return "#" + "".join(f"{int(value):02x}" for value in darker)


_PLAIN = {
    "conlang steady": "generated languages, with decay",
    "conlang": "generated languages",
    "settled": "long runs",
    "software25": "software texts in 25 languages",
}
"""Names that registered settings contain, and what a reader is told in their place."""


def plain(label: str) -> str:
    """What charts and pages call a registered setting.

    >>> plain("conlang steady, one to many: A"), plain("settled, wider")
    ('generated languages, with decay, one to many: A', 'long runs, wider')
    """
    for name, words in _PLAIN.items():
        label = label.replace(name, words)
    return label


def size_axis() -> altair.X:
    """Encode a frame's column ``n`` of model sizes as a logarithmic horizontal axis."""
    return altair.X(
        "n:Q",
        scale=altair.Scale(type="log", nice=False, padding=8),
        axis=altair.Axis(labelExpr=SIZE_LABELS, tickCount=5),
        title="non-embedding parameters N",
    )


def diagonal(x: altair.X, y: altair.Y, ends: tuple[float, float] = (0, 1)) -> altair.Chart:
    """Draw the dotted line on which two fields of a chart are equal, between two values.

    Parameters
    ----------
    x, y
        The chart's encodings by shorthand, as ``alt.X("p:Q")``.
    """
    fields = [str(each.shorthand).partition(":")[0] for each in (x, y)]
    line = altair.Chart(pd.DataFrame({field: list(ends) for field in fields}))
    return line.mark_line(strokeDash=[2, 3], color=GREY, strokeWidth=1, clip=True).encode(x, y)


def sliders(*known: tuple[str, str, float, float, float, float]) -> list[altair.Parameter]:
    """Make a slider of each name, label, lowest and highest value, step, and value at the start."""
    return [
        altair.param(
            name=name,
            value=start,
            bind=altair.binding_range(min=low, max=high, step=step, name=label),
        )
        for name, label, low, high, step, start in known
    ]


def vega_lite_version() -> str:
    """Name the Vega-Lite version of altair's charts as vl-convert does, such as ``"6.1"``."""
    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
