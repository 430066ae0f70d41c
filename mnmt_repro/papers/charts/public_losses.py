"""Charts of public losses of larger runs."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, LIGHTER, diagonal, size_axis, tips
from mnmt_repro.papers.cohorts.names import language

_COLUMNS = 2


def loss_by_domain(
    rows: pd.DataFrame, curves: pd.DataFrame, title: str = "loss (nats)"
) -> alt.ConcatChart:
    """Losses and laws of each domain, a panel a domain, a colour a weight.

    Parameters
    ----------
    rows
        Of one cohort of `effects.public_losses.load_external`.
    curves
        From `analysis.public_losses.law_curves`.
    """
    points = rows.rename(columns={"n_non_embedding": "n", "cross_entropy": "loss"})
    x = size_axis("parameters")
    y = alt.Y("loss:Q", scale=alt.Scale(type="log", zero=False, nice=False, padding=8))
    y = y.title(title)
    # Few weights, and low ones: evenly spread colours, dark to light, tell them apart.
    legend = alt.Legend(format=".2f", columns=4, symbolOpacity=1)
    colour = alt.Color("p:O", title="mixture weight", scale=LIGHTER, legend=legend)
    tooltip = tips("mixture", "p", "n|.3s", "loss|.3f")

    def panel(domain: str) -> alt.LayerChart:
        dots = points[points["pair"] == domain][["mixture", "p", "n", "loss"]]
        lines = curves[curves["pair"] == domain][["mixture", "p", "n", "loss"]]
        return (
            alt.Chart(lines).mark_line(strokeWidth=1.1).encode(x, y, colour, detail="mixture:N")
            + alt.Chart(dots).mark_point(size=22).encode(x, y, colour, tooltip=tooltip)
        ).properties(title=domain, width=250, height=220)

    return alt.concat(*map(panel, sorted(points["pair"].unique())), columns=_COLUMNS)


def fraction_against_weight(fractions: pd.DataFrame) -> alt.LayerChart:
    """Relative effective fraction against relative weight, a colour a domain."""
    x = alt.X("weight_ratio:Q", scale=alt.Scale(type="log"), title="weight / highest weight")
    y = alt.Y("fraction_ratio:Q", title="effective fraction / that at the highest weight")
    y = y.scale(type="log")
    colour = _by_domain(fractions)
    ratio = alt.Tooltip("fraction_ratio", format=".3f")
    dots = alt.Chart(fractions).mark_point().encode(x, y, colour, tooltip=["domain", "p", ratio])
    return diagonal(x, y, (0.05, 1)) + dots


def own_coefficients(table: pd.DataFrame) -> alt.HConcatChart:
    """Exponent and irreducible loss of each mixture's own law against its weight, by domain.

    Parameters
    ----------
    table
        From `analysis.public_losses.separate_coefficients`.
    """
    colour = _by_domain(table)

    def panel(column: str, title: str) -> alt.Chart:
        return (
            alt.Chart(table)
            .mark_point()
            .encode(
                x=alt.X("p:Q", title="mixture weight"),
                y=alt.Y(f"{column}:Q", title=title),
                color=colour,
                tooltip=tips("domain", "mixture", "p", f"{column}|.3f"),
            )
            .properties(width=250, height=220)
        )

    return alt.hconcat(panel("alpha", "exponent α"), panel("L_inf", "irreducible loss L∞ (nats)"))


def loss_against_own_weight(table: pd.DataFrame) -> alt.HConcatChart:
    """Loss of each language against its own weight, a point a mixture, coloured by its company.

    Parameters
    ----------
    table
        From `analysis.public_losses.by_own_weight`; points of unknown company are grey.
    """
    legend = alt.Legend(format=".1f", columns=8, symbolOpacity=1)
    shade = alt.Color(
        "company:O", title="weight of the named partner", scale=LIGHTER, legend=legend
    )

    def panel(own: str) -> alt.LayerChart:
        points = table[table["language"] == own]
        known, unknown = points.dropna(), points[points["company"].isna()]
        x = alt.X("p:Q", title="its own weight").scale(domain=[0, 0.9])
        y = alt.Y("loss:Q", title="validation loss").scale(zero=False)
        tooltip = tips("p|.1f", "company|.1f", "loss|.2f")
        grey = alt.Chart(unknown).mark_point(color=GREY, filled=False)
        dots = alt.Chart(known).mark_point(size=60, opacity=1).encode(x, y, shade, tooltip=tooltip)
        title = f"{language(own)} (partner: {language(points['partner'].iloc[0])})"
        layers = grey.encode(x, y, tooltip=tooltip) + dots
        return layers.properties(title=title, width=150, height=220)

    return alt.hconcat(*map(panel, table["language"].unique()))


def _by_domain(table: pd.DataFrame) -> alt.Color:
    """A colour for each domain of a table."""
    domains = sorted(table["domain"].unique())
    return alt.Color("domain:N", title="domain").scale(domain=domains, range=list(CATEGORIES))
