"""The chart of fitted irreducible losses around the exact one."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.figures.interval_chart import interval_chart


def floor_chart(floors: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Fitted irreducible losses with their intervals around the exact one; from `against_truth`."""
    exact = float(floors["exact"].iloc[0])
    return interval_chart(
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
