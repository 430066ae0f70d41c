"""Charts of how sure the laws are."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.effects.uncertainty import PERTURBATION


def noise_chart(noise: pd.DataFrame) -> alt.ConcatChart:
    """What laws leave, seeds and repeats show, beside the paper's 1 %; from `noise_levels`."""
    names = ("left by Eq. 6", "left by Eq. 7", "between seeds", "trained again")
    long = noise.melt(id_vars="label", value_vars=list(names), var_name="series")
    return forest(
        long,
        ["standard deviation of a loss,", "as a share of the mean loss"],
        marks={"paper: 1 %": PERTURBATION},
        log=True,
        form=".1%",
    )


def laws_chart(laws: pd.DataFrame, column: str, title: str) -> alt.ConcatChart:
    """One column of `law_comparison`, a row a pair and a series a law."""
    return forest(laws.assign(series=laws["law"], value=laws[column]), title)
