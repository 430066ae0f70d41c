"""Errors of Eq. 11 on weights and sizes that it was not fitted to: claims A14, A15 and A17."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_repro.laws import FractionFit, fit_fraction
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fraction import Form
from mnmt_repro.laws.uncertainty import percentiles
from mnmt_repro.papers.effects.cells import Cells, Rows, framed
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    Measure,
    Measures,
    NotIdentified,
    centred,
    centred_r2,
    drawn,
    root_mean_squares,
)
from mnmt_repro.results.schema import CEILINGS

UNSEEN_WEIGHTS, LARGEST_SIZES = (0.1, 0.5, 0.9), 2
"""What claims A14 and A15 hold out."""
FORMS: dict[Form, str] = {"eq12": "Eq. 12", "eq13": "Eq. 13"}
PLAIN = "plain interpolation"
"""What pages call `neighbours_seen`."""


def held_out(
    cells: pd.DataFrame,
    weights: Sequence[float] = UNSEEN_WEIGHTS,
    largest_sizes: int = LARGEST_SIZES,
    n: str = "n",
) -> pd.Series:
    """Which cells are held out: those of some weights, and those of the largest sizes."""
    sizes = np.sort(cells[n].unique())
    return cells["p"].isin(weights) | cells[n].isin(sizes[len(sizes) - largest_sizes :])


def fit_eq11(
    cells: pd.DataFrame,
    form: Form = "eq12",
    *,
    n: str = "n",
    column: str = "loss",
    metric: str = "",
    errors: Errors = "absolute",
) -> FractionFit:
    """Fit Eq. 11 to the cells of one pair: to their losses, or to the scores of a metric.

    Parameters
    ----------
    column
        What is fitted.
    metric
        The metric that it is a score of, which rises with size; empty for a loss.
    """
    return fit_fraction(
        cells,
        form=form,
        n=n,
        loss=column,
        direction="max" if metric else "min",
        ceiling=CEILINGS.get(metric),
        errors=errors,
    )


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Predictions of cells that a law was not fitted to.

    Attributes
    ----------
    truth, predicted : (m,) or (1 + B, m)
        What was observed or drawn, and what is predicted.
    spread : float or (1 + B, 1)
        Of all that was observed, the cells seen included.
    """

    truth: Array
    predicted: Array
    spread: Array

    @property
    def relative(self) -> Array:
        """Errors relative to what was observed."""
        return self.predicted / self.truth - 1

    @property
    def of_spread(self) -> Array:
        """Errors as shares of the spread."""
        return (self.predicted - self.truth) / self.spread


def predict_unseen(
    cells: pd.DataFrame,
    unseen: pd.Series,
    law: FractionFit,
    column: str = "loss",
    n: str = "n",
    losses: Array | None = None,
) -> tuple[Unseen, Unseen]:
    """Predict the cells of one pair that a law was not fitted to.

    Parameters
    ----------
    unseen
        From `held_out`.
    law
        Fitted to the other cells.
    column
        What it was fitted to.
    losses : (1 + B, m)
        Drawn values of the column. The law is refitted to each row.

    Returns
    -------
    by the law, and without any law: by the nearest cell seen
    """
    rest, out = cells[unseen], unseen.to_numpy()
    values, all_of = np.array(law.values), cells[column].to_numpy()
    if losses is not None:
        values, all_of = law.refit(losses[:, ~out]), losses
    by_law = law.law.curve(values, law.law.rows_at(rest["p"], rest[n]))
    nearest = all_of[..., ~out] @ nearest_seen(cells[~unseen], rest, n).T
    truth, spread = all_of[..., out], np.ptp(all_of, axis=-1, keepdims=True)
    return (
        Unseen(truth=truth, predicted=by_law, spread=spread),
        Unseen(truth=truth, predicted=nearest, spread=spread),
    )


def nearest_seen(seen: pd.DataFrame, held: pd.DataFrame, n: str) -> Array:
    """No law: the cells at the nearest weight seen, and there at the nearest size.

    Returns
    -------
    (cells held, cells seen)
        Shares of the cells seen in the prediction of each cell held.
    """
    shares = []
    for p, size in zip(held["p"], held[n], strict=True):
        distance = (seen["p"] - p).abs()
        near = distance <= distance.min() + 1e-9
        apart = np.abs(np.log(seen[n] / size)).where(near)
        shares.append(apart <= apart.min() + 1e-9)
    return np.array([each / each.sum() for each in shares])


def neighbours_seen(seen: pd.DataFrame, held: pd.DataFrame, n: str = "n") -> Array:
    """No law: straight lines between the nearest cells, in the logs of weight, size and loss.

    At each weight seen, the line through the two nearest sizes is read at the size of the cell
    held. Then the line through the two nearest weights is read at its weight.

    Returns
    -------
    (cells held, cells seen)
        Shares of the log losses seen in the prediction of each cell held.
    """
    shares, weights = np.zeros((len(held), len(seen))), np.sort(seen["p"].unique())
    of_weight = [np.flatnonzero(seen["p"] == p) for p in weights]
    sizes = seen[n].to_numpy(dtype=float)
    for k, (p, size) in enumerate(zip(held["p"], held[n], strict=True)):
        for share, at in zip(_on_line(weights, p), of_weight, strict=True):
            shares[k, at] = share * _on_line(sizes[at], size)
    return shares


def _on_line(known: Array, at: float) -> Array:
    """Shares of the values at known places in that at another, on the line of the nearest two."""
    if len(known) == 1:
        return np.ones(1)
    away, order = np.log(known / at), np.argsort(known)
    right = int(np.clip(np.searchsorted(away[order], 0), 1, len(known) - 1))
    low, high = order[right - 1], order[right]
    share = np.zeros(len(known))
    share[low], share[high] = away[high], -away[low]
    return np.asarray(share / (away[high] - away[low]))


def interpolate_unseen(
    cells: pd.DataFrame, unseen: pd.Series, losses: Array | None = None
) -> Unseen:
    """As `predict_unseen`, by lines between the nearest cells seen (`neighbours_seen`)."""
    out, all_of = unseen.to_numpy(), cells["loss"].to_numpy() if losses is None else losses
    shares = neighbours_seen(cells[~unseen], cells[unseen])
    return Unseen(
        truth=all_of[..., out],
        predicted=np.exp(np.log(all_of[..., ~out]) @ shares.T),
        spread=np.ptp(all_of, axis=-1, keepdims=True),
    )


def in_own_intervals(laws: Sequence[FractionFit], cells: pd.DataFrame) -> Array:
    """Which losses lie in the laws' own 95 % intervals: of their mean curve, and of a new loss.

    The interval of a loss adds the scatter of the losses that the laws were fitted to.

    Returns
    -------
    (2, cells)
        1 where a loss is inside and 0 where not; NaN where a law has no intervals.
    """
    if any(not law.identified or law.degrees_of_freedom < 1 for law in laws):
        return np.full((2, len(cells)), np.nan)
    curves, variance = [], 0.0
    for k, law in enumerate(laws):
        values = law.draws(law.resampling, draws=500, seed=k).values
        curves.append(law.law.curve(values, law.law.rows_at(cells["p"], cells["n"])))
        scatter = ((law.loss / law.fitted() - 1) ** 2).sum() / law.degrees_of_freedom
        variance += scatter / len(laws)
    curve = np.mean(curves, axis=0)
    run = curve * np.exp(np.random.default_rng(0).normal(0, np.sqrt(variance), curve.shape))
    return np.array([cells["loss"].between(*percentiles(draws)) for draws in (curve, run)], float)


@framed(
    *("pair", "predictor", "error", "low", "high", "unseen weights", "larger models"),
    *("in its band", "in its interval"),
)
def predictors(cells: Cells, errors: Errors, draws: int = 400) -> Rows:
    """Who predicts unseen runs best: Eq. 12, Eq. 13, lines between neighbours, the nearest run.

    All read the same cells, and predict those that A14 and A15 hold out.

    Parameters
    ----------
    cells
        Of all pairs, with their sizes as ``n`` and their losses as ``loss``.
    errors
        Of the laws.

    Returns
    -------
    DataFrame
        ``pair, predictor, error`` (root mean square, relative) with its 95 % interval ``low,
        high``, and its parts at ``unseen weights`` of sizes seen and on ``larger models``; of a
        law the shares of `in_own_intervals`.
    """
    for pair, own in cells.groupby("pair"):
        unseen = held_out(own)
        out, losses = own[unseen], drawn(own.assign(cross_entropy=own["loss"]), draws=draws)
        larger = (out["n"] > own.loc[~unseen, "n"].max()).to_numpy()
        rivals, inside = {}, {}
        for form, name in FORMS.items():
            law = fit_eq11(own[~unseen], form, errors=errors)
            rivals[name], nearest = predict_unseen(own, unseen, law, losses=losses)
            inside[name] = in_own_intervals([law], out).mean(axis=1)
        rivals |= {PLAIN: interpolate_unseen(own, unseen, losses=losses), "nearest run": nearest}
        for name, each in rivals.items():
            miss = centred(root_mean_squares(each.relative))
            squares = pd.Series(each.relative[0] ** 2).groupby(larger).mean()
            parts = squares.reindex([False, True]) ** 0.5
            shares = inside.get(name, (np.nan, np.nan))
            yield (pair, name, miss.value, miss.low, miss.high, *parts, *shares)


def held_out_prediction(evidence: Evidence, setting: Setting) -> Units:
    """A14: Eq. 11 with Eq. 12 on weights and sizes that it was not fitted to."""
    options = setting.options
    units: Units = {}
    for pair, cells in evidence.grid(setting).items():
        by_law, nearest = _predicted(cells, setting, pair, options["form"])
        error, naive = root_mean_squares(by_law.relative), root_mean_squares(nearest.relative)
        units[pair] = {
            "error": centred(error),
            "r2": centred_r2(_r2(by_law.predicted, by_law.truth)),
            "error_over_naive": centred(error / naive),
        }
    return units


def held_out_forms(evidence: Evidence, setting: Setting) -> Units:
    """A15: the held-out error of Eq. 13 beside that of Eq. 12."""
    units: Units = {}
    for pair, cells in evidence.grid(setting).items():
        simple, flexible = (
            root_mean_squares(_predicted(cells, setting, pair, form)[0].relative)
            for form in setting.options["forms"]
        )
        units[pair] = {"error": centred(simple), "error_ratio": centred(simple / flexible)}
    return units


def metric_frontier(evidence: Evidence, setting: Setting) -> Units:
    """A17: as A14 for a metric of decoded output; errors in shares of its range.

    One seed of a run is decoded, so scores have no noise to draw, and errors no interval.
    """
    grid = evidence.grid(setting, weights=(1,), scored=setting.options["metric"])
    return {pair: _metric(cells, setting, pair) for pair, cells in grid.items()}


def _metric(cells: Cells, setting: Setting, pair: str) -> Measures:
    form, metric = setting.options["form"], setting.options["metric"]
    scores, nearest = _predicted(cells, setting, pair, form, metric)
    error, naive = root_mean_squares(scores.of_spread), root_mean_squares(nearest.of_spread)
    return {
        "error": centred(error),
        "error_over_naive": centred(error / naive),
        "metric_range": Measure(value=float(scores.spread[0, 0])),
    }


def identified_law(
    cells: Cells, setting: Setting, pair: str, form: Form, metric: str = ""
) -> FractionFit:
    """Eq. 11 fitted to the cells of a pair; `NotIdentified` where they determine no law."""
    column = metric or "cross_entropy"
    fit = fit_eq11(cells, form, n=setting.n, column=column, metric=metric, errors=setting.errors)
    if not fit.identified:
        raise NotIdentified(f"{form} for {pair}: {fit.reason}")
    return fit


def _predicted(
    cells: Cells, setting: Setting, pair: str, form: Form, metric: str = ""
) -> tuple[Unseen, Unseen]:
    options = setting.options
    unseen = held_out(
        cells, options["held_out_weights"], options["held_out_largest_sizes"], "n_non_embedding"
    )
    law = identified_law(cells[~unseen], setting, pair, form, metric)
    column = metric or "cross_entropy"
    losses = cells[column].to_numpy()[None] if metric else drawn(cells)
    return predict_unseen(cells, unseen, law, column, setting.n, losses)


def _r2(predicted: Array, truth: Array) -> Array:
    total = ((truth - truth.mean(1, keepdims=True)) ** 2).sum(1)
    return np.asarray(1 - ((truth - predicted) ** 2).sum(1) / total)
