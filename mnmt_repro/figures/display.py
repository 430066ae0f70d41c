"""How a page displays a chart or a table.

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
from typing import Any

import altair
import numpy as np
import pandas as pd
import vl_convert

from mnmt_repro.errors import InputError
from mnmt_repro.figures.badge import Badge, typeset
from mnmt_repro.figures.provenance import Provenance, counted
from mnmt_repro.figures.theme import vega_lite_version

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MARKED = re.compile(r"–|[+-]?[\d.,]+(\*|\(\*\))?")  # a number as tables mark significance
_PROSE = 60  # characters from which a cell of a table is read as a sentence
_NAME_LENGTH = 9  # up to which one with a hyphen is read as a name
_FIRST_LENGTH = 24  # the same in the first column
_MANY_COLUMNS = 6  # beyond which a table leaves out what is the same in every row


@dataclass(frozen=True, kw_only=True)
class _Display(ABC):
    """The frame around a chart or a table: name, caption, data, provenance, verdicts."""

    name: str
    data: pd.DataFrame
    provenance: Provenance | str
    badges: tuple[Badge, ...] = ()
    caption: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        """Check what a page could not mend later."""
        if not _NAME.fullmatch(self.name):
            raise InputError(f"name {self.name!r}: use small letters, digits and single hyphens")
        if not self.provenance:
            raise InputError(f"{self.name}: say where the numbers come from (provenance)")
        object.__setattr__(self, "caption", typeset(self.caption))

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
        shown = (
            f'<figure class="mnmt-figure mathjax_ignore" id="mnmt-{self.name}">\n'
            f"{self._body()}\n"
            f"<figcaption>{badges} {'' if self.folded else caption}\n"
            + download_link(
                f"{self.name}.csv",
                "text/csv",
                self.csv,
                f"Download data (CSV, {counted(len(self.data), 'row')})",
            )
            + f"\n{self._provenance()}</figcaption>\n</figure>"
        )
        if not self.folded:
            return shown
        title = html.escape(self.caption or self.name)
        return f'<details class="mnmt-folded"><summary>{title}</summary>\n{shown}\n</details>'

    def _provenance(self) -> str:
        if isinstance(self.provenance, str):
            return f'<div class="mnmt-provenance">{html.escape(self.provenance)}</div>'
        listed = json.dumps(self.provenance.details(), indent=1)
        runs = download_link(f"{self.name}-runs.json", "application/json", listed, "runs (JSON)")
        line = html.escape(self.provenance.line())
        return f'<div class="mnmt-provenance">{line} · {runs}</div>'

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
        alt = html.escape(self.alt)
        # "<" is escaped so that no text of the data can close the script element.
        spec = json.dumps(self.spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return (
            '<div class="mnmt-chart">\n'
            f'<img class="mnmt-static" alt="{alt}" '
            f'src="data:image/svg+xml;base64,{_base64(self.svg.encode())}">\n'
            f'<div class="mnmt-live" role="group" aria-label="{alt}" hidden></div>\n'
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
                below_all = f'class="mnmt-below" colspan="{len(columns)}"'
                cells += f"</tr><tr><td {below_all}><div>{text}</div></td>"
            bodies.append(f"<tbody><tr>{cells}</tr></tbody>")
        known = [f"{column} {value}" for column, value in constant.items() if value != "–"]
        listed = "; ".join(known)
        same = f'<div class="mnmt-same">In every row: {html.escape(listed)}.</div>' * bool(known)
        label = f' aria-label="{html.escape(self.caption)}"' * bool(self.caption)
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
    folded: bool = False,
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
    folded
        Whether only the caption shows until a reader opens it.

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
        folded=folded,
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
    folded: bool = False,
) -> Table:
    """Display a table that can be sorted in the browser and downloaded.

    Parameters
    ----------
    frame
        The table as shown; its index is left out. A cell may be a `Badge`.
    name, provenance, caption, badge, folded
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
    numeric = tuple(
        pd.api.types.is_numeric_dtype(frame[column]) or all(map(_marked_number, shown[column]))
        for column in frame.columns
    )
    return Table(
        shown=shown,
        numeric=numeric,
        below=below,
        name=name,
        data=frame if data is None else data,
        provenance=provenance,
        badges=_badges(badge),
        caption=caption,
        folded=folded,
    )


@dataclass(frozen=True, kw_only=True)
class Tabs:
    """Figures of which one shows at a time; see `tabs`."""

    name: str
    figures: Mapping[str, Figure]

    def to_html(self) -> str:
        """Write all figures; the script of the book shows one, and without it all are shown."""
        panels = "\n".join(
            f'<section class="mnmt-tab" aria-label="{html.escape(label)}">\n'
            f'<p class="mnmt-tab-label">{html.escape(label)}</p>\n{figure.to_html()}\n</section>'
            for label, figure in self.figures.items()
        )
        return f'<div class="mnmt-tabs mathjax_ignore" id="mnmt-{self.name}">\n{panels}\n</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        first = next(iter(self.figures.values()))
        plain = "\n\n".join(f"{label}\n{each._text()}" for label, each in self.figures.items())
        return {
            "text/html": self.to_html(),
            "image/png": _base64(first.png),
            "text/plain": plain,
        }


def tabs(name: str, figures: Mapping[str, Figure]) -> Tabs:
    """Display figures of one kind, such as one a cohort, in tabs; the first is open.

    Parameters
    ----------
    name
        Of the group, unique on its page.
    figures
        Label of the tab to `show(...)`.

    Raises
    ------
    InputError
        When there is no figure, or the name is malformed.
    """
    if not figures:
        raise InputError(f"{name}: tabs need at least one figure")
    if not _NAME.fullmatch(name):
        raise InputError(f"name {name!r}: use small letters, digits and single hyphens")
    return Tabs(name=name, figures=dict(figures))


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


def _marked_number(cell: str | Badge) -> bool:
    """Whether a cell is a number with a mark, or the dash of one that is missing.

    >>> _marked_number("-3.6*"), _marked_number("+0.8(*)"), _marked_number("4 of 8")
    (True, True, False)
    """
    return isinstance(cell, str) and bool(_MARKED.fullmatch(cell))


def _badges(badge: Badge | Sequence[Badge]) -> tuple[Badge, ...]:
    return (badge,) if isinstance(badge, Badge) else tuple(badge)


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


def labelled_cells(heads: Iterable[str], texts: Iterable[str]) -> str:
    """Cells of HTML that carry the heads of their columns, which a narrow screen shows in them.

    >>> labelled_cells(["ours"], ["<b>1</b>"])
    '<td data-label="ours"><b>1</b></td>'
    """
    return "".join(
        f'<td data-label="{html.escape(head)}">{text}</td>'
        for head, text in zip(heads, texts, strict=True)
    )


def download_link(name: str, kind: str, content: str, said: str) -> str:
    """Link to a file that the page itself carries; the book moves it to a file of its own."""
    return (
        f'<a class="mnmt-download" download="{name}" '
        f'href="data:{kind};charset=utf-8;base64,{_base64(content.encode())}">{said}</a>'
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
