"""The interactive planner: a frontier and a recommended mixture, computed in the browser.

The law is written as Vega expressions, so that the page needs no server: sliders choose the size
and the importance of the first pair. Figure 1 of Paper A is a cartoon of this chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.figures.names import pair_name
from mnmt_repro.figures.theme import CATEGORIES, GREY
from mnmt_repro.laws import FractionFit

STEP = 0.005  # between the weights tried


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


def planner(laws: Mapping[str, FractionFit]) -> alt.LayerChart | alt.FacetChart:
    """Frontier of two pairs at a size chosen by a slider, with the mixture recommended.

    The recommended weight minimises `importance * loss of the first pair + (1 - importance) * loss
    of the second`, over steps of 0.005. The sizes on offer reach ten times beyond those fitted.

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
    fitted = sorted(set(laws[first].n))
    low, high = math.log10(fitted[0]), math.log10(fitted[-1]) + 1
    size = alt.param(
        name="n",
        value=round(math.log10(fitted[len(fitted) // 2]), 2),
        bind=alt.binding_range(min=round(low, 2), max=round(high, 2), step=0.01, name="log10 N "),
    )
    importance = alt.param(
        name="w",
        value=0.5,
        bind=alt.binding_range(
            min=0.05, max=0.95, step=0.05, name=f"importance of {pair_name(first)} "
        ),
    )
    base = (
        alt.Chart(alt.sequence(STEP, 1, STEP, as_="p"))
        .transform_calculate(first=_loss(laws[first], "datum.p"))
        .transform_calculate(second=_loss(laws[second], "(1 - datum.p)"))
        .transform_calculate(objective="w * datum.first + (1 - w) * datum.second")
        .transform_joinaggregate(best="min(objective)")
        .transform_calculate(
            label="'N = ' + format(pow(10, n), '.3~s') + ', weight of the first pair '"
            " + format(datum.p, '.3f') + ': losses '"
            " + format(datum.first, '.3f') + ' and ' + format(datum.second, '.3f')"
        )
    )
    x = alt.X("first:Q", scale=alt.Scale(zero=False), title=f"{pair_name(first)}, loss")
    y = alt.Y("second:Q", scale=alt.Scale(zero=False), title=f"{pair_name(second)}, loss")
    curve = base.mark_line(color=CATEGORIES[0]).encode(x, y, order="p:Q", tooltip=["label:N"])
    chosen = base.transform_filter("datum.objective === datum.best")
    star = chosen.mark_point(shape="diamond", size=160, color=CATEGORIES[1], filled=True)
    text = chosen.mark_text(align="right", baseline="top", fontSize=12, color=GREY)
    note = text.encode(x=alt.value(455), y=alt.value(5), text="label:N")
    return (
        alt.layer(curve, star.encode(x, y), note)
        .add_params(size, importance)
        .properties(width=460, height=380)
    )
