"""How far our fits of published data are from the published ones."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import tips


def with_distance(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``distance``: the difference from the published number over the tolerance.

    Parameters
    ----------
    table
        ``fit, quantity, published, ours, tolerance, seconds``, from
        ``data/external/published_fits.csv``.
    """
    distance = (table["ours"] - table["published"]).abs() / table["tolerance"]
    return table.assign(distance=distance)


def agreement_chart(table: pd.DataFrame) -> alt.LayerChart:
    """A row for each kind of fit, a dot for each number, at its distance.

    Parameters
    ----------
    table
        From `with_distance`.
    """
    dots = (
        alt.Chart(table)
        .mark_point(size=40)
        .encode(
            alt.X("distance:Q", title="difference from the published number / tolerance"),
            alt.Y("fit:N", title=None, sort=None, axis=alt.Axis(labelLimit=300)),
            tooltip=tips("quantity", "published|.6g", "ours|.6g"),
        )
    )
    end = (
        alt.Chart(pd.DataFrame({"distance": [1.0]}))
        .mark_rule(strokeDash=[4, 4])
        .encode(x="distance:Q")
    )
    return (dots + end).properties(width=380, height=170)
