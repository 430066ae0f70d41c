"""How far the convergence correction can be trusted: what it would have said of known losses.

Those are the ends of finished curves, predicted from their beginnings, and the ends of longer runs.
The paper shows neither.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.cohorts.names import cohort_name
from mnmt_repro.laws import extrapolate_curve
from mnmt_repro.laws.convergence import PAPER_MULTIPLE, SKIP

FORECAST = ("reached", "predicted", "end", "missed", "fall")
"""Loss where a curve is left, forecast, truth; forecast less truth, what is reached less truth."""


@framed("run_id", "pair", "p", "size", "n", "multiple", *FORECAST)
def backtest(curves: pd.DataFrame, *, multiple: float = PAPER_MULTIPLE, skip: float = SKIP) -> Rows:
    """Cut finished curves at 1 / `multiple` of their length, predict their ends, and compare.

    The cut is the last point of a curve at or before that, so `multiple` is the least that a
    prediction reaches over.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.

    Returns
    -------
    DataFrame
        ``run_id, pair, p, size, n, multiple`` (end over the last step kept), ``reached`` (loss at
        the cut), ``predicted, end, missed`` (predicted less end), ``fall`` (reached less end).
        Curves with fewer than three points before the cut, or that no power law fits, are left out.
    """
    keys = ["run_id", "pair", "p", "size", "n"]
    known = curves[curves["p"] > 0].rename(columns={"n_non_embedding": "n"})
    for key, group in known.groupby(keys):
        whole = group.sort_values("step")
        last = float(whole["step"].iloc[-1])
        early = whole[whole["step"] * multiple <= last]
        if len(early) < 3:
            continue
        cut = float(early["step"].iloc[-1])
        read = extrapolate_curve(
            early["step"], early["cross_entropy"], multiple=last / cut, skip=skip
        )
        if not read.law.identified:
            continue
        reached, end = (float(one["cross_entropy"].iloc[-1]) for one in (early, whole))
        cell = dict(zip(keys, key, strict=True))
        yield {**cell, "multiple": last / cut, **_forecast(reached, read.ratio, end)}


@framed("cohort", "pair", "p", "n", "multiple", *FORECAST)
def against_longer(
    rows: pd.DataFrame, curves: pd.DataFrame, longer: pd.DataFrame, *, skip: float = SKIP
) -> Rows:
    """Predict the losses of longer runs from the shorter ones, and compare.

    Parameters
    ----------
    rows, curves
        Of the shorter runs, as for `correct`.
    longer
        From `results.load`, of cohorts that train cells of the same grid for longer, same test set.

    Returns
    -------
    DataFrame
        ``cohort, pair, p, n, multiple, reached, predicted, end, missed, fall``, as in `backtest`,
        for the cells that both have and whose shorter curve a power law fits.
    """
    cell = ["pair", "p", "n_non_embedding"]
    wanted = longer[longer["p"] > 0][[*cell, "cohort", "target_tokens", "cross_entropy"]]
    own = rows[rows["p"] > 0][[*cell, "run_id", "target_tokens", "cross_entropy"]]
    both = own.merge(wanted, on=cell, suffixes=("", "_longer"))
    for row in both.to_dict("records"):
        mine = curves[(curves["run_id"] == row["run_id"]) & (curves["pair"] == row["pair"])]
        multiple = row["target_tokens_longer"] / row["target_tokens"]
        if mine.empty or multiple <= 1:
            continue
        read = extrapolate_curve(mine["step"], mine["cross_entropy"], multiple=multiple, skip=skip)
        if not read.law.identified:
            continue
        yield {
            "cohort": cohort_name(row["cohort"]),
            "pair": row["pair"],
            "p": row["p"],
            "n": row["n_non_embedding"],
            "multiple": multiple,
            **_forecast(row["cross_entropy"], read.ratio, row["cross_entropy_longer"]),
        }


def _forecast(reached: float, ratio: float, end: float) -> dict[str, float]:
    predicted = reached * ratio
    values = (reached, predicted, end, predicted - end, reached - end)
    return dict(zip(FORECAST, values, strict=True))


@framed()
def trust_table(found: pd.DataFrame, by: str = "p") -> Rows:
    """Errors of the predicted losses, beside those of leaving the losses as they are.

    Parameters
    ----------
    found
        From `backtest` or `against_longer`.
    by
        Column whose values are summarised apart.

    Returns
    -------
    DataFrame
        `by`, ``curves, fall`` (mean of what the loss still fell), ``predicted fall`` (mean),
        ``error`` and ``error without`` (root mean squares), ``closer`` (share of the curves whose
        predicted loss is nearer the end than the loss reached).
    """
    for value, group in found.groupby(by):
        yield {
            by: value,
            "curves": len(group),
            "fall": group["fall"].mean(),
            "predicted fall": (group["reached"] - group["predicted"]).mean(),
            "error": float(np.sqrt((group["missed"] ** 2).mean())),
            "error without": float(np.sqrt((group["fall"] ** 2).mean())),
            "closer": float((group["missed"].abs() < group["fall"].abs()).mean()),
        }
