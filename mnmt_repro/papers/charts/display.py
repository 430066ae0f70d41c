"""How a page displays a chart or a table.

`show` and `show_table` return objects that a notebook displays with everything a page owes its
reader: an interactive chart over a static one (for print, or where no script runs), a text
alternative, the data as CSV, where they come from, and a verdict badge. In the book the interactive
chart is drawn by the book's own copy of Vega, and in JupyterLab by that of JupyterLab.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import altair
import numpy as np
import pandas as pd
import vl_convert
from IPython.display import Markdown

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import Badge, typeset
from mnmt_repro.papers.charts.provenance import Provenance, counted
from mnmt_repro.papers.charts.template import render
from mnmt_repro.papers.charts.theme import vega_lite_version
from mnmt_repro.repository import ROOT

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MARKED = re.compile(r"–|[+-]?[\d.,]+(\*|\(\*\))?")  # a number as tables mark significance
_FILE = re.compile(r"\b(data/[\w/-]+\.[a-z]+)\b")  # of the repository, which a source names
_LONG = re.compile(r"\d+\.\d{3,}")  # a coordinate of an SVG; hundredths of a pixel are enough
_PROSE = 60  # characters from which a cell of a table is read as a sentence
_NAME_LENGTH = 9  # up to which one with a hyphen is read as a name
_FIRST_LENGTH = 24  # the same in the first column
VEGA_LITE = "application/vnd.vegalite.v5+json"  # the version that JupyterLab 4 draws
_MANY_COLUMNS = 6  # beyond which a table leaves out what is the same in every row


@dataclass(frozen=True, kw_only=True)
class _Display(ABC):
    """The frame around a chart or a table: name, caption, data, provenance, verdicts."""

    name: str
    data: pd.DataFrame
    provenance: Provenance | str
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
        """The data behind the display, as CSV, without columns whose cells are arrays."""
        scalar = [not any(map(np.ndim, cells.head(1))) for _, cells in self.data.items()]
        return self.data.loc[:, scalar].to_csv(index=False, lineterminator="\n")

    def to_html(self) -> str:
        """Write the whole display as HTML that fetches nothing and runs no script of its own."""
        pieces = enumerate(_FILE.split(str(self.provenance)))  # each second one is a file
        source = [(text, (ROOT / text).read_text("utf-8") if i % 2 else "") for i, text in pieces]
        about: dict[str, Any] = {"source": source, "runs": "", "counted": ""}
        if isinstance(self.provenance, Provenance):
            about["runs"] = json.dumps(self.provenance.details(), indent=1)
            about["counted"] = counted(len(self.provenance.values["run_id"]), "run")
        rows = counted(len(self.data), "row")
        return render("figure", shown=self, body=self._body(), rows=rows, **about)

    def text(self) -> str:
        """Return caption, verdicts and provenance as plain text, for print and terminals."""
        parts = (self.caption, self._plain(), str(self.provenance))
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
        # Not validated: that takes most of the time of a chart, and the tests of charts do it.
        return {**self.chart.to_dict(validate=False), "description": self.alt}

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, without a label for each mark: the image has one text alternative."""
        quiet = {**self.spec, "config": {**self.spec.get("config", {}), "aria": False}}
        svg = vl_convert.vegalite_to_svg(quiet, vl_version=vega_lite_version())
        return _LONG.sub(lambda number: f"{float(number[0]):.2f}", svg)

    def _body(self) -> str:
        # "<" is escaped so that no text of the data can close the script element.
        spec = json.dumps(self.spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return render("chart", name=self.name, alt=self.alt, svg=self.svg, spec=spec)

    def _plain(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give JupyterLab the chart, and all others the whole display.

        JupyterLab prefers a chart to Markdown, but ``text/html`` to a chart. HTML without an empty
        line is Markdown.
        """
        said = {"text": wrap(self.caption, 90), "orient": "bottom", "fontWeight": "normal"}
        html = re.sub(r"\n\s*\n", "\n", self.to_html().strip())
        chart = {VEGA_LITE: {"title": said, **self.spec}}
        return {**chart, "text/markdown": html, "text/plain": self.text()}


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
        columns = {
            str(column): numeric
            for column, numeric in zip(self.shown.columns, self.numeric, strict=True)
            if column != self.below and column not in constant
        }
        rows = [
            {
                "cells": [
                    (row[column], "number" if numeric else _room(str(row[column]), first=not i))
                    for i, (column, numeric) in enumerate(columns.items())
                ],
                "below": row.get(self.below, ""),
            }
            for row in self.shown.to_dict("records")
        ]
        same = "; ".join(f"{column} {value}" for column, value in constant.items() if value != "–")
        return render(
            "table", caption=self.caption, columns=columns, rows=rows, below=self.below, same=same
        )

    def _plain(self) -> str:
        return self.shown.to_string(index=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        markdown = self.shown.to_markdown(index=False, disable_numparse=True)
        return {
            "text/html": self.to_html(),
            "text/markdown": f"{markdown}\n\n{self.caption}",
            "text/plain": self.text(),
        }


def show(chart: altair.TopLevelMixin, **about: Any) -> Figure:
    """Display a chart with its text alternative, data and provenance.

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
    caption
        A sentence under the chart.
    folded
        Whether only the caption shows until a reader opens it.

    Raises
    ------
    InputError
        If the name is malformed, or `alt` or `provenance` is empty.
    """
    return Figure(chart=chart, **about)


def show_in(tab: str, chart: altair.TopLevelMixin, **about: Any) -> None:
    """Show a chart where the text of the page names this tab; `about` as of `show`."""
    from myst_nb import glue  # needs a kernel

    glue(tab, show(chart, **about))


def absent() -> Markdown:
    """What stands in place of a chart whose runs are not there."""
    return Markdown("*These runs are not in the store that is read.*")


def show_table(
    frame: pd.DataFrame,
    *,
    formats: Mapping[str, str | Callable[[Any], str]] | None = None,
    data: pd.DataFrame | None = None,
    **about: Any,
) -> Table:
    """Display a table that can be sorted in the browser and downloaded.

    Parameters
    ----------
    frame
        The table as shown; its index is left out. A cell may be a `Badge`.
    name, provenance, caption, folded
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
        raise InputError(
            f"{about['name']}: formats for columns that are not there: {', '.join(unknown)}"
        )
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
    return Table(shown=shown, numeric=numeric, data=frame if data is None else data, **about)


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


def _room(cell: str, *, first: bool) -> str:
    """Kind of a cell of text: a name that stays on one line, a sentence, or neither."""
    if len(cell) > _PROSE:
        return "prose"
    a_name = len(cell) <= _FIRST_LENGTH if first else len(cell) <= _NAME_LENGTH and "-" in cell
    return "name" if a_name else ""
