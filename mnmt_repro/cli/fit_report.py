"""`fit --report`: one HTML file, without scripts or other files, that shows what `fit` found."""

from __future__ import annotations

import dataclasses
import html
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mnmt_repro.cli.fit import as_options

if TYPE_CHECKING:
    import altair

    from mnmt_repro.cli.fit import Fit, FitOptions, Outcome

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
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
tr { border-bottom: 1px solid #8886; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; overflow-x: auto; }
svg { background: white; }
pre { padding: 0.8rem; white-space: pre-wrap; border: 1px solid #8886; }
"""


def report(outcomes: Sequence[Outcome], notes: Sequence[str], options: FitOptions) -> str:
    """The whole file as HTML."""
    title = f"Scaling laws of {options.file.name}"
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if notes:
        parts.append("<h2>Notes on the table</h2>" + _list(notes))
    for found in outcomes:
        parts += _of_pair(found, options)
    if len(outcomes) > 1:
        parts += _of_frontier(outcomes, options)
    parts.append("<h2>The code</h2><p>This code repeats the fits.</p>")
    parts.append(f"<pre>{html.escape(code(outcomes, options))}</pre>")
    return page(title, "\n".join(parts))


def page(title: str, body: str, style: str = "") -> str:
    """Write an HTML file that needs no other file, from the HTML of its body and more CSS."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}{style}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _of_pair(found: Outcome, options: FitOptions) -> Iterator[str]:
    fit = found.fit
    yield f"<h2>{html.escape(found.pair)}</h2>"
    yield f"<p><code>{html.escape(found.formula)}</code>. {fit.observations} rows.</p>"
    if not fit.identified:
        yield f"<p><strong>Not identified:</strong> {html.escape(as_options(fit.reason))}</p>"
        yield _list(found.strange)
        return
    meaning = MEANING | ({"beta": "exponent of the data"} if found.law == "additive" else {})
    meaning |= {"l_inf": "quality that no size exceeds"} if fit.direction == "max" else {}
    meanings = [meaning[name.partition("[")[0]] for name in fit.names]
    table = found.table.assign(held=np.where(found.table["held"], "yes", ""))
    table.insert(1, "meaning", meanings)
    yield _table(table.rename(columns={"stderr": "standard error", "held": "at a bound"}))
    method = html.escape(found.method)
    yield f"<p>R² is {fit.r2:.4f}. Low and high are 95 % intervals: {method}.</p>"
    yield "<h3>Diagnostics and caveats</h3>"
    caveats = [f"Check {each.removesuffix('; check it')}." for each in found.strange]
    caveats.append(f"Lack of fit: {found.lack}.")
    caveats += [f"The effective fraction is not identified: {doubt}." for doubt in found.doubts]
    caveats += [f"A bound holds a parameter: {bound}." for bound in fit.active_bounds]
    if fit.runs:
        caveats.append(f"The rows come from {len(set(fit.runs))} runs, which count as one each.")
    caveats.append("Outside the sizes that were trained, the law is an extrapolation.")
    yield _list(caveats)
    yield _figure(
        _curves(fit, options),
        "Losses (points) and the fitted law (lines) against size. Below are the residuals as "
        "shares of the loss: a law that fits leaves them without a pattern.",
    )
    if len(found.fraction):
        yield _figure(
            _fraction(found.fraction),
            "Effective fraction f(p): a model of n parameters serves the pair as well as one of "
            "f(p) n parameters for the pair alone. Bars are 95 % intervals "
            f"({found.fraction_method}). On the dotted line, f = p.",
        )
        yield _table(found.fraction)


def _of_frontier(outcomes: Sequence[Outcome], options: FitOptions) -> Iterator[str]:
    """Losses of two pairs along their mixtures; a sentence where they cannot be drawn."""
    import altair as alt

    from mnmt_repro.laws import FractionFit, frontier

    yield "<h2>The frontier between the pairs</h2>"
    laws = {found.pair: found.fit for found in outcomes if isinstance(found.fit, FractionFit)}
    doubtful = [found.pair for found in outcomes if found.doubts or not found.fit.identified]
    if len(laws) != 2 or doubtful:
        why = f"not identified for {', '.join(doubtful)}" if doubtful else "needed for two pairs"
        yield (
            "<p>It is not drawn: a law of the effective fraction (<code>--law eq12</code>) is "
            f"{html.escape(why)}.</p>"
        )
        return
    sizes = np.unique([n for law in laws.values() for n in law.n])
    curve = frontier(laws, sizes).pivot(index=["n", "point"], columns="pair", values="loss")
    one, two = laws
    table = curve.reset_index().rename(columns={one: "one", two: "two"})
    table["size"] = table["n"].map("{:,.6g}".format)
    chart = (
        alt.Chart(table)
        .mark_line()
        .encode(
            alt.X("one:Q", title=f"{options.loss_column}, {one}", scale=alt.Scale(zero=False)),
            alt.Y("two:Q", title=f"{options.loss_column}, {two}", scale=alt.Scale(zero=False)),
            alt.Color("size:O", sort=None, scale=alt.Scale(scheme="viridis")),
            order="point:Q",
        )
    )
    yield _figure(
        chart,
        "Predicted losses of both pairs at each size that was trained. A line runs over all "
        "mixtures: towards its ends, one pair gets all the weight.",
    )


def _rows(fit: Fit) -> pd.DataFrame:
    """The rows fitted: size, loss, fitted loss and the curve that each belongs to."""
    table = {"n": fit.n, "loss": fit.loss, "fitted": fit.fitted(), "curve": fit.curve_names()}
    return pd.DataFrame(table)


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
    rows = _rows(fit).assign(residual=lambda t: t["loss"] / t["fitted"] - 1)
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


def _figure(chart: altair.TopLevelMixin, caption: str) -> str:
    import vl_convert

    text = html.escape(caption)
    svg = vl_convert.vegalite_to_svg(chart.to_json())
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{text}" ', 1)
    return f"<figure>{svg}<figcaption>{text}</figcaption></figure>"


def _table(frame: pd.DataFrame) -> str:
    text = frame.to_html(index=False, border=0, float_format=lambda x: f"{x:.4g}")
    return f'<div class="wide">{text}</div>'


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"


def code(outcomes: Sequence[Outcome], options: FitOptions) -> str:
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
    renamed = {options.p_column: "p", options.pair_column: "pair"}
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
