"""`fit --report`: one HTML file, without scripts or other files, that shows what `fit` found."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mnmt_repro.cli.fit import as_options

if TYPE_CHECKING:
    import altair
    from jinja2 import Template
    from markupsafe import Markup

    from mnmt_repro.cli.fit import Fit, FitOptions, FittedPair

WIDTH, HEIGHT = 420, 260
POINTS = 60
"""Of each curve."""
MEANING = {
    "alpha": "exponent of the size",
    "l_inf": "loss that no size goes below",
    "beta": "factor",
    "c1": "coefficient of f(p)",
    "c2": "coefficient of f(p)",
    "c3": "coefficient of f(p)",
    "E": "loss that neither size nor data go below",
    "A": "factor of the size",
    "B": "factor of the data",
}
"""Of the parameters; beta of the additive law, an exponent, has another."""


def fit_report(outcomes: Sequence[FittedPair], notes: Sequence[str], options: FitOptions) -> str:
    """The whole file as HTML."""
    return _template("fit_report").render(
        title=f"Scaling laws of {options.file.name}",
        style="",
        outcomes=outcomes,
        notes=notes,
        parameters=_parameters,
        curves=partial(_curves, options=options),
        fraction=_fraction,
        not_drawn=_no_frontier(outcomes),
        frontier=partial(_frontier, options=options),
        code=code(outcomes, options),
        as_options=as_options,
    )


def page(title: str, body: str, style: str = "") -> str:
    """Write an HTML file that needs no other file, from the HTML of its body and more CSS."""
    return _template("page").render(title=title, body=body, style=style)


def _template(name: str) -> Template:
    """Read ``templates/<name>.html``, which escapes the values that fill it in."""
    from jinja2 import PackageLoader

    from mnmt_repro.templates import templates

    found = templates(PackageLoader("mnmt_repro.cli"))
    found.filters |= {"svg": _svg, "table": _table}
    return found.get_template(f"{name}.html")


def _parameters(found: FittedPair) -> pd.DataFrame:
    """The parameters of a law, with what they mean."""
    fit = found.fit
    meaning = MEANING | ({"beta": "exponent of the data"} if found.call.law == "additive" else {})
    meaning |= {"l_inf": "quality that no size exceeds"} if fit.direction == "max" else {}
    table = found.table.assign(held=np.where(found.table["held"], "yes", ""))
    table.insert(1, "meaning", [meaning[name.partition("[")[0]] for name in fit.names])
    return table.rename(columns={"stderr": "standard error", "held": "at a bound"})


def _no_frontier(outcomes: Sequence[FittedPair]) -> str:
    """Why the frontier between the pairs cannot be drawn; empty where it can."""
    from mnmt_repro.laws import FractionFit

    doubtful = [found.pair for found in outcomes if found.doubts or not found.fit.identified]
    if doubtful:
        return f"not identified for {', '.join(doubtful)}"
    laws = sum(isinstance(found.fit, FractionFit) for found in outcomes)
    return "" if laws == 2 else "needed for two pairs"


def _frontier(outcomes: Sequence[FittedPair], options: FitOptions) -> altair.TopLevelMixin:
    """Losses of two pairs along their mixtures."""
    import altair as alt

    from mnmt_repro.laws import FractionFit, frontier

    laws = {found.pair: found.fit for found in outcomes if isinstance(found.fit, FractionFit)}
    sizes = np.unique([n for law in laws.values() for n in law.n])
    curve = frontier(laws, sizes).pivot(index=["n", "point"], columns="pair", values="loss")
    one, two = laws
    table = curve.reset_index().rename(columns={one: "one", two: "two"})
    table["size"] = table["n"].map("{:,.6g}".format)
    return (
        alt.Chart(table)
        .mark_line()
        .encode(
            alt.X("one:Q", title=f"{options.loss_column}, {one}", scale=alt.Scale(zero=False)),
            alt.Y("two:Q", title=f"{options.loss_column}, {two}", scale=alt.Scale(zero=False)),
            alt.Color("size:O", sort=None, scale=alt.Scale(scheme="viridis")),
            order="point:Q",
        )
    )


def _lines(fit: Fit) -> pd.DataFrame:
    """The law between the least and the greatest size, for each curve: ``n, loss, curve``."""
    grid, n, design = np.geomspace(min(fit.n), max(fit.n), POINTS), np.array(fit.n), fit.design()
    names, first = np.unique(fit.curve_names(), return_index=True)
    given = np.where(design == n[:, None], 0.0, design)[first]  # all but the size
    parts = []
    for k in np.lexsort(given.T):
        row = first[k]
        at = np.where(design[row] == n[row], grid[:, None], design[row])
        loss = fit.curve(np.array(fit.values), at)
        parts.append(pd.DataFrame({"n": grid, "loss": loss, "curve": names[k]}))
    return pd.concat(parts, ignore_index=True)


def _curves(fit: Fit, options: FitOptions) -> altair.TopLevelMixin:
    import altair as alt

    log = alt.Scale(type="log", nice=False, padding=8)
    x = alt.X("n:Q", scale=log, title="size")
    y = alt.Y("loss:Q", scale=log, title=options.loss_column)
    left = alt.Y("residual:Q", axis=alt.Axis(format=".1%"))
    several = "data" if options.law == "additive" else options.by or "weight"
    colour = alt.Color("curve:O", title=several, sort=None, scale=alt.Scale(scheme="viridis"))
    rows = pd.DataFrame({"n": fit.n, "loss": fit.loss, "curve": fit.curve_names()})
    rows["residual"] = rows["loss"] / fit.fitted() - 1
    points = alt.Chart(rows).mark_point(size=25, filled=True)
    curves = alt.Chart(_lines(fit)).mark_line().encode(x, y, colour) + points.encode(x, y, colour)
    below = points.encode(x, left, colour).properties(width=WIDTH, height=HEIGHT // 2)
    return alt.vconcat(curves.properties(width=WIDTH, height=HEIGHT), below)


def _fraction(fraction: pd.DataFrame) -> altair.TopLevelMixin:
    import altair as alt

    x = alt.X("p:Q", title="weight p")
    title = "effective fraction f(p)"
    y, low = alt.Y("f:Q", title=title), alt.Y("f_low:Q", title=title)
    base = alt.Chart(fraction)
    bars = base.mark_rule(strokeWidth=2).encode(x, low, y2="f_high:Q")
    dots = base.mark_point(filled=True).encode(x, y)
    line = base.mark_line(strokeDash=[2, 3], color="gray").encode(x, alt.Y("p:Q", title=title))
    return (line + bars + dots).properties(width=WIDTH, height=HEIGHT // 2)


def _svg(chart: altair.TopLevelMixin, caption: str) -> Markup:
    import vl_convert
    from markupsafe import Markup

    svg = vl_convert.vegalite_to_svg(chart.to_json())
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{caption}" ', 1))


def _table(frame: pd.DataFrame) -> Markup:
    from markupsafe import Markup

    text = frame.to_html(index=False, border=0, float_format=lambda x: f"{x:.4g}")
    return Markup(f'<div class="wide">{text}</div>')


def code(outcomes: Sequence[FittedPair], options: FitOptions) -> str:
    """Python code that repeats the fits, under the command that made the report."""
    used = sorted({found.call.function for found in outcomes})
    lines = [
        f"# {_command(options)}",
        "import pandas as pd",
        "",
        f"from mnmt_repro.laws import {', '.join(used)}",
        "",
        f'table = pd.read_csv({str(options.file)!r}, sep=None, engine="python")',
    ]
    for wish in options.where or ():
        column, _, value = wish.partition("=")
        lines.append(f"table = table[table[{column!r}].astype(str) == {value!r}]")
    renamed = {options.weight_column: "p", options.pair_column: "pair"}
    renamed = {old: new for old, new in renamed.items() if old != new}
    if renamed:
        lines.append(f"table = table.rename(columns={renamed!r})")
    for found in outcomes:
        rows = "table" if found.pair == "all rows" else f'table[table["pair"] == {found.pair!r}]'
        lines += ["", f"rows = {rows}"]
        if "p" in found.fit.inputs and not options.by:
            lines.append('rows = rows[rows["p"] > 0]')
        lines += [f"fit = {found.call.code()}", "print(fit.summary())"]
    return "\n".join(lines) + "\n"


def _command(options: FitOptions) -> str:
    """The command line with the options that are not at their defaults."""
    words = ["mnmt-repro", "fit", str(options.file)]
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        if each.name in ("file", "report", "json") or value == each.default:
            continue
        flag = f"--{each.name.replace('_', '-')}"
        for one in value if isinstance(value, tuple | list) else [value]:
            words += [flag] if one is True else [flag, str(one)]
    return shlex.join(words)
