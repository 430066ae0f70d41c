"""The interactive planner: losses at every mixture of two pairs, and the mixture to train.

The chart opens with what Python computes, so that it can be read without scripts. In the book
`planner.js` fits the same laws in the browser, to a stored cohort or to losses that a reader
pastes, and replaces the chart's data sets. Figure 1 of Paper A is a cartoon of the trade-off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit, Importance, recommend_weights
from mnmt_repro.laws.frontier import checked_pairs
from mnmt_repro.laws.recommendation import LEVEL
from mnmt_repro.papers.charts.display import Figure
from mnmt_repro.papers.charts.template import Html
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, INK, plain
from mnmt_repro.papers.cohorts.names import pair_name

_WEIGHTS = tuple(round(float(p), 2) for p in np.arange(0.01, 1.0, 0.01))  # of drawn curves
BEYOND = 10  # how many times the largest size fitted the axis has room for
DIGITS = 4  # decimals of a loss in the chart
CSV_DIGITS = 6  # and in the tables that the browser fits
_LABELS = {"chosen": "best by the law", "baseline": "baseline"}  # of the lines
ENLARGED = 0.05  # nats over which the weighted mean is enlarged
HATCHES = 16  # lines across the height of the chart


def planner_coefficients(laws: Mapping[str, FractionFit]) -> pd.DataFrame:
    """Coefficients of each pair's law, a row a pair: what the planner computes with."""
    return pd.DataFrame(
        [{"pair": pair, "form": law.law.form, **law.params} for pair, law in laws.items()]
    )


def weights_covered(laws: Mapping[str, FractionFit]) -> tuple[float, float]:
    """Weights of the first pair at which both laws interpolate: a recommendation lies between."""
    first, second = (sorted({p for p in laws[pair].law.p if p < 1}) for pair in sorted(laws))
    return max(first[0], 1 - second[-1]), min(first[-1], 1 - second[0])


def losses_csv(points: pd.DataFrame) -> str:
    """Write a cohort's points, from `scaling.observed`, as the table that `recommend` reads."""
    table = points[["pair", "p", "n", "loss"]].round({"loss": CSV_DIGITS})
    return table.to_csv(index=False, lineterminator="\n")


def loss_axis(laws: Mapping[str, FractionFit], n: float) -> tuple[float, float]:
    """Ends of the loss axis: all losses observed, and those of the laws at the trained weights.

    The laws are read at size `n` and at `BEYOND` times the largest size, so the axis is the same
    for all sizes between the smallest and that one.
    """
    losses: list[float] = []
    for law in laws.values():
        losses += [*law.loss, *law.predict([1.0], BEYOND * max(law.law.n))]
        losses += [*law.predict(sorted({p for p in law.law.p if p > 0}), n)]
    return round(0.95 * min(losses), 3), round(1.02 * max(losses), 3)


def datasets(
    laws: Mapping[str, FractionFit], n: float, importance: float, baseline: float
) -> dict[str, list[dict[str, Any]]]:
    """Tabulate what the chart draws, as `planner.js` does.

    Parameters
    ----------
    laws
        Two pairs to their laws, from `fractions.fraction_fits`.
    n
        Model size.
    importance
        Of the first pair, 0 to 1; the second has the rest.
    baseline
        Weight of the first pair to compare with.

    Returns
    -------
    dict of data set to rows
        ``curve``: loss of each pair with its band, at each weight of the first pair; ``mean``: the
        weighted mean; ``points``: observed losses, ``near`` where of the size nearest to n;
        ``chosen``: the recommended weight, no row where it would be extrapolated or a fraction is
        not identified; ``baseline``;
        ``hatch``: lines over the weights (and sizes) to which the laws are extrapolated.
    """
    first, second = sorted(laws)
    low, high = weights_covered(laws)
    share = {first: np.array(_WEIGHTS), second: 1 - np.array(_WEIGHTS)}
    curve, points = [], []
    for pair in (first, second):
        band = laws[pair].band(share[pair], n, level=LEVEL).round(DIGITS)
        curve += [
            {"p": p, "name": pair_name(pair), "loss": row.loss, "low": row.low, "high": row.high}
            for p, row in zip(_WEIGHTS, band.itertuples(), strict=True)
        ]
        nearest = min(set(laws[pair].law.n.tolist()), key=lambda size: abs(np.log(size / n)))
        points += [
            {
                "p": round(p if pair == first else 1 - p, 9),
                "name": pair_name(pair),
                "loss": round(loss, DIGITS),
                "n": size,
                "near": size == nearest,
            }
            for (p, size), loss in zip(laws[pair].law.rows.tolist(), laws[pair].loss, strict=True)
        ]
    losses = [laws[pair].predict(share[pair], n) for pair in (first, second)]
    mean = importance * losses[0] + (1 - importance) * losses[1]
    found = recommend_weights(
        laws, n, Importance(by_pair={first: importance, second: 1 - importance})
    )
    best = found.weights[first]
    inside = low - 1e-6 <= best <= high + 1e-6
    sure = not any(law.doubts() for law in laws.values())
    chosen = {"p": best, "low": found.weights_low[first], "high": found.weights_high[first]}
    sizes = laws[first].law.n
    outside = [(0.0, low), (high, 1.0)] if min(sizes) <= n <= max(sizes) else [(0.0, 1.0)]
    return {
        "curve": curve,
        "mean": [
            {"p": p, "loss": round(float(v), DIGITS)} for p, v in zip(_WEIGHTS, mean, strict=True)
        ],
        "points": points,
        "chosen": [{k: round(v, DIGITS) for k, v in chosen.items()}] if inside and sure else [],
        "baseline": [{"p": baseline}],
        "hatch": hatch(outside, loss_axis(laws, n)),
    }


def hatch(outside: list[tuple[float, float]], axis: tuple[float, float]) -> list[dict[str, float]]:
    """Lines that rise over ranges of weights, evenly spaced along the loss axis."""
    step = (axis[1] - axis[0]) / HATCHES
    rise = 20 * step  # over the whole width
    return [
        {"x": a, "x2": b, "y": (y := axis[0] + k * step), "y2": y + (b - a) * rise}
        for a, b in outside
        for k in range(-20 if (a, b) == (0, 1) else 0, HATCHES)
    ]


def planner(laws: Mapping[str, FractionFit], n: float) -> alt.VConcatChart:
    """Losses of two pairs at every mixture, with the one for pairs of equal importance.

    Below, their weighted mean enlarged: its least value is hard to see among losses of all sizes.
    Parameters are those of `datasets`; the baseline gives each pair half of the mixture.

    Raises
    ------
    InputError
        When there are not two laws, or one is not identified.
    """
    if len(laws) != 2:
        raise InputError(f"the planner is for two pairs, got {', '.join(laws)}")
    pairs = sorted(checked_pairs(laws))
    x = alt.X("p:Q", scale=alt.Scale(domain=[0, 1]), title=f"weight of {pair_name(pairs[0])}")
    scale = alt.Scale(domain=list(loss_axis(laws, n)), nice=False, zero=False)

    def height(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=scale, title="test loss (nats per token)")

    y = height("loss")
    # The script draws other pairs, too: so a colour stands for the first or the second.
    colours = alt.Scale(range=list(CATEGORIES[:2]))
    names = alt.Color("name:N", title=None, sort=None, scale=colours)
    names = names.legend(symbolOpacity=1)
    fill = alt.Fill("name:N", sort=None, scale=colours, legend=None)

    def of(name: str) -> alt.Chart:
        return alt.Chart(alt.NamedData(name))

    # Labels stand above the chart, each in its line, so that no line crosses them.
    def label(name: str, y: float, **style: Any) -> alt.Chart:
        side = alt.expr("datum.p > 0.85 ? 'right' : datum.p < 0.15 ? 'left' : 'center'")
        mark = of(name).mark_text(align=side, color=INK, **style)
        return mark.encode(x=alt.X("p:Q"), y=alt.value(y), text=alt.value(_LABELS[name]))

    marks = [
        of("chosen").mark_rect(color=INK, opacity=0.12).encode(x=alt.X("low:Q"), x2="high"),
        of("baseline").mark_rule(color=INK, strokeDash=[2, 3], strokeWidth=2).encode(x),
        of("chosen").mark_rule(color=INK, strokeWidth=2.5).encode(x),
    ]
    near = alt.condition("datum.near", alt.value(1), alt.value(0.65))
    size = alt.condition("datum.near", alt.value(48), alt.value(14))
    losses = alt.layer(
        of("hatch")
        .mark_rule(color=GREY, opacity=0.5, clip=True)
        .encode(x=alt.X("x:Q"), x2="x2", y=height("y"), y2="y2"),
        marks[0],
        of("curve")
        .mark_area(opacity=0.2, clip=True)
        .encode(x, height("low"), y2="high", color=names),
        of("curve").mark_line(clip=True).encode(x, y, names),
        of("mean").mark_line(color=INK, strokeDash=[6, 4], clip=True).encode(x, y),
        of("points")
        .mark_point(stroke=INK, strokeWidth=0.8)
        .encode(x, y, fill=fill, opacity=near, size=size, tooltip=["name:N", "n:Q", "loss:Q"]),
        *marks[1:],
        label("chosen", -8, fontWeight=600),
        label("baseline", -22),
    ).properties(width=560, height=340)
    above = alt.Y("above:Q", title=["weighted mean", "above its least"])
    mean = (
        of("mean")
        .transform_joinaggregate(least="min(loss)")
        .transform_calculate(above="datum.loss - datum.least")
        .mark_line(color=INK, strokeDash=[6, 4], clip=True)
        .encode(x, above.scale(domain=[0, ENLARGED], nice=False).axis(tickCount=3))
    )
    chart = alt.vconcat(losses, alt.layer(*marks, mean).properties(width=560, height=90))
    chart.datasets = datasets(laws, n, importance=0.5, baseline=0.5)
    return chart


def with_controls(
    figure: Figure,
    tables: Mapping[str, str],
    settings: Mapping[str, float],
    names: Mapping[str, str],
) -> Html:
    """The chart with the tables among which a reader chooses; the script adds the controls.

    Parameters
    ----------
    figure
        `show(planner(...))`.
    tables
        Label to the CSV of a stored cohort, from `losses_csv`; the first is the chart's.
    settings
        ``n, importance, baseline``, with which the controls open.
    names
        Code of a pair to what the page calls it; other pairs keep their codes.
    """
    tables = {plain(label): table for label, table in tables.items()}
    content = json.dumps({"tables": tables, "settings": settings, "names": names})
    text = content.replace("<", "\\u003c")
    html = (
        '<div class="mnmt-planner mathjax_ignore">\n'
        f'<script type="application/json" class="mnmt-planner-tables">{text}</script>\n'
        f"{figure.to_html()}\n</div>"
    )
    return Html(html=html, words=figure.text())
