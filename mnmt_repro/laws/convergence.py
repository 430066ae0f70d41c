"""Convergence correction (Appendix G): what an under-trained run would reach if trained on.

The paper fits a power law to a run's loss over training and reads it at 2.5M steps, where its runs
stopped at 1M; only for the two largest models at p of at most 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_repro.laws.checks import same_length, vector
from mnmt_repro.laws.power_law import PowerLawFit, fit_power_law

PAPER_MULTIPLE = 2.5
"""The paper's 2.5M steps over the 1M that its large models were trained."""
SKIP = 0.1
"""Share of a curve's steps that is left out at its start: warm-up and early descent."""
STILL_FALLS = 0.05
"""Share of the loss, over the last half of the updates, from which runs count as too short."""


def last_fall(curves: pd.DataFrame) -> float:
    """Share by which losses fell over the last half of the updates, the median of all runs.

    Parameters
    ----------
    curves
        ``run_id, pair, target_tokens, cross_entropy``, as `results.load_curves` gives them. The
        loss half-way is interpolated on the logarithm of the tokens.

    Returns
    -------
    float
        NaN where no curve has three points.
    """
    falls = []
    for _, points in curves.sort_values("target_tokens").groupby(["run_id", "pair"]):
        at, loss = np.log(points["target_tokens"]), points["cross_entropy"].to_numpy()
        if len(points) > 2:
            half = float(np.interp(at.iloc[-1] - np.log(2), at, loss))
            falls.append(1 - loss[-1] / half)
    return float(np.median(falls)) if falls else math.nan


def note_on_fall(curves: pd.DataFrame) -> Iterator[str]:
    """What to say of runs whose losses still fall; see `last_fall`."""
    fall = last_fall(curves)
    if fall > STILL_FALLS:
        yield (
            f"these runs still fall by {fall:.0%} over the last half of their updates (median): "
            "train longer first, and add sizes or seeds after that"
        )


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """A learning curve read beyond its end.

    Attributes
    ----------
    law : PowerLawFit
        Loss against steps (or tokens); ``law.identified`` is False when no power law fits.
    ratio : float
        The law's loss where it is read over its loss at the last step. NaN when not identified.
        A ratio, because it is carried from the validation set of the curve to a test set, whose
        losses may lie elsewhere.
    """

    law: PowerLawFit
    ratio: float


def extrapolate_curve(
    steps: ArrayLike, loss: ArrayLike, *, multiple: float = PAPER_MULTIPLE, skip: float = SKIP
) -> Extrapolation:
    """Fit a power law to a learning curve and read it at a multiple of its length.

    Parameters
    ----------
    steps : (m,)
        Steps of the evaluations during training.
    loss : (m,)
        Losses of these evaluations, on one set.
    multiple : where to read, over the last step
    skip : share of the steps left out at the start (warm-up and early descent)

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.arange(100, 1001, 100)
    >>> round(extrapolate_curve(steps, 2 + 30 * steps**-0.5).ratio, 4)
    0.8817
    """
    t, y = vector("steps", steps, positive=True), vector("loss", loss)
    same_length(steps=t, loss=y)
    kept = t >= skip * t.max()
    law = fit_power_law(t[kept], y[kept])
    end, beyond = law.predict([t.max(), multiple * t.max()])
    return Extrapolation(law=law, ratio=float(beyond / end))
