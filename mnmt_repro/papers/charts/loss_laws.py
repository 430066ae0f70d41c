"""Loss against size: Paper A's Figures 2 to 5 and those of its appendices B and C."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, size_axis, tips, weight_color
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.scaling import SIZE_TITLES

_PANEL = {"width": 220, "height": 240}
_PARAMETERS = {"alpha": "exponent α", "beta": "factor β", "l_inf": "irreducible loss L∞"}


def _panels(
    points: pd.DataFrame, draw: Callable[[str, pd.DataFrame], alt.LayerChart]
) -> alt.HConcatChart:
    panels = [
        draw(str(pair), group).properties(title=pair_name(str(pair)), **_PANEL)
        for pair, group in points.groupby("pair")
    ]
    return alt.hconcat(*panels).resolve_scale(color="shared")


def loss_against_size(
    points: pd.DataFrame, curves: pd.DataFrame, *, n: str = "n_non_embedding"
) -> alt.HConcatChart:
    """Figures 2 and 5 (9, 11, 13; 15, 16, 17): observed losses and fitted laws, a panel a pair.

    Parameters
    ----------
    points
        From `observed`.
    curves
        From `per_weight_curves` (Figure 2) or `joint_curves` (Figure 5).
    """
    x, colour = size_axis(SIZE_TITLES[n]), weight_color(list(points["p"]))
    tooltip = tips("p", "n|,.0f", "loss|.4f")

    def draw(pair: str, group: pd.DataFrame) -> alt.LayerChart:
        return losses_and_laws(group, curves[curves["pair"] == pair], x, colour, tooltip)

    return _panels(points, draw)


def losses_and_laws(
    points: pd.DataFrame,
    curves: pd.DataFrame,
    x: alt.X,
    colour: alt.Color,
    tooltip: list[alt.Tooltip],
) -> alt.LayerChart:
    """Losses of one pair (dots) and the laws of its weights (lines)."""
    y = alt.Y("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")
    dots = alt.Chart(points).mark_point().encode(x, y, colour, tooltip=tooltip)
    return alt.Chart(curves).mark_line().encode(x, y, colour, detail="p:N") + dots


def coefficients_against_weight(table: pd.DataFrame, *, bands: bool = True) -> alt.VConcatChart:
    """Paper A's Figure 4 (10, 12, 14): α, β and L∞ of each weight's own law, joint law dashed.

    A hollow dot is a coefficient at its bound.

    Parameters
    ----------
    table
        From `coefficient_table`.
    bands
        Whether to shade one standard deviation of refits under 1 % noise; Figure 14 does not.
    """
    rows: list[alt.HConcatChart] = []
    for parameter, title in _PARAMETERS.items():
        panels = []
        for pair, group in table[table["parameter"] == parameter].groupby("pair"):
            log = parameter == "beta"
            shown = group[group["value"] > 0] if log else group
            floor = shown["value"].min() / 3 if log else None
            shown = shown.assign(low=shown["low"].clip(lower=floor)) if log else shown
            scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
            axis = alt.Axis(minExtent=52, tickCount=5)  # as wide in every panel
            base = alt.Chart(shown).encode(x=alt.X("p:Q", title="weight p"))
            band = base.mark_area(opacity=0.2).encode(
                y=alt.Y("low:Q", scale=scale, axis=axis, title=title), y2="high:Q"
            )
            value = alt.Y("value:Q", scale=scale, axis=axis, title=title)
            tooltip = tips("p", "value|.4g", "std|.2g")
            dots = base.mark_point(
                size=36, fillOpacity=1, stroke=CATEGORIES[0], strokeWidth=1.2
            ).encode(
                y=value,
                fill=alt.condition("datum.held", alt.value("white"), alt.value(CATEGORIES[0])),
                tooltip=[*tooltip, alt.Tooltip("held", title="at its bound")],
            )
            line = base.mark_line().encode(y=value)
            dashed = base.mark_line(strokeDash=[6, 4], color=GREY).encode(
                y=alt.Y("joint:Q", scale=scale, axis=axis, title=title)
            )
            layers = band + dashed + line + dots if bands else dashed + line + dots
            panels.append(layers.properties(title=pair_name(str(pair)), width=220, height=150))
        rows.append(alt.hconcat(*panels))
    legend = ["dashed: the one law for all weights (Eq. 7)", "hollow dot: at its bound"]
    if bands:
        legend.insert(1, "band: one standard deviation under 1 % noise")
    return alt.vconcat(*rows, title=alt.TitleParams(legend, fontSize=12, fontWeight="normal"))


def floor_chart(floors: pd.DataFrame) -> alt.ConcatChart:
    """Fitted irreducible losses with their intervals around the exact one; from `against_truth`."""
    exact = float(floors["exact"].iloc[0])
    return forest(
        pd.DataFrame(
            {
                "label": floors["cohort"].str.removeprefix("conlang, ")
                + ", "
                + floors["pair"].str.replace("language ", "")
                + ": "
                + floors["law"].str.partition(" (")[0],
                "series": floors["errors"] + " errors",
                "value": floors["fitted L∞"],
                "low": floors["low"],
                "high": floors["high"],
            }
        ),
        "fitted irreducible loss (nats per token)",
        marks={"exact": exact},
        domain=(0, 2.5 * exact),
    )
