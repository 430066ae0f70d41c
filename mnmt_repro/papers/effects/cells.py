"""From rows to cells: means over seeds at each pair, weight and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.effects.noise import NoRowsYet, OutOfRegime
from mnmt_repro.results.schema import STORED_METRICS

Given = ParamSpec("Given")
Rows = Iterator[Any]


def framed(*columns: str) -> Callable[[Callable[Given, Rows]], Callable[Given, pd.DataFrame]]:
    """Make a function that yields rows, or tables, return them as one table.

    A function so marked is annotated by what it yields, `Rows`, and returns a DataFrame.

    Parameters
    ----------
    columns
        All of the table, in their order, which it also has without rows. Without any, they are
        those of the rows.

    Examples
    --------
    >>> @framed("n", "square")
    ... def squares(*numbers):
    ...     yield from ((n, n * n) for n in numbers)
    >>> squares(3)
       n  square
    0  3       9
    """

    def decorate(function: Callable[Given, Rows]) -> Callable[Given, pd.DataFrame]:
        @wraps(function)
        def table(*args: Given.args, **kwargs: Given.kwargs) -> pd.DataFrame:
            rows = list(function(*args, **kwargs))
            if rows and isinstance(rows[0], pd.DataFrame):
                frame = pd.concat(rows, ignore_index=True)
                return frame[list(columns)] if columns else frame
            return pd.DataFrame(rows, columns=list(columns) or None)

        return table

    return decorate


_MEANS = ("n_total", "pair_target_tokens", *STORED_METRICS)

Cells = pd.DataFrame
"""A row a cell: `pair`, `p`, `n_non_embedding`, `n_total`, `cross_entropy`, the metrics, `runs`
(ids of its runs), `seeds` (how many there are) and `pool` (see `residual_pools`)."""


def mean_losses(rows: pd.DataFrame, *keys: str, n: str = "n_non_embedding", **more: Any) -> Cells:
    """Mean loss over seeds at each value of some columns and each size; zero-shot rows left out.

    The mean is that of the log loss, so it is geometric.

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
    logs = rows.assign(loss=np.log(rows["cross_entropy"]))
    grouped = logs[logs["p"] > 0].groupby([*keys, n], as_index=False)
    cells = grouped.agg(loss=("loss", "mean"), **more).rename(columns={n: "n"})
    return cells.assign(loss=np.exp(cells["loss"]))


def cells_of(rows: pd.DataFrame, *apart: str) -> Cells:
    """Cells of the rows of one table: a tier, cohort, test set and domain.

    Parameters
    ----------
    apart
        Columns that tell cells apart beside pair, weight and size.
    """
    rows = rows.assign(p=rows["p"].round(9))
    means: dict[str, Any] = {name: (name, "mean") for name in _MEANS if name in rows}
    cells = mean_losses(
        rows,
        *apart,
        "pair",
        "p",
        **means,
        runs=("run_id", lambda ids: " ".join(sorted(ids))),
        seeds=("run_id", "size"),
    ).rename(columns={"n": "n_non_embedding", "loss": "cross_entropy"})
    return cells.assign(pool=pd.Series(residual_pools(rows, cells, *apart), index=cells.index))


def residual_pools(rows: pd.DataFrame, cells: Cells, *apart: str) -> list[Array]:
    """Residuals from which the noise of each cell is drawn.

    A residual is the log loss of a run less the mean of its cell, times √(k / (k - 1)), where k is
    the number of seeds of that cell. Cells of one seed have none. The pool of a cell has those of
    all cells with half to twice its size. They are in the order of cells and seeds, which is one
    for two test sets of the same runs.
    """
    keys = [*apart, "pair", "p", "n_non_embedding"]
    ordered = rows[rows["p"] > 0].sort_values([*keys, "seed"])
    log = np.log(ordered["cross_entropy"])
    cell = log.groupby([ordered[key] for key in keys])
    k = cell.transform("size")
    residual = ((log - cell.transform("mean")) * np.sqrt(k / (k - 1)))[k > 1].to_numpy()
    n = ordered.loc[k > 1, "n_non_embedding"].to_numpy()
    return [
        residual[(n >= size / 2) & (n <= 2 * size)] for size in cells["n_non_embedding"].to_numpy()
    ]


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
            f"{where}: of {needs['weights']} weights, only {len(full)} have {needs['sizes']} sizes"
        )
    if missing := [weight for weight in weights if weight not in full.index]:
        raise NoRowsYet(f"{where}: no full row of sizes at p = {missing[0]:g}")
    span = rows["n_non_embedding"].max() / rows["n_non_embedding"].min()
    if span < needs["span"]:
        raise NoRowsYet(f"{where}: sizes span a factor of {span:.3g}, not {needs['span']:g}")
    return rows


def own_tokens(cells: Cells) -> pd.Series:
    """Tokens that a cell's own pair has read, per parameter."""
    return cells["pair_target_tokens"] / cells["n_non_embedding"]


LEAST_OWN_TOKENS = 25
"""Target tokens of the pair per parameter in the paper's poorest cell (1B parameters, p = 0.05)."""


def with_enough_text(rows: pd.DataFrame, *cohorts: str) -> pd.DataFrame:
    """Rows without the cells of some cohorts that have a decay and too little text for a verdict.

    All runs that stopped early stay.
    """
    cell = [rows[name] for name in ("cohort", "mixture", "pair", "n_non_embedding", "test_set")]
    judged = rows["tier"].isin(["steady", "settled"]) & rows["cohort"].isin(cohorts)
    return rows[~(judged & (own_tokens(rows).groupby(cell).transform("mean") < LEAST_OWN_TOKENS))]


def in_regime(cells: Cells, options: Mapping[str, Any], where: str) -> Cells:
    """Cells with `least_own_tokens` or more, where the options ask for it.

    Raises
    ------
    OutOfRegime
        When there is none.
    """
    least = options.get("least_own_tokens")
    if least is None:
        return cells
    own = own_tokens(cells)
    if not (own >= least).any():
        raise OutOfRegime(
            f"{where}: no cell in regime; a pair has read at most {own.max():.3g} tokens per "
            f"parameter, not {least:g}"
        )
    return cells[own >= least].reset_index(drop=True)


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
