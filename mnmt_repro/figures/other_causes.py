"""The chart of exponents with the tables counted in N, and of one domain alone."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.figures.theme import GREY


def exponent_chart(table: pd.DataFrame) -> alt.FacetChart:
    """The exponent at the least weight over that of the single pair, by setting; 1 if one law fits.

    Parameters
    ----------
    table
        From `compared`.
    """
    shown = pd.DataFrame(
        {
            "pair": table["pair"],
            "setting": table["fitted to"],
            "share": table["α, least weight"] / table["α alone"],
        }
    )
    x = alt.X("share:Q", title="exponent at the least weight / at p = 1")
    y = alt.Y("setting:N", title=None, sort=list(dict.fromkeys(shown["setting"])))
    dots = (
        alt.Chart(shown)
        .mark_point(size=80)
        .encode(x, y, tooltip=["pair", "setting", alt.Tooltip("share", format=".0%")])
    )
    one = alt.Chart(shown).mark_rule(color=GREY, strokeDash=[2, 3]).encode(x=alt.datum(1))
    panel = (one + dots).properties(width=230, height=80)
    return panel.facet(column=alt.Column("pair:N", title=None))
