"""Cells of a grid: means over seeds at each pair, weight and size, and whether a grid is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mnmt_repro.analysis.intervals import NoRowsYet
from mnmt_repro.errors import InputError

Cells = pd.DataFrame
"""A row a cell: `pair`, `p`, `n_non_embedding`, `n_total`, `cross_entropy`, the metrics and `runs`,
the ids of its runs."""


def mean_losses(rows: pd.DataFrame, *keys: str, n: str = "n_non_embedding", **more: Any) -> Cells:
    """Mean loss over seeds at each value of some columns and each size; zero-shot rows left out.

    Parameters
    ----------
    n
        Which parameter count is the size.
    more
        Further columns, as ``seeds=("seed", "size")``: what of, and how it is aggregated.

    Returns
    -------
    DataFrame
        The keys, ``n, loss`` and the further columns.
    """
    grouped = rows[rows["p"] > 0].groupby([*keys, n], as_index=False)
    return grouped.agg(loss=("cross_entropy", "mean"), **more).rename(columns={n: "n"})


def check_one(rows: pd.DataFrame, *columns: str) -> None:
    """Refuse rows of which a figure would mix several settings.

    Raises
    ------
    InputError
        When one of these columns has several values.
    """
    for column in columns:
        if column in rows and rows[column].nunique() > 1:
            raise InputError(f"a figure is of one {column}, filter first: {rows[column].unique()}")


def check_grid(
    rows: Cells, where: str, needs: Mapping[str, Any], weights: Sequence[float], by: str = "p"
) -> Cells:
    """Return the rows of one pair if its grid is full enough, or `NoRowsYet`, saying what lacks.

    Parameters
    ----------
    needs : ``{sizes, weights, span}``
        So many weights p > 0 with so many sizes each, the largest `span` times the smallest.
    weights
        Weights that must be among them.
    by
        Column that stands in for the weight; ``mixture`` where a mixture is not one number.
    """
    sizes = rows.groupby(by)["n_non_embedding"].nunique()
    full = sizes[sizes >= needs["sizes"]]
    if len(full) < needs["weights"]:
        raise NoRowsYet(
            f"{where}: {len(full)} of {needs['weights']} weights have {needs['sizes']} sizes "
            f"({len(rows)} cells so far)"
        )
    if missing := [weight for weight in weights if weight not in full.index]:
        raise NoRowsYet(f"{where}: no full row of sizes at p = {missing[0]:g}")
    span = rows["n_non_embedding"].max() / rows["n_non_embedding"].min()
    if span < needs["span"]:
        raise NoRowsYet(f"{where}: sizes span a factor of {span:.3g}, not {needs['span']:g}")
    return rows


def common_cells(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Of each table the rows whose weight and size all tables have."""
    keys = [
        list(zip(table["p"].round(9), table["n_non_embedding"], strict=True)) for table in tables
    ]
    shared = set.intersection(*map(set, keys))
    return [
        table[[cell in shared for cell in cells]].reset_index(drop=True)
        for table, cells in zip(tables, keys, strict=True)
    ]
