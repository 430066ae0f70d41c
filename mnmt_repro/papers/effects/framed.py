"""Functions that yield the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

import pandas as pd

Given = ParamSpec("Given")
Rows = Iterator[Any]


def framed(
    *columns: str, by: list[str] | None = None
) -> Callable[[Callable[Given, Rows]], Callable[Given, pd.DataFrame]]:
    """Make a function that yields rows, or tables, return them as one table.

    Parameters
    ----------
    columns
        All of the table, in their order, which it also has without rows. Without any, they are
        those of the rows.
    by
        Columns by which the rows are sorted.

    Examples
    --------
    >>> @framed("n", "square", by=["n"])
    ... def squares(*numbers):
    ...     for n in numbers:
    ...         yield {"n": n, "square": n * n}
    >>> squares(3, 2)
       n  square
    0  2       4
    1  3       9
    """

    def decorate(function: Callable[Given, Rows]) -> Callable[Given, pd.DataFrame]:
        @wraps(function)
        def table(*args: Given.args, **kwargs: Given.kwargs) -> pd.DataFrame:
            rows = list(function(*args, **kwargs))
            if rows and isinstance(rows[0], pd.DataFrame):
                frame = pd.concat(rows, ignore_index=True)
                frame = frame[list(columns)] if columns else frame
            else:
                frame = pd.DataFrame(rows, columns=list(columns) or None)
            return frame.sort_values(by, kind="stable", ignore_index=True) if by else frame

        return table

    return decorate
