"""What all figures share: theme, colours, and how a page displays a chart or a table.

`show` and `show_table` return objects that a notebook displays with everything a page owes its
reader: an interactive chart over a static one (for print, or where no script runs), a text
alternative, the data as CSV, where they come from, and a verdict badge. In the book the interactive
chart is drawn by the book's own copy of Vega; in plain Jupyter the static one shows, and
``show(...).chart`` displays altair's.
"""

from __future__ import annotations

import base64
import html
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import altair
import numpy as np
import pandas as pd
import vl_convert

from mnmt_repro.errors import InputError

INK = "#1b1f24"
GREY = "#5c6670"
GRID = "#e4e7eb"

#: Colours of categories such as language pairs (Okabe and Ito, readable with any colour vision).
CATEGORIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: Anchors of the scale for a weight p from 0 to 1: inferno without its pale end, dark to light.
WEIGHT_ANCHORS = ("#000004", "#320a5e", "#781c6d", "#bc3754", "#ed6925", "#f6961e")
# The weights of Eq. 5 are spread evenly over that scale, else 0.9, 0.95 and 1 would look alike.
_SPREAD = (0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
#: Anchors of a scale for signed differences: blue below zero, grey at zero, red above.
DIFFERENCE_ANCHORS = ("#2166ac", "#92c5de", "#d9d9d9", "#f4a582", "#b2182b")

# A verdict's sign says it without colour; each colour has a contrast of at least 4.5 to white.
_VERDICT_STYLE: dict[str, tuple[str, str]] = {
    "reproduced": ("✓", "#00694e"),
    "direction only": ("↗", "#0b62a4"),
    "inconclusive": ("?", "#5c6670"),
    "not reproduced": ("✗", "#a8360b"),
    "out of reach here": ("–", "#6b4a86"),
    "no rows yet": ("…", "#5c6670"),
}
_SAID = {"no rows yet": "not enough runs yet"}  # the rest are said as they are named
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PROSE = 60  # characters from which a cell of a table is read as a sentence
_NAME_LENGTH = 9  # up to which one with a hyphen is read as a name
_FIRST_LENGTH = 24  # the same in the first column
_MANY_COLUMNS = 6  # beyond which a table leaves out what is the same in every row
_MAX_ROWS = 20_000  # in one chart; beyond it a page grows slow, so aggregate first
MANY_PASSES = 4.0  # over a text, from which on a figure says so


@altair.theme.register("mnmt", enable=True)
def theme() -> altair.theme.ThemeConfig:
    """Return the theme of all charts: white ground, thin grid, colour-blind safe categories."""
    text = {"labelColor": GREY, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 12}
    axis = {"domainColor": GREY, "tickColor": GREY, "gridColor": GRID, "titleFontWeight": 500}
    config: Any = {  # plain dicts, which altair types as its own
        "background": "white",
        "font": "Arial, Liberation Sans, sans-serif",
        "padding": 8,
        "view": {"continuousWidth": 540, "continuousHeight": 320, "stroke": None},
        "axis": {**text, **axis},
        "legend": {
            **text,
            "symbolStrokeWidth": 2.5,
            "symbolSize": 90,
            "orient": "bottom",  # beside a chart there is no room
            "columns": 3,
            "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
        },
        "header": {**text, "labelFontWeight": 600, "labelColor": INK},
        "title": {"anchor": "start", "fontSize": 14, "color": INK},
        "line": {"strokeWidth": 1.8},
        "point": {"size": 45, "filled": True},
        "range": {
            "category": list(CATEGORIES),
            "ramp": list(WEIGHT_ANCHORS),
            "heatmap": list(WEIGHT_ANCHORS),
            "diverging": list(DIFFERENCE_ANCHORS),
        },
    }
    return altair.theme.ThemeConfig(config=config)


altair.data_transformers.enable("default", max_rows=_MAX_ROWS, consolidate_datasets=True)


def weight_colours(weights: Iterable[float]) -> list[str]:
    """Give each weight p in [0, 1] its colour, the same in every figure.

    Examples
    --------
    >>> weight_colours([0, 1])
    ['#000004', '#f6961e']
    """
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in WEIGHT_ANCHORS])
    colours = []
    for weight in weights:
        if not 0 <= weight <= 1:
            raise InputError(f"weight {weight!r} is outside [0, 1]")
        at = np.interp(weight, _SPREAD, np.linspace(0, len(anchors) - 1, len(_SPREAD)))
        channels = [np.interp(at, np.arange(len(anchors)), anchors[:, i]) for i in range(3)]
        colours.append("#" + "".join(f"{round(float(channel)):02x}" for channel in channels))
    return colours


def weight_color(
    weights: Sequence[float], *, field: str = "p", title: str | None = "weight p"
) -> altair.Color:
    """Encode a frame's column of weights as colour, with a legend that lists each weight."""
    values = sorted(set(map(float, weights)))
    scale = altair.Scale(domain=values, range=weight_colours(values))
    legend = altair.Legend(columns=5)
    return altair.Color(field, type="ordinal", scale=scale, title=title, legend=legend)


def said(verdict: str) -> str:
    """Say a verdict to a reader, who need not know the name of its state.

    >>> said("reproduced"), said("no rows yet")
    ('reproduced', 'not enough runs yet')
    """
    return _SAID.get(verdict, verdict)


@dataclass(frozen=True, kw_only=True)
class Badge:
    """The verdict shown beside a figure.

    Parameters
    ----------
    verdict
        One of the six verdicts; it gives the sign and the colour.
    text
        What the badge says, such as ``"A2 reproduced"``; default the verdict itself.
    title
        One sentence with the measured number and the rule; shown on hovering and read aloud.
    href
        Where the badge leads, relative to the page; empty for nowhere.
    """

    verdict: str
    text: str = ""
    title: str = ""
    href: str = ""

    def __post_init__(self) -> None:
        """Check the verdict."""
        if self.verdict not in _VERDICT_STYLE:
            raise InputError(f"verdict {self.verdict!r}: use one of {', '.join(_VERDICT_STYLE)}")

    @property
    def label(self) -> str:
        """The badge in plain text, its sign included."""
        return f"{_VERDICT_STYLE[self.verdict][0]} {self.text or said(self.verdict)}"

    def to_html(self) -> str:
        """Write the badge as HTML."""
        tag, link = ("a", f' href="{_attribute(self.href)}"') if self.href else ("span", "")
        colour = _VERDICT_STYLE[self.verdict][1]
        title = f' title="{_attribute(self.title)}"' if self.title else ""
        spoken = f'<span class="mnmt-spoken">. {html.escape(self.title)}</span>' * bool(self.title)
        return (
            f'<{tag} class="mnmt-badge" data-verdict="{self.verdict}" '
            f'style="background-color:{colour}"{link}{title}>{html.escape(self.label)}{spoken}</{tag}>'
        )

    def __str__(self) -> str:
        return self.label

    def _repr_html_(self) -> str:
        return self.to_html()


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a figure's numbers come from: the runs behind it, each field without repetition."""

    run_ids: tuple[str, ...]
    config_hashes: tuple[str, ...]
    data_hashes: tuple[str, ...]
    commits: tuple[str, ...]
    tiers: tuple[str, ...]
    corpora: tuple[str, ...]
    seeds: tuple[str, ...]
    hardware: tuple[str, ...]
    wall_seconds: float
    passes: float = 0.0  # the most over any pair's text

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Self:
        """Collect the provenance of rows of `results.load`; a run's time counts once.

        Raises
        ------
        InputError
            If a column is missing, or there are no rows.
        """
        columns = {
            "run_ids": "run_id",
            "config_hashes": "config_hash",
            "data_hashes": "data_hash",
            "commits": "commit",
            "tiers": "tier",
            "corpora": "corpus",
            "seeds": "seed",
            "hardware": "hardware",
        }
        missing = ({*columns.values()} | {"wall_seconds"}) - {*rows.columns}
        if missing:
            raise InputError(f"provenance needs the columns {', '.join(sorted(missing))}")
        if rows.empty:
            raise InputError("provenance of no rows: nothing was selected from the results")
        runs = rows.drop_duplicates("run_id")
        values = {
            field: tuple(str(value) for value in sorted(runs[column].dropna().unique()))
            for field, column in columns.items()
        }
        return cls(
            **values,
            wall_seconds=float(runs["wall_seconds"].sum()),
            passes=float(rows["passes"].max()) if "passes" in rows else 0.0,
        )

    def line(self) -> str:
        """Return the line under the figure: what was run, in short.

        More than four passes over a pair's text are named: beyond, repeated text is worth less
        than new text, and a law of the model's size mixes with one of the data's.
        """
        repeated = [f"up to {self.passes:.1f} passes over a pair's text"]
        return " · ".join(
            [
                _count(len(self.run_ids), "run"),
                f"tier {', '.join(self.tiers)}",
                f"corpus {', '.join(self.corpora)}",
                f"seed{'s' * (len(self.seeds) > 1)} {', '.join(self.seeds)}",
                f"commit {', '.join(_short(self.commits))}",
                f"data {', '.join(_short(self.data_hashes))}",
                *(repeated if self.passes > MANY_PASSES else []),
                f"{_duration(self.wall_seconds)} of computing",
            ]
        )

    def details(self) -> dict[str, tuple[str, ...]]:
        """Return what the opened line lists in full."""
        return {
            "runs": self.run_ids,
            "configurations": self.config_hashes,
            "data": self.data_hashes,
            "commits": self.commits,
            "hardware": self.hardware,
        }


@dataclass(frozen=True, kw_only=True)
class _Display(ABC):
    """The frame around a chart or a table: name, caption, data, provenance, verdicts."""

    name: str
    data: pd.DataFrame
    provenance: Provenance | str
    badges: tuple[Badge, ...] = ()
    caption: str = ""

    def __post_init__(self) -> None:
        """Check what a page could not mend later."""
        if not _NAME.fullmatch(self.name):
            raise InputError(f"name {self.name!r}: use small letters, digits and single hyphens")
        if not self.provenance:
            raise InputError(f"{self.name}: say where the numbers come from (provenance)")

    @abstractmethod
    def _body(self) -> str: ...

    @abstractmethod
    def _plain(self) -> str: ...

    @property
    def csv(self) -> str:
        """The data behind the display, as CSV."""
        return self.data.to_csv(index=False, lineterminator="\n")

    def to_html(self) -> str:
        """Write the whole display as HTML that fetches nothing and runs no script of its own."""
        badges = " ".join(badge.to_html() for badge in self.badges)
        caption = f'<span class="mnmt-caption">{html.escape(self.caption)}</span>' * bool(
            self.caption
        )
        return (
            f'<figure class="mnmt-figure mathjax_ignore" id="mnmt-{self.name}">\n'
            f"{self._body()}\n"
            f"<figcaption>{badges} {caption}\n"
            f'<a class="mnmt-download" download="{self.name}.csv" '
            f'href="data:text/csv;charset=utf-8;base64,{_base64(self.csv.encode())}">'
            f"Download data (CSV, {_count(len(self.data), 'row')})</a>\n"
            f"{self._provenance()}</figcaption>\n</figure>"
        )

    def _provenance(self) -> str:
        if isinstance(self.provenance, str):
            return f'<div class="mnmt-provenance">{html.escape(self.provenance)}</div>'
        listed = "".join(
            f"<dt>{_count_of(term, values)}</dt><dd>"
            + " ".join(f"<code>{html.escape(value)}</code>" for value in values)
            + "</dd>"
            for term, values in self.provenance.details().items()
        )
        line = html.escape(self.provenance.line())
        return (
            f'<details class="mnmt-provenance"><summary>{line}</summary><dl>{listed}</dl></details>'
        )

    def _text(self) -> str:
        """Return caption, verdicts and provenance as plain text, for print and terminals."""
        source = self.provenance if isinstance(self.provenance, str) else self.provenance.line()
        parts = [self.caption, self._plain(), *(badge.label for badge in self.badges), source]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Figure(_Display):
    """A chart with all that a page needs; see `show`."""

    chart: altair.TopLevelMixin
    alt: str

    def __post_init__(self) -> None:
        """Check the text alternative, too."""
        super().__post_init__()
        if not self.alt.strip():
            raise InputError(f"{self.name}: a chart needs a text alternative (alt)")

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, which carries the text alternative as its description."""
        return {**self.chart.to_dict(), "description": self.alt}

    @cached_property
    def svg(self) -> str:
        """The chart as SVG."""
        return vl_convert.vegalite_to_svg(self.spec, vl_version=vega_lite_version())

    @cached_property
    def png(self) -> bytes:
        """The chart as PNG at twice its size, for LaTeX."""
        return vl_convert.vegalite_to_png(self.spec, vl_version=vega_lite_version(), scale=2)

    def _body(self) -> str:
        # "<" is escaped so that no text of the data can close the script element.
        spec = json.dumps(self.spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return (
            '<div class="mnmt-chart">\n'
            f'<img class="mnmt-static" alt="{_attribute(self.alt)}" '
            f'src="data:image/svg+xml;base64,{_base64(self.svg.encode())}">\n'
            f'<div class="mnmt-live" role="img" aria-label="{_attribute(self.alt)}" hidden></div>\n'
            f'<script type="application/json">{spec}</script>\n</div>'
        )

    def _plain(self) -> str:
        return self.alt

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> dict[str, str]:  # the signature that IPython calls
        return {
            "text/html": self.to_html(),
            "image/png": _base64(self.png),
            "text/plain": self._text(),
        }


@dataclass(frozen=True, kw_only=True)
class Table(_Display):
    """A table with all that a page needs; see `show_table`."""

    shown: pd.DataFrame  # the cells as text, or badges
    numeric: tuple[bool, ...]  # per column
    below: str = ""  # the column whose cells stand under their rows, in full width

    def __post_init__(self) -> None:
        """Check `below`, too."""
        super().__post_init__()
        if self.below and self.below not in self.shown.columns:
            raise InputError(f"{self.name}: there is no column {self.below!r} to stand below")

    @property
    def constant(self) -> dict[str, str]:
        """What a wide table says once in place of a column: name to the value of every row."""
        shown = self.shown.drop(columns=self.below or [])
        if len(shown.columns) <= _MANY_COLUMNS or len(shown) < 2:
            return {}
        return {
            str(column): cells.iloc[0]
            for column, cells in shown.iloc[:, 1:].items()
            if isinstance(cells.iloc[0], str) and cells.nunique() == 1
        }

    def _body(self) -> str:
        constant = self.constant
        columns = [
            (str(column), _number(numeric))
            for column, numeric in zip(self.shown.columns, self.numeric, strict=True)
            if column != self.below and column not in constant
        ]
        heads = "".join(
            f'<th scope="col"{numeric}><button type="button">{html.escape(column)}</button></th>'
            for column, numeric in columns
        )
        bodies = []
        for row in self.shown.to_dict("records"):
            cells = "".join(
                f"<td{numeric or _room(str(row[column]), first=not i)}>{_escaped(row[column])}</td>"
                for i, (column, numeric) in enumerate(columns)
            )
            if below := row.get(self.below, ""):
                text = f"<b>{html.escape(self.below)}:</b> {_escaped(below)}"
                cells += f'</tr><tr><td class="mnmt-below" colspan="{len(columns)}">{text}</td>'
            bodies.append(f"<tbody><tr>{cells}</tr></tbody>")
        listed = ", ".join(f"{column} {value}" for column, value in constant.items())
        same = f'<div class="mnmt-same">In every row: {html.escape(listed)}.</div>' * bool(constant)
        label = f' aria-label="{_attribute(self.caption)}"' * bool(self.caption)
        return (
            f'<div class="mnmt-scroll"><table class="mnmt-table"{label}>\n'
            f"<thead><tr>{heads}</tr></thead>\n" + "\n".join(bodies) + f"</table></div>{same}"
        )

    def _plain(self) -> str:
        return self.shown.to_string(index=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        markdown = self.shown.to_markdown(index=False, disable_numparse=True)
        return {
            "text/html": self.to_html(),
            "text/markdown": f"{markdown}\n\n{self.caption}",
            "text/plain": self._text(),
        }


def show(
    chart: altair.TopLevelMixin,
    *,
    name: str,
    alt: str,
    data: pd.DataFrame,
    provenance: Provenance | str,
    badge: Badge | Sequence[Badge] = (),
    caption: str = "",
) -> Figure:
    """Display a chart with its text alternative, data, provenance and verdicts.

    Parameters
    ----------
    chart
        Any altair chart, of `width` and `height` in pixels rather than ``"container"``.
    name
        Unique on its page, such as ``"fig2-en-dezh"``; it names the CSV file and the anchor
        ``#mnmt-NAME``.
    alt
        What the chart shows, in a sentence or two, for a reader who does not see it.
    data
        The numbers drawn, offered as CSV; its index is left out.
    provenance
        `Provenance.of(rows)`, or one sentence for numbers that no run of ours made.
    badge
        The verdicts that this figure bears on.
    caption
        A sentence under the chart.

    Raises
    ------
    InputError
        If the name is malformed, or `alt` or `provenance` is empty.
    """
    return Figure(
        chart=chart,
        name=name,
        alt=alt,
        data=data,
        provenance=provenance,
        badges=_badges(badge),
        caption=caption,
    )


def show_table(
    frame: pd.DataFrame,
    *,
    name: str,
    provenance: Provenance | str,
    caption: str = "",
    formats: Mapping[str, str | Callable[[Any], str]] | None = None,
    data: pd.DataFrame | None = None,
    badge: Badge | Sequence[Badge] = (),
    below: str = "",
) -> Table:
    """Display a table that can be sorted in the browser and downloaded.

    Parameters
    ----------
    frame
        The table as shown; its index is left out. A cell may be a `Badge`.
    name, provenance, caption, badge
        As for `show`.
    formats
        Column to a format specification such as ``",.0f"`` or a function of the value. Other floats
        are shown with four significant digits, missing values as a dash.
    data
        What the CSV holds, where that is more than `frame`.
    below
        A column of sentences, each of which stands under its row in the full width of the table.

    Raises
    ------
    InputError
        If `formats` or `below` names a column that the frame does not have.
    """
    formats = formats or {}
    unknown = [column for column in formats if column not in frame.columns]
    if unknown:
        raise InputError(f"{name}: formats for columns that are not there: {', '.join(unknown)}")
    shown = pd.DataFrame(
        {
            column: [_cell(value, formats.get(column)) for value in frame[column]]
            for column in frame.columns
        }
    )
    numeric = tuple(pd.api.types.is_numeric_dtype(frame[column]) for column in frame.columns)
    return Table(
        shown=shown,
        numeric=numeric,
        below=below,
        name=name,
        data=frame if data is None else data,
        provenance=provenance,
        badges=_badges(badge),
        caption=caption,
    )


def _cell(value: Any, form: str | Callable[[Any], str] | None) -> str | Badge:
    if isinstance(value, Badge):
        return value
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "–"
    if callable(form):
        return form(value)
    if form is not None:
        return format(value, form)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _badges(badge: Badge | Sequence[Badge]) -> tuple[Badge, ...]:
    return (badge,) if isinstance(badge, Badge) else tuple(badge)


def vega_lite_version() -> str:
    """Name the Vega-Lite version of altair's charts as vl-convert does, such as ``"6.1"``."""
    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _number(numeric: bool) -> str:
    return ' class="mnmt-number"' if numeric else ""


def _room(cell: str, *, first: bool) -> str:
    """Give a sentence room, and keep what names a row, or a name as eng-zul, on one line."""
    if len(cell) > _PROSE:
        return ' class="mnmt-prose"'
    a_name = len(cell) <= _FIRST_LENGTH if first else len(cell) <= _NAME_LENGTH and "-" in cell
    return ' class="mnmt-name"' if a_name else ""


def _escaped(cell: str | Badge) -> str:
    return cell.to_html() if isinstance(cell, Badge) else html.escape(cell)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _attribute(text: str) -> str:
    return html.escape(text, quote=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _count_of(term: str, values: Sequence[str]) -> str:
    return f"{term} ({len(values)})" if len(values) > 1 else term


def _short(hashes: Sequence[str], most: int = 3) -> list[str]:
    """Shorten hashes for reading; of many, count the rest.

    >>> _short(["0123456789abcdef"] * 5)
    ['0123456789', '0123456789', '0123456789', 'and 2 more']
    """
    shown = [value[:10] for value in hashes[:most]]
    return shown + [f"and {len(hashes) - most} more"] * (len(hashes) > most)


def _duration(seconds: float) -> str:
    """Write a duration in its natural unit.

    >>> _duration(40), _duration(600), _duration(9000)
    ('40 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
