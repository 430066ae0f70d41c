"""Translation quality against loss: Paper A's Figures 8 and 19, claims A16 and A18."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.papers.effects.cells import Rows, check_one, framed, mean_losses
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import Measure, NoRowsYet, root_mean_square
from mnmt_repro.papers.effects.prediction import fit_eq11, held_out, predict_unseen
from mnmt_repro.results.schema import STORED_METRICS

_COLUMNS = ["pair", "p", "n", "loss", "score", "seeds"]
HELD_OUT_WEIGHT = 0.5  # and the largest size: what claim A17 holds out
_HELD_OUT = ["pair", "measure", "fitted", "predicted", "error", "low", "high", "nearest", "why"]
LEAST_CELLS = 3  # for a correlation with an interval


class _Line(NamedTuple):
    """How well a straight line describes scores against losses; see `straight_line`."""

    r: float  # Pearson's
    low: float  # of a 95 % interval, Fisher's z
    high: float
    curvature_gain: float  # what a quadratic term adds to r²


def straight_line(loss: ArrayLike, score: ArrayLike) -> _Line:
    """Correlation of scores with losses, three of them or more."""
    x, y = np.asarray(loss, dtype=float), np.asarray(score, dtype=float)
    pearson = stats.pearsonr(x, y)
    interval = pearson.confidence_interval(0.95)
    bent = np.polynomial.Polynomial.fit(x, y, 2)(x)
    r = float(pearson.statistic)
    gain = float(1 - np.var(y - bent) / np.var(y)) - r**2
    return _Line(r=r, low=float(interval.low), high=float(interval.high), curvature_gain=gain)


def observed_scores(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Losses and scores as the figures plot them: means over seeds at each pair, weight and size.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort and domain, and of one test set for each pair.
    metric
        One of `results.schema.STORED_METRICS`.

    Returns
    -------
    DataFrame
        ``pair, p, n, loss, score, seeds`` of the rows that were decoded and scored with the
        metric; empty where none was. Zero-shot rows (p = 0) are left out.

    Raises
    ------
    InputError
        When there is no such metric, or the rows are of several cohorts, domains, test sets of a
        pair, or ways to decode.
    """
    if metric not in STORED_METRICS:
        raise InputError(f"metric {metric!r}: use one of {', '.join(STORED_METRICS)}")
    kept = decoded(rows, metric)
    check_one(kept, "cohort", "domain", "decoding")
    if (kept.groupby("pair")["test_set"].nunique() > 1).any():
        raise InputError(f"a pair is of one test set, filter first: {kept['test_set'].unique()}")
    return mean_losses(kept, "pair", "p", score=(metric, "mean"), seeds=(metric, "size"))[_COLUMNS]


def decoded(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Those of `rows` that were scored with `metric`, at weights above zero."""
    return rows[rows[metric].notna() & (rows["p"] > 0)]


LINEARITY = ("pair", "cells", "r", "low", "high", "R²", "gain of a square", "lowest", "highest")


@framed(*LINEARITY)
def linearity(points: pd.DataFrame) -> Rows:
    """How near to a straight line the score lies over cross-entropy (Figure 8, left).

    Returns
    -------
    DataFrame
        ``pair, cells, r, low, high, R², gain of a square, lowest, highest``: Pearson's correlation
        with its 95 % interval (Fisher's z), its square, how much a quadratic term adds to that, and
        the range of scores. Pairs with fewer than three cells are left out.
    """
    for pair, group in points.groupby("pair"):
        if len(group) < LEAST_CELLS:
            continue
        line = straight_line(group["loss"], group["score"])
        yield {
            "pair": pair,
            "cells": len(group),
            "r": line.r,
            "low": line.low,
            "high": line.high,
            "R²": line.r**2,
            "gain of a square": line.curvature_gain,
            "lowest": float(group["score"].min()),
            "highest": float(group["score"].max()),
        }


@framed("metric", *LINEARITY)
def linearity_of_metrics(rows: pd.DataFrame) -> Rows:
    """`linearity` for each metric that any of `rows` was scored with: a column ``metric`` first."""
    for metric in STORED_METRICS:
        table = linearity(observed_scores(rows, metric))
        if len(table):
            yield table.assign(metric=metric)


def within_weights(points: pd.DataFrame, column: str) -> pd.Series:
    """Values of a column, each less the mean of its weight."""
    return points[column] - points.groupby("p")[column].transform("mean")


def parallel_slope(points: pd.DataFrame) -> float:
    """The one slope, points of the score a nat, of the best parallel lines, one a weight."""
    loss, score = (within_weights(points, name) for name in ("loss", "score"))
    return float((loss * score).sum() / (loss**2).sum())


def parallel_r2(points: pd.DataFrame) -> float:
    """Share of the variance of the scores that the best parallel lines explain, one a weight."""
    loss, score = (within_weights(points, name) for name in ("loss", "score"))
    left = score - parallel_slope(points) * loss
    return float(1 - (left**2).sum() / ((points["score"] - points["score"].mean()) ** 2).sum())


def score_errors(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Error of Eq. 11 on scores that the fit never saw, beside that on the losses of the same runs.

    Fitted to all weights but 0.5, at all sizes but the largest; the rest is predicted.

    Returns
    -------
    DataFrame
        ``pair, measure`` (``"score"`` or ``"loss"``), ``fitted, predicted, error, low, high,
        nearest``: `error` is the root mean square error as a share of the range of all that was
        observed, so that scores and losses can be compared; `low` to `high` hold 95 % of its draws
        over unseen runs. `nearest` is that of no law: the nearest weight and size stand for it.
        Where no law is identified the error is NaN, and a column ``why`` states the reason.
    """
    unseen = held_out(points, [HELD_OUT_WEIGHT], 1)
    table = []
    for pair, group in points.groupby("pair"):
        mine = unseen[group.index]
        counts = {"fitted": int((~mine).sum()), "predicted": int(mine.sum())}
        for column, of in (("score", metric), ("loss", "")):
            row = {"pair": pair, "measure": column, **counts}
            try:
                law = fit_eq11(group[~mine], column=column, metric=of)
            except InputError as reason:
                table.append(row | {"why": str(reason)})
                continue
            by_law, without = predict_unseen(group, mine, law, column)
            row |= {"nearest": root_mean_square(without.of_spread).value, "why": law.reason}
            if law.identified:
                error = root_mean_square(by_law.of_spread)
                row |= {"error": error.value, "low": error.low, "high": error.high}
            table.append(row)
    frame = pd.DataFrame(table, columns=_HELD_OUT)
    return frame if frame["why"].any() else frame.drop(columns="why")


def metric_linear(evidence: Evidence, setting: Setting) -> Units:
    """Correlation of a metric with cross-entropy over decoded cells, and its curvature."""
    options, metric = setting.options, setting.options["metric"]
    wanted = options["needs"]["cells"]
    known = evidence.cells(setting, setting.cohorts[0], scored=metric)
    units: Units = {}
    present = sorted(known["pair"].unique())
    for pair in [pair for pair in present if pair in options["pairs"]] or present:
        rows = known[known["pair"] == pair]
        if len(rows) < wanted:
            raise NoRowsYet(
                f"{setting.cohorts[0]}, {setting.test_set}, {pair}: {len(rows)} of {wanted} cells "
                f"are decoded and scored with {metric}"
            )
        line = straight_line(rows["cross_entropy"], rows[metric])
        units[pair] = {
            "correlation": Measure(value=line.r, low=line.low, high=line.high),
            "r2": Measure(value=line.r**2),
            "curvature_gain": Measure(value=line.curvature_gain),
            "metric_range": Measure(value=float(np.ptp(rows[metric]))),
        }
    return units
