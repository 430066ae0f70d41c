"""What every fit asks of its data before it looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError

Array = NDArray[np.float64]
Direction = Literal["min", "max"]
Errors = Literal["absolute", "relative"]
OF_ONE = ("pair", "tier", "cohort", "test_set", "domain", "metric")
"""Columns of which a law reads one value only."""
HUGE = 1e100
"""Largest value, and its inverse the smallest: squares of others are no longer numbers."""
WIDEST = 1e12
"""Largest value over the smallest one; beyond that, powers of both do not fit into one sum."""


def vector(name: str, values: ArrayLike, *, positive: bool = False) -> Array:
    """`values` as a finite float vector; `InputError` naming the first bad row otherwise.

    The rows of a Series have the names that its index gives them.
    """
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not numbers ({error})") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: needs a non-empty list of numbers, got shape {array.shape}")
    rows = values.index if isinstance(values, pd.Series) else range(len(array))
    size = np.abs(array)
    for bad, why in (
        (~np.isfinite(array), "remove it or mend the run"),
        (positive & (array <= 0), "give a number above zero"),
        ((size > HUGE) | (size > 0) & (size < 1 / HUGE), "mend it, or change the unit"),
    ):
        if bad.any():
            at = int(bad.argmax())
            raise InputError(f"{name}: row {rows[at]} is {array[at]:g}; {why}")
    if positive and array.max() > WIDEST * array.min():
        least, most = int(array.argmin()), int(array.argmax())
        raise InputError(
            f"{name}: from {array[least]:g} in row {rows[least]} to {array[most]:g} in row "
            f"{rows[most]}; are both in one unit?"
        )
    return array


def same_length(**columns: Array) -> None:
    """`InputError` unless all columns have one length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns differ in length: {lengths}")


def error_weights(errors: str, loss: Array) -> Array:
    """Row weights for least squares of the errors themselves, or of their share of the loss (m,).

    Raises
    ------
    InputError
        For another kind of errors, and for relative ones of a value that is zero.
    """
    if errors not in ("absolute", "relative"):
        raise InputError(f'errors: {errors!r}; use "absolute" or "relative"')
    if errors == "absolute":
        return np.ones(len(loss))
    if (loss == 0).any():
        raise InputError("loss: one is 0, of which no error is a share; use absolute errors")
    return loss**-2.0


def run_names(groups: ArrayLike | None, rows: int) -> tuple[str, ...]:
    """Name of the run of each row; none where rows are independent.

    Raises
    ------
    InputError
        Another number of names than rows, or a single run, which shows no variation.
    """
    if groups is None:
        return ()
    names = tuple(str(name) for name in np.asarray(groups, dtype=object).ravel())
    if len(names) != rows:
        raise InputError(f"groups: {len(names)} names of runs for {rows} rows")
    if len(set(names)) < 2:
        raise InputError("groups: all rows are of one run, so nothing shows how runs vary")
    return names


def of_one(frame: pd.DataFrame) -> None:
    """`InputError` where a column of `OF_ONE` has several values."""
    for name in OF_ONE:
        if name in frame.columns and frame[name].nunique(dropna=False) > 1:
            raise InputError(
                f"{name}: {sorted(map(str, frame[name].unique()))}; a law is of one, filter first"
            )


def columns(frame: pd.DataFrame, names: Sequence[str], remedy: str = "") -> None:
    """`InputError` naming the columns that the frame lacks, those it has, and a remedy."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"give a pandas DataFrame, not a {type(frame).__name__}")
    missing = [name for name in names if name not in frame.columns]
    if missing:
        there = list(frame.columns)
        raise InputError(f"columns missing: {missing}; the frame has {there}{remedy}")
    if frame.empty:
        raise InputError("the frame has no rows; check the filter that made it")
