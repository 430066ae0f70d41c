"""One check: a printed number beside what it is recomputed to.

A frame of checks has the columns

- ``where``: which printed number, and what it is recomputed from;
- ``published``, ``relation``, ``recomputed``: the claim is "recomputed *relation* published";
- ``difference``: published minus recomputed;
- ``tolerance``: what rounding alone can explain: half of the printed number's last digit, and the
  most that the rounding of the numbers it is recomputed from can leave in the result;
- ``agrees``: whether the relation holds, for "=" within the tolerance;
- ``reading``: what would explain a disagreement; empty where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pandas as pd

from mnmt_repro.papers.effects.framed import framed

Relation = Literal["=", ">", ">=", "<"]
CHECK_COLUMNS = (
    "where",
    "published",
    "relation",
    "recomputed",
    "difference",
    "tolerance",
    "agrees",
    "reading",
)

checked = framed(*CHECK_COLUMNS)
"""Makes a function that yields checks return them as a table, also without any."""


def check(
    where: str,
    printed: Any,
    recomputed: Any,
    relation: Relation = "=",
    *,
    tolerance: float = 0.0,
    reading: str = "",
) -> dict[str, Any]:
    """Compare one printed number, or word, with what it is recomputed to."""
    if isinstance(printed, str):
        difference, agrees = float("nan"), printed == recomputed
    else:
        difference = round(float(printed - recomputed), 9) + 0.0  # no -0.0, no binary dust
        slack = tolerance + 1e-9
        agrees = {
            "=": abs(difference) <= slack,
            ">": difference < -1e-9,
            ">=": difference <= 1e-9,
            "<": difference > 1e-9,
        }[relation]
    values = (where, printed, relation, recomputed, difference, tolerance, bool(agrees))
    return dict(zip(CHECK_COLUMNS, (*values, "" if agrees else reading), strict=True))


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Go over a frame's rows as named tuples."""
    return iter(frame.itertuples(index=False))


def half_unit(decimals: int) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -int(decimals)
