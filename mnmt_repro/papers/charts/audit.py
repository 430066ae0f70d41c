"""Where Paper B's printed numbers disagree with one another, in points of spBLEU."""

from __future__ import annotations

import re

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.cohorts.names import pair_name

_PAIR = re.compile(r"\b[a-z]{3}-[a-z]{3}\b")


def score_chart(found: pd.DataFrame) -> alt.ConcatChart:
    """Draw by how much printed scores are above what other printed numbers give.

    A bar reaches as far as rounding alone can explain, so it does not reach zero.

    Parameters
    ----------
    found
        From `score_disagreements`.
    """
    value, rounding = found["difference"], found["tolerance"]
    label = found["cell"].str.replace(_PAIR, lambda code: pair_name(code[0]), regex=True)
    rows = found.assign(label=label, series=found["check"], value=value)
    rows = rows.assign(low=value - rounding, high=value + rounding)
    return forest(rows, "printed minus recomputed, spBLEU", marks={"": 0})
