"""Quality against updates, from scratch and upgraded: Paper B's Figure 4.

Of a mean loss in nats the quality is exp(-loss), the geometric mean of a token's probability
(`mnmt_repro.upgrading.compute`); its share of the baseline's is a ratio of perplexities.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.upgrades import EARLY_SHARE, STATED
from mnmt_repro.cohorts.software25 import KINDS, SUFFIX
from mnmt_repro.upgrading.compute import compute_share

TARGET = 0.95
"""The share of the baseline's score that Figure 4 and claim B13 are about."""
_WORTH = STATED["M25-wide", EARLY_SHARE] / 100  # the early baseline, of the last one's score
CLOSED_TARGET = round((TARGET - _WORTH) / (1 - _WORTH), 3)
"""The share of the gap that is closed at that."""
READINGS = (
    f"{100 * TARGET:g} % of quality",
    f"{100 * TARGET:g} % closed",
    f"{100 * CLOSED_TARGET:g} % closed",
)
SCRATCH, UPGRADED = "from scratch", "upgraded"
TEST, PRINTED = "ours, test set", "paper, share of spBLEU"
_SHAPES = ("same size", "wider", "deeper")
_RUNS = {
    f"{prefix}{SUFFIX[kind]}": {"shape": shape, "model": model}
    for kind, shape in zip(KINDS, _SHAPES, strict=True)
    for prefix, model in (("M25", SCRATCH), ("Mt25", UPGRADED))
}
_KEYS = ["shape", "points", "seed"]
_COLUMNS = ["shape", "model", "points", "seed", "updates", "loss", "quality"]


def figure4(recovered: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Mean loss over directions, and the share of the baseline's quality, by share of its updates.

    Parameters
    ----------
    recovered
        From `upgrades.recovery`.
    curves
        From `results.load_curves`, of the same cohort and tier.

    Returns
    -------
    DataFrame
        ``shape, model, points, seed, updates, loss, quality``. `points` are `TEST` (means over
        seeds, seed 0), ``validation``, all that a seed's runs passed through, or `PRINTED`.
        `quality` is NaN where the baseline's end on the same text is not stored.
    """
    runs = recovered.rename(columns={"model": "run"}).assign(seed=0)
    test = runs.assign(points=TEST, quality=runs["quality"] / 100).dropna(subset=["loss"])
    printed = runs.assign(points=PRINTED, quality=runs["spBLEU, paper"] / 100, loss=math.nan)
    printed = printed.dropna(subset=["quality"])
    passed = _with_quality(_described(_passed(curves)))
    found = pd.concat([_described(test), passed, _described(printed)])
    return found[_COLUMNS].reset_index(drop=True)


def _passed(curves: pd.DataFrame) -> pd.DataFrame:
    """A longer run goes on from a shorter one and repeats its points: each counts once."""
    mine = curves[curves["variant"].isin(list(_RUNS))]
    updates = (mine["updates_share"] * mine["step"] / mine["steps"]).astype(float).round(6)
    keys = [mine["variant"].rename("run"), mine["seed"], updates.rename("updates")]
    loss = mine["cross_entropy"].groupby(keys).mean()
    return loss.rename("loss").reset_index().assign(points="validation")


def _described(points: pd.DataFrame) -> pd.DataFrame:
    about = pd.DataFrame([_RUNS[run] for run in points["run"]], columns=["shape", "model"])
    return pd.concat([about, points.reset_index(drop=True)], axis=1)


def _with_quality(points: pd.DataFrame) -> pd.DataFrame:
    ends = points[(points["model"] == SCRATCH) & (points["updates"] == 1.0)]
    end = points[_KEYS].merge(ends[[*_KEYS, "loss"]], how="left", on=_KEYS)["loss"]
    return points.assign(quality=np.exp(end - points["loss"]))


@framed()
def compute_to_reach(points: pd.DataFrame) -> Rows:
    """Share of the baseline's updates after which a share of its score is reached (Section 5.3).

    Read off the validation points, straight between two of them, and averaged over seeds. "95 %"
    is read in three ways (`READINGS`): of exp(-loss); of the gap between the baseline after a tenth
    of its updates and after all; and as that part of the gap at which the paper's own scale, on
    which the early baseline has 78 %, would have 95 %.

    Returns
    -------
    DataFrame
        ``shape, model``, the three readings, ``seeds``. Infinity: some seed does not reach it; NaN:
        no points. What the first point has reached may have been reached before.
    """
    passed = points[points["points"] == "validation"]
    for run in _RUNS.values():
        here = passed[passed["shape"] == run["shape"]]
        found = [_reached(group, run["model"]) for _, group in here.groupby("seed")]
        known = [readings for readings in found if readings]
        means = np.mean(known, axis=0) if known else [math.nan] * len(READINGS)
        yield {**run, **dict(zip(READINGS, means, strict=True)), "seeds": len(known)}


def _reached(points: pd.DataFrame, model: str) -> list[float]:
    """The three readings of one seed; an empty list where they cannot be had."""
    baseline = points[points["model"] == SCRATCH].set_index("updates")["loss"]
    curve = points[points["model"] == model].sort_values("updates")
    if curve.empty or not {EARLY_SHARE, 1.0} <= set(baseline.index):
        return []
    early, full, loss = baseline[EARLY_SHARE], baseline[1.0], curve["loss"]
    if early <= full:
        return []
    return [
        compute_share(
            list(curve["updates"]),
            list(quality),
            baseline_steps=1.0,
            baseline_quality=whole,
            share=share,
        )
        for quality, whole, share in (
            (np.exp(-loss), math.exp(-full), TARGET),
            (early - loss, early - full, TARGET),
            (early - loss, early - full, CLOSED_TARGET),
        )
    ]
