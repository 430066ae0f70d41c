"""The interactive planner: a frontier and a recommended mixture, computed in the browser.

The law is written as Vega expressions, so that the page needs no server: a list chooses the size,
and a slider the importance of the first pair. Figure 1 of Paper A is a cartoon of this chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.figures.names import pair_name
from mnmt_repro.figures.theme import CATEGORIES, GREY
from mnmt_repro.laws import FractionFit

STEP = 0.005  # between the weights tried
BEYOND = 10  # how many times the largest size that was fitted is on offer


def _loss(law: FractionFit, weight: str) -> str:
    """Eq. 11 as a Vega expression of a weight and the parameter `n` (log10 of the size)."""
    v = law.params
    if law.form == "eq12":
        bend = f"{v['c1']!r} * pow({weight}, {v['c2']!r}) * pow(1 - {weight}, {v['c3']!r})"
        fraction = f"({weight} + {bend})"
    else:
        fraction = f"({v['c1']!r} * ({weight} - 1) + 1)"
    return f"{v['l_inf']!r} + {v['beta']!r} * pow({fraction} * pow(10, n), {-v['alpha']!r})"


def coefficients(laws: Mapping[str, FractionFit]) -> pd.DataFrame:
    """Coefficients of each pair's law, a row a pair: what the planner computes with."""
    return pd.DataFrame(
        [{"pair": pair, "form": law.form, **law.params} for pair, law in laws.items()]
    )


def sizes_offered(fitted: Sequence[float]) -> dict[str, float]:
    """Round sizes from the least that was fitted to `BEYOND` times the largest, by their labels.

    >>> sizes_offered([4_000, 20_000])
    {'5k': 5000.0, '10k': 10000.0, '20k': 20000.0, '50k (extrapolated)': 50000.0, \
'100k (extrapolated)': 100000.0, '200k (extrapolated)': 200000.0}
    """
    low, high = min(fitted), max(fitted)
    first, last = math.floor(math.log10(low)), math.floor(math.log10(BEYOND * high))
    steps = [float(step * 10**power) for power in range(first, last + 1) for step in (1, 2, 5)]
    found = {}
    for n in steps:
        if low <= n <= BEYOND * high:
            unit = next(u for u in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")) if n >= u[0])
            found[f"{n / unit[0]:g}{unit[1]}" + " (extrapolated)" * (n > high)] = n
    return found


def weights_covered(laws: Mapping[str, FractionFit]) -> tuple[float, float]:
    """Weights of the first pair at which both laws interpolate: a recommendation lies between."""
    first, second = (sorted({p for p in laws[pair].p if p < 1}) for pair in sorted(laws))
    return max(first[0], 1 - second[-1]), min(first[-1], 1 - second[0])


def planner(laws: Mapping[str, FractionFit]) -> alt.LayerChart | alt.FacetChart:
    """Frontier of two pairs at a chosen size, with the recommended mixture.

    The recommended weight minimises `importance * loss of the first pair + (1 - importance) * loss
    of the second`, over steps of 0.005. Where the minimum lies outside `weights_covered`, the chart
    recommends nothing and says so. The axes are the same for all sizes.

    Parameters
    ----------
    laws
        Two pairs to their laws, from `capacity.fraction_fits`.

    Raises
    ------
    InputError
        When there are not two laws, or one is not identified.
    """
    if len(laws) != 2:
        raise InputError(f"the planner is for two pairs, got {', '.join(laws)}")
    for pair, law in laws.items():
        if not law.identified:
            raise InputError(f"the law of {pair} is not identified: {law.reason}")
    first, second = sorted(laws)
    sizes = sizes_offered(laws[first].n)
    exponents = [round(math.log10(n), 6) for n in sizes.values()]
    size = alt.param(
        name="n",
        value=exponents[len(exponents) // 3],
        bind=alt.binding_select(options=exponents, labels=list(sizes), name="size N "),
    )
    importance = alt.param(
        name="w",
        value=0.5,
        bind=alt.binding_range(
            min=0.05, max=0.95, step=0.05, name=f"importance of {pair_name(first)} "
        ),
    )
    least, most = weights_covered(laws)
    inside = f"datum.p >= {least - STEP / 2!r} && datum.p <= {most + STEP / 2!r}"
    base = (
        alt.Chart(alt.sequence(STEP, 1, STEP, as_="p"))
        .transform_calculate(first=_loss(laws[first], "datum.p"))
        .transform_calculate(second=_loss(laws[second], "(1 - datum.p)"))
        .transform_calculate(objective="w * datum.first + (1 - w) * datum.second")
        .transform_joinaggregate(best="min(objective)")
        .transform_calculate(
            label="'N = ' + format(pow(10, n), '~s') + ': weight '"
            f" + format(datum.p, '.3f') + ' for {pair_name(first)}'",
            losses="'losses ' + format(datum.first, '.3f') + ' and ' + format(datum.second, '.3f')",
        )
    )
    ends = [exponents[0], exponents[-1]]
    x, y = (
        alt.X(
            "first:Q",
            scale=alt.Scale(domain=_range(laws[first], (least, most), ends)),
            title=f"{pair_name(first)}, loss",
        ),
        alt.Y(
            "second:Q",
            scale=alt.Scale(domain=_range(laws[second], (1 - most, 1 - least), ends)),
            title=f"{pair_name(second)}, loss",
        ),
    )
    curve = base.mark_line(color=CATEGORIES[0], clip=True).encode(
        x, y, order="p:Q", tooltip=["label:N", "losses:N"]
    )
    chosen = base.transform_filter("datum.objective === datum.best").transform_calculate(
        said=f"{inside} ? datum.label : 'No recommendation: the best weight'",
        more=f"{inside} ? datum.losses : 'is not among those trained, {least:g} to {most:g}'",
    )
    star = (
        chosen.transform_filter(inside)
        .mark_point(shape="diamond", size=160, color=CATEGORIES[1], filled=True)
        .encode(x, y)
    )
    text = chosen.mark_text(align="left", baseline="bottom", fontSize=12, color=GREY)
    notes = [  # above the curve, in two lines, so that the chart stays narrow
        text.encode(x=alt.value(0), y=alt.value(y_), text=f"{field}:N")
        for field, y_ in (("said", -21), ("more", -6))
    ]
    return (
        alt.layer(curve, star, *notes)
        .add_params(size, importance)
        .properties(width=460, height=380)
    )


def _range(law: FractionFit, weights: Sequence[float], exponents: Sequence[float]) -> list[float]:
    """Losses at the least and the greatest of the weights and sizes: an axis for all of them."""
    losses = [law.predict(p, 10.0**n)[0] for p in weights for n in exponents]
    margin = 0.03 * (max(losses) - min(losses))
    return [min(losses) - margin, max(losses) + margin]
