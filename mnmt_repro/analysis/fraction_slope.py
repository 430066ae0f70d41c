"""Slope of log f on log N, the fraction f solved directly from Eq. 8 at each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.analysis.cells import Cells
from mnmt_repro.analysis.intervals import Measure, Measures, NotIdentified, measure, power
from mnmt_repro.analysis.noise import noisy
from mnmt_repro.laws import PowerLawFit
from mnmt_repro.laws.checks import Array, Errors, error_weights


def cells_within(cells: Cells, weights: Sequence[float]) -> Cells:
    """Cells of some weights whose losses lie among those of the single pair, two or more a weight.

    Beyond these losses a fraction is an extrapolation.
    """
    observed = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(observed.min(), observed.max())
    used = cells[cells["p"].isin(weights) & inside]
    return used.groupby("p").filter(lambda rows: len(rows) >= 2)


def slope_of_fraction(
    used: Cells,
    laws: Mapping[float, PowerLawFit],
    n: str,
    effect: float,
    errors: Errors,
    draws: int,
) -> Measures:
    """One slope for all weights, an intercept for each, with the power to see `effect`.

    Parameters
    ----------
    used
        From `cells_within`.
    laws
        Eq. 6 at each weight that is asked for, and at 1.

    Raises
    ------
    NotIdentified
        When more than a tenth of the losses under noise have no fraction.
    """
    one = laws[1.0]
    sd = float(
        np.sqrt(
            sum(law.rss for law in laws.values())
            / sum(law.degrees_of_freedom for law in laws.values())
        )
    )
    log_n, loss = np.log(used[n].to_numpy(dtype=float)), used["cross_entropy"].to_numpy()
    _, group = np.unique(used["p"], return_inverse=True)
    single = np.array(one.values)

    def slopes(curve: Array, losses: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            log_f = -np.log((losses - curve[:, 1:2]) / curve[:, 2:3]) / curve[:, :1] - log_n
        return _pooled_slope(log_n, log_f, group)

    def drawn(mean: Array, seed: int) -> Array:
        return noisy(mean, sd / np.sqrt(error_weights(errors, mean)), seed, draws)

    curves = one.refit(drawn(one.fitted(), seed=0))
    value = slopes(single[None], loss[None])[0]
    mean = np.array(
        [
            float(np.asarray(laws[p].predict(size))[0])
            for p, size in zip(used["p"], used[n], strict=True)
        ]
    )
    centre = slopes(single[None], mean[None])[0]
    deviations = slopes(curves, drawn(mean, seed=1)) - centre
    deviations = deviations[np.isfinite(deviations)]
    if not np.isfinite(value) or len(deviations) < 0.9 * len(curves):
        raise NotIdentified(
            "more than a tenth of the noisy losses lie below the single pair's L_inf"
        )

    log_f = -np.log((loss - single[1]) / single[2]) / single[0] - log_n
    level = (np.bincount(group, log_f) / np.bincount(group))[group]
    middle = (np.bincount(group, log_n) / np.bincount(group))[group]
    powers = []
    for sign in (1, -1):
        moved = log_n + level + sign * effect * (log_n - middle)
        around = single[1] + single[2] * np.exp(-single[0] * moved)
        tilted = slopes(curves, drawn(around, seed=2))
        powers.append(power(tilted[np.isfinite(tilted)], deviations, sign))
    return {
        "slope": measure(value, deviations),
        "cells": Measure(value=len(used)),
        "power": Measure(value=min(powers)),
    }


def _pooled_slope(x: Array, y: Array, group: NDArray[np.intp]) -> Array:
    """One slope and an intercept a group, for each row of `y` (B, m); NaN in `y` gives NaN."""
    member = np.eye(int(group.max()) + 1)[group]
    counts = member.sum(0)
    x = x - (member @ ((x @ member) / counts))
    return (y @ x) / (x @ x)
