"""The planner: the losses of two pairs at every mixture, with sliders (Figure 1 of Paper A).

The curves are Eq. 11 with the fraction of Eq. 12, which the browser evaluates at the size that the
reader sets. The best weights and their intervals are computed here, for every size and importance
that the sliders offer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.frontier import checked_pairs
from mnmt_repro.laws.recommendation import MOST_BEYOND
from mnmt_repro.laws.uncertainty import percentiles
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, INK, sliders
from mnmt_repro.papers.cohorts.names import pair_name

IMPORTANCES = tuple(round(0.05 * k, 2) for k in range(2, 19))
"""Of the first pair, 0.1 to 0.9, as its slider offers; the second pair has the rest."""
SIZES = 40
"""About how many sizes the slider offers."""
STEP = 0.001
"""Of the weights among which the best one is looked for: fine enough for two right digits."""
DRAWS = 500  # as many as `recommend_weights` makes, so that both print one interval


def sizes_offered(laws: Mapping[str, FractionFit]) -> list[int]:
    """Round sizes up to `MOST_BEYOND` times the largest trained one, in even steps."""
    end = MOST_BEYOND * min(max(law.law.n) for law in laws.values())
    digit = 10 ** int(np.log10(end / SIZES))
    step = round(end / SIZES / digit) * digit
    return list(range(step, int(end) + 1, step))


def weights_covered(laws: Mapping[str, FractionFit]) -> tuple[float, float]:
    """Least and greatest weight of the first pair that leave both a trained weight or more."""
    first, second = (min(laws[pair].law.p) for pair in laws)
    return first, 1 - second


def best_weights(laws: Mapping[str, FractionFit], draws: int = DRAWS) -> pd.DataFrame:
    """Weight of the first pair with the least weighted mean loss, at each position of the sliders.

    Parameters
    ----------
    laws : two pairs to their laws
    draws : refits of each law, for the interval

    Returns
    -------
    DataFrame
        ``n, importance, best, low, high``: the weight, and the ends of its 95 % interval. The same
        as `laws.recommend_weights` gives, to `STEP`.

    Raises
    ------
    InputError
        When there are not two laws, or one is not identified.
    """
    pairs = checked_pairs(laws)
    if len(pairs) != 2:
        raise InputError(f"the planner is for two pairs, got {', '.join(laws)}")
    low, high = weights_covered(laws)
    weights = np.linspace(low, high, round((high - low) / STEP) + 1)
    share = {pairs[0]: weights, pairs[1]: 1 - weights}
    values = {  # of the fit, then of its refits
        pair: np.vstack([law.values, law.draws(law.resampling, draws=draws, seed=i).values])
        for i, (pair, law) in enumerate(laws.items())
    }
    rows = []
    for n in sizes_offered(laws):
        losses: list[Array] = [
            laws[pair].law.curve(values[pair], laws[pair].law.rows_at(share[pair], n))
            for pair in pairs
        ]
        for importance in IMPORTANCES:
            mean = importance * losses[0] + (1 - importance) * losses[1]
            best, *refits = weights[mean.argmin(axis=1)]
            rows.append((n, importance, best, *percentiles(np.array(refits))))
    table = pd.DataFrame(rows, columns=["n", "importance", "best", "low", "high"])
    return table.round({"best": 4, "low": 4, "high": 4})


def planner(
    laws: Mapping[str, FractionFit], best: pd.DataFrame, size: int
) -> alt.LayerChart | alt.FacetChart:
    """Losses of two pairs and their weighted mean at every mixture, with the best one.

    Parameters
    ----------
    laws : two pairs to their laws, of the form of Eq. 12
    best : from `best_weights`
    size : with which its slider opens, brought to the nearest one offered
    """
    one, other = laws
    sizes, (low, high) = sizes_offered(laws), weights_covered(laws)
    trained = min(max(law.law.n) for law in laws.values())
    opening = min(sizes, key=lambda n: abs(n - size))
    params = sliders(
        ("size", "parameters N ", sizes[0], sizes[-1], sizes[0], opening),
        ("importance", f"importance of {pair_name(one)} ", 0.1, 0.9, 0.05, 0.5),
        ("own", f"your weight of {pair_name(one)} ", low, high, 0.01, 0.5),
    )
    tenths = alt.Axis(tickCount=10, format=".1f")
    x = alt.X("p:Q", title=f"weight of {pair_name(one)}", axis=tenths).scale(domain=[0, 1])
    y = alt.Y("loss:Q", scale=alt.Scale(zero=False, padding=8), title="test loss (nats per token)")

    def losses(p: str) -> dict[str, str]:
        """Expressions of both losses and their weighted mean at a weight of the first pair."""
        first, second = _law(laws[one], p), _law(laws[other], f"(1 - {p})")
        mean = f"importance * ({first}) + (1 - importance) * ({second})"
        return {"first": first, "second": second, "mean": mean}

    names = {"first": pair_name(one), "second": pair_name(other), "mean": "weighted mean"}
    inks, kinds = [*CATEGORIES[:2], INK], [[1, 0], [1, 0], [6, 4]]
    colour = alt.Color("line:N", legend=None).scale(domain=[*names], range=inks)
    dash = alt.StrokeDash("line:N", legend=None).scale(domain=[*names], range=kinds)
    curves = (
        alt.Chart(alt.sequence(low, high + 1e-9, 0.005, as_="p"))
        .transform_calculate(**losses("datum.p"))
        .transform_fold([*names], as_=["line", "loss"])
        .encode(y, colour)
    )
    ends = curves.transform_filter(f"datum.p > {high - 0.002}")
    ends = ends.transform_calculate(name=f"({json.dumps(names)})[datum.line]")
    named = ends.mark_text(align="left", dx=6, fontWeight=600)
    chosen = alt.Chart(best).transform_filter(
        "datum.n == size && abs(datum.importance - importance) < 0.001"
    )
    own = alt.Chart(pd.DataFrame({"row": [0]})).transform_calculate(p="own")
    dearer = f"({losses('own')['mean']}) / ({losses('datum.best')['mean']}) - 1"
    dots = _points(laws)
    solid: dict[str, Any] = {"color": INK, "strokeWidth": 2.5}
    dotted: dict[str, Any] = {"color": INK, "strokeWidth": 2, "strokeDash": [2, 3]}

    dotted_line = {"strokeDash": [0.1, 8.9], "strokeDashOffset": -4, "strokeCap": "round"}
    round_dots = {"color": GREY, "strokeWidth": 7} | dotted_line

    def key(y: int, data: alt.Chart, text: str, mark: Mapping[str, Any]) -> alt.LayerChart:
        """A row above the plot: a line as in the plot, and what it is."""
        base = data.transform_calculate(text=text).encode(y=alt.value(y))
        line = base.mark_rule(**mark).encode(x=alt.value(0), x2=alt.value(18))
        written = base.mark_text(align="left", color=INK, fontSize=13)
        return line + written.encode(x=alt.value(24), text="text:N")

    of_best = "'best ' + format(datum.best, '.2f') + ' (' + format(datum.low, '.2f')"
    of_own = f"'your weight ' + format(own, '.2f') + ': loss ' + format({dearer}, '+.1%')"
    beyond = f" + (size > {trained} ? ' (extrapolated)' : '')"
    sizes_said = "'N = ' + format(size, ',') + '; dots: N = ' + format(datum.n, ',')"
    return (
        alt.layer(
            chosen.mark_rect(color=INK, opacity=0.12).encode(alt.X("low:Q"), x2="high"),
            chosen.mark_rule(**solid).encode(alt.X("best:Q")),
            own.mark_rule(**dotted).encode(x),
            curves.mark_line().encode(x, dash),
            named.encode(x=alt.value("width"), text="name:N"),
            dots.mark_point(filled=True, size=60).encode(
                x, y, alt.Color("colour:N", scale=None), tooltip=["name:N", "n:Q", "p:Q", "loss:Q"]
            ),
            key(-48, dots.transform_aggregate(n="min(n)"), sizes_said, round_dots),
            key(-30, chosen, of_best + " + ' to ' + format(datum.high, '.2f') + ')'", solid),
            key(-12, chosen, of_own + beyond, dotted),
        )
        .add_params(*params)
        .properties(width=680, height=220)
    )


def _points(laws: Mapping[str, FractionFit]) -> alt.Chart:
    """Losses in mixtures, of the trained size that is nearest to the slider's."""
    rows = [
        (p if k == 0 else 1 - p, n, round(loss, 4), pair_name(pair), CATEGORIES[k])
        for k, (pair, law) in enumerate(laws.items())
        for (p, n), loss in zip(law.law.rows.tolist(), law.loss.tolist(), strict=True)
        if p < 1
    ]
    return (
        alt.Chart(pd.DataFrame(rows, columns=["p", "n", "loss", "name", "colour"]).round({"p": 6}))
        .transform_calculate(off="abs(log(datum.n / size))")
        .transform_joinaggregate(least="min(off)")
        .transform_filter("datum.off == datum.least")
    )


def _law(law: FractionFit, share: str) -> str:
    """Eq. 11 with the fraction of Eq. 12 as an expression of Vega, at the slider's size."""
    alpha, l_inf, beta, c1, c2, c3 = law.values.tolist()
    f = f"({share} + {c1!r} * pow({share}, {c2!r}) * pow(1 - {share}, {c3!r}))"
    return f"{l_inf!r} + {beta!r} * pow({f} * size, {-alpha!r})"
