"""Convergence correction (Appendix G): what an under-trained run would reach if trained on.

The paper fits a power law to a run's loss over training and reads it at 2.5M steps, where its runs
stopped at 1M; only for the two largest models at p of at most 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import columns, same_length, vector
from mnmt_repro.laws.power_law import PowerLawFit, fit_power_law

PAPER_MULTIPLE = 2.5
"""The paper's 2.5M steps over the 1M that its large models were trained."""
SKIP = 0.1
"""Share of a curve's steps that is left out at its start: warm-up and early descent."""


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """A learning curve read beyond its end.

    Attributes
    ----------
    law : PowerLawFit
        Loss against steps (or tokens); ``law.identified`` is False when no power law fits.
    last, target : steps at the end of the curve, and where it is read
    ratio : float
        The law's loss at `target` over its loss at `last`; at most 1. NaN when not identified.
        A ratio, because it is carried from the validation set of the curve to a test set, whose
        losses may lie elsewhere.
    """

    law: PowerLawFit
    last: float
    target: float
    ratio: float


def extrapolate_curve(
    steps: ArrayLike, loss: ArrayLike, *, multiple: float = PAPER_MULTIPLE, skip: float = SKIP
) -> Extrapolation:
    """Fit a power law to a learning curve and read it at a multiple of its length.

    Parameters
    ----------
    steps, loss : (m,)
        Evaluations during training, on one set.
    multiple : where to read, over the last step
    skip : share of the steps left out at the start (warm-up and early descent)

    Examples
    --------
    >>> steps = np.arange(100, 1001, 100)
    >>> round(extrapolate_curve(steps, 2 + 30 * steps**-0.5).ratio, 4)
    0.8817
    """
    if not multiple > 1:
        raise InputError(f"multiple: {multiple}; give a number above 1, such as 2.5")
    if not 0 <= skip < 1:
        raise InputError(f"skip: {skip}; give a share from 0 to below 1")
    t, y = vector("steps", steps, positive=True), vector("loss", loss)
    same_length(steps=t, loss=y)
    last = float(t.max())
    kept = t >= skip * last
    law = fit_power_law(t[kept], y[kept])
    end, beyond = law.predict([last, multiple * last])
    return Extrapolation(law=law, last=last, target=multiple * last, ratio=float(beyond / end))


def declared_runs(
    frame: pd.DataFrame, *, most_weight: float = 0.05, largest: int = 2, n: str = "n_non_embedding"
) -> NDArray[np.bool_]:
    """Mark the rows that the paper corrects: p in (0, `most_weight`], the `largest` sizes."""
    columns(frame, ["p", n])
    sizes = np.sort(frame[n].unique())[-largest:]
    p = frame["p"].to_numpy()
    return np.asarray((p > 0) & (p <= most_weight + 1e-12) & frame[n].isin(sizes).to_numpy())


def correct_convergence(
    frame: pd.DataFrame,
    curves: pd.DataFrame,
    declared: NDArray[np.bool_],
    *,
    multiple: float = PAPER_MULTIPLE,
    skip: float = SKIP,
    loss: str = "cross_entropy",
) -> pd.DataFrame:
    """Correct the declared rows by what their learning curves promise; leave all others alone.

    The ratio predicted on the run's validation curve scales the observed test loss.

    Parameters
    ----------
    frame : DataFrame
        Rows with ``run_id``, ``pair`` and the loss.
    curves : DataFrame
        Learning curves: ``run_id, pair, step, cross_entropy``.
    declared : (rows,) bool
        Rows to correct, such as from `declared_runs`.
    multiple, skip : as in `extrapolate_curve`

    Returns
    -------
    DataFrame
        A copy with the loss corrected, and columns ``observed`` (the loss before), ``corrected``
        (bool) and ``correction_reason`` (why a declared row was left as it was, else empty).

    Raises
    ------
    InputError
        Missing columns, or a declared run without a learning curve.
    """
    columns(frame, ["run_id", "pair", loss])
    columns(curves, ["run_id", "pair", "step", "cross_entropy"])
    declared = np.asarray(declared, dtype=bool)
    if declared.shape != (len(frame),):
        raise InputError(f"declared: shape {declared.shape} for {len(frame)} rows")
    values = frame[loss].to_numpy(dtype=float, copy=True)
    done = np.zeros(len(frame), dtype=bool)
    reasons = [""] * len(frame)
    by_run = dict(iter(curves.groupby(["run_id", "pair"])))
    for row in np.flatnonzero(declared):
        key = (frame["run_id"].iloc[row], frame["pair"].iloc[row])
        if key not in by_run:
            raise InputError(f"run {key[0]}, pair {key[1]}: no learning curve to correct it with")
        curve = by_run[key]
        read = extrapolate_curve(
            curve["step"], curve["cross_entropy"], multiple=multiple, skip=skip
        )
        if read.law.identified:
            values[row] *= read.ratio
            done[row] = True
        else:
            reasons[row] = read.law.reason
    return frame.assign(
        **{loss: values},
        observed=frame[loss].to_numpy(),
        corrected=done,
        correction_reason=reasons,
    )
