"""Tables of ablations as pages print them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from mnmt_repro.figures.gains import interval


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `cells` as the paper lays it out: a row a variant.

    Returns
    -------
    DataFrame
        ``variant``; for each group the ``paper`` score with its mark, where one is printed, and
        ``here`` our gain over the control in per cent, with its 95 % interval.
    """
    rows: dict[str, dict[str, str | None]] = {}
    for cell in table.to_dict("records"):
        row = rows.setdefault(cell["variant"], {"variant": cell["variant"]})
        printed = None if math.isnan(cell["paper"]) else f"{cell['paper']:.1f}{cell['mark']}"
        between = interval(cell["low"], cell["high"])
        here = f"{cell['gain, %']:+.2f} ({between})" if between else None
        row |= {f"{cell['group']}, paper": printed, f"{cell['group']}, here": here}
    return pd.DataFrame(rows.values()).dropna(axis=1, how="all")


def span(values: Iterable[float]) -> str:
    """The smallest and the largest of some values, with two digits each, or one decimal.

    >>> span([12.66, 7.2]), span([0.004])
    ('7.2 to 13', '0.0')
    """
    found = sorted(values)
    ends = dict.fromkeys(_short(value) for value in (found[0], found[-1])) if found else ["–"]
    return " to ".join(ends)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"
