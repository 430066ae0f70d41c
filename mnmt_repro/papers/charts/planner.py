"""The planner: the losses of two pairs at every mixture, with sliders (Figure 1 of Paper A).

The curves are Eq. 11 with the fraction of Eq. 12, which the browser evaluates at the size that the
reader sets. The best weights and their intervals are computed here, for every size and importance
that the sliders offer.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.frontier import checked_pairs
from mnmt_repro.laws.recommendation import MOST_BEYOND
from mnmt_repro.laws.uncertainty import percentiles
from mnmt_repro.papers.charts.theme import CATEGORIES, INK, sliders
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
    laws: Mapping[str, FractionFit], best: pd.DataFrame, size: int, importance: float = 0.5
) -> alt.LayerChart | alt.FacetChart:
    """Losses of two pairs and their weighted mean at every mixture, with the best one.

    Parameters
    ----------
    laws : two pairs to their laws, of the form of Eq. 12
    best : from `best_weights`
    size, importance : with which the sliders open; the size is brought to the nearest one offered
    """
    one, other = laws
    sizes, (low, high) = sizes_offered(laws), weights_covered(laws)
    trained = min(max(law.law.n) for law in laws.values())
    opening = min(sizes, key=lambda n: abs(n - size))
    params = sliders(
        ("size", "parameters N ", sizes[0], sizes[-1], sizes[0], opening),
        ("importance", f"importance of {pair_name(one)} ", 0.1, 0.9, 0.05, importance),
        ("own", f"your weight of {pair_name(one)} ", low, high, 0.01, 0.5),
    )
    x = alt.X("p:Q", scale=alt.Scale(domain=[0, 1]), title=f"weight of {pair_name(one)}")
    y = alt.Y("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")

    def losses(p: str) -> tuple[str, str, str]:
        """Expressions of both losses and their weighted mean at a weight of the first pair."""
        first, second = _law(laws[one], p), _law(laws[other], f"(1 - {p})")
        return first, second, f"importance * ({first}) + (1 - importance) * ({second})"

    def curve(loss: str) -> alt.Chart:
        line = alt.Chart(alt.sequence(low, high + 1e-9, 0.005, as_="p"))
        return line.transform_calculate(loss=loss).encode(x, y)

    first, second, mean = map(curve, losses("datum.p"))
    named = [
        line.transform_filter(f"datum.p > {high - 0.002}").mark_text(
            text=pair_name(pair), color=colour, fontSize=12, align="left", dx=5
        )
        for line, pair, colour in zip((first, second), laws, CATEGORIES, strict=False)
    ]
    chosen = alt.Chart(best).transform_filter(
        "datum.n == size && abs(datum.importance - importance) < 0.001"
    )
    own = alt.Chart(pd.DataFrame({"row": [0]})).transform_calculate(p="own")
    dearer = f"({losses('own')[2]}) / ({losses('datum.best')[2]}) - 1"
    said = chosen.transform_calculate(
        which="'best ' + format(datum.best, '.2f')"
        "+ ' (' + format(datum.low, '.2f') + ' to ' + format(datum.high, '.2f') + ')'",
        price=f"'your weight: loss ' + format({dearer}, '+.1%')"
        f"+ (size > {trained} ? ' (extrapolated)' : '')",
    ).mark_text(color=INK, fontSize=13)
    dots = _points(laws)
    sized = dots.transform_aggregate(n="min(n)").transform_calculate(
        sizes="'N = ' + format(size, ',') + '; dots: N = ' + format(datum.n, ',')"
    )
    middle = alt.value(alt.expr("width / 2"))
    return (
        alt.layer(
            chosen.mark_rect(color=INK, opacity=0.12).encode(alt.X("low:Q"), x2="high"),
            chosen.mark_rule(color=INK, strokeWidth=2.5).encode(alt.X("best:Q")),
            own.mark_rule(color=INK, strokeDash=[2, 3], strokeWidth=2).encode(x),
            first.mark_line(color=CATEGORIES[0]),
            second.mark_line(color=CATEGORIES[1]),
            mean.mark_line(color=INK, strokeDash=[6, 4]),
            *named,
            dots.mark_point(filled=True, size=60).encode(
                x, y, alt.Color("colour:N", scale=None), tooltip=["name:N", "n:Q", "p:Q", "loss:Q"]
            ),
            sized.mark_text(color=INK, fontSize=13).encode(
                x=middle, y=alt.value(-46), text="sizes:N"
            ),
            said.encode(alt.X("best:Q"), y=alt.value(-10), text="which:N"),
            said.encode(x=middle, y=alt.value(-28), text="price:N"),
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
