"""How well laws describe and predict: R², and errors on a size left out of the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws import JointLawFit, PowerLawFit, fit_joint_law, fit_per_weight_laws
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.selection import pooled_aicc
from mnmt_repro.papers.effects.cells import Cells
from mnmt_repro.papers.effects.intervals import Measure, Measures, centred, centred_r2
from mnmt_repro.papers.effects.noise import curve, refit_power_laws


def lowest_r2(fits: Sequence[PowerLawFit], losses: Sequence[Array]) -> Measure:
    """Lowest R² of several laws, each refitted to draws (1 + B, m) of its own losses."""
    sizes, weights = [fit.law.n for fit in fits], [fit.weights for fit in fits]
    refitted = refit_power_laws(sizes, losses, weights)
    r2 = [_r2(*each) for each in zip(fits, refitted, losses, strict=True)]
    return centred_r2(np.min(r2, axis=0))


def _r2(fit: PowerLawFit | JointLawFit, values: Array, losses: Array) -> Array:
    """R² (B,) of a law with refitted parameters (B, P)."""
    weights = fit.weights
    left = losses - fit.law.curve(values, fit.law.rows)
    total = losses - (losses @ weights / weights.sum())[:, None]
    return np.asarray(1 - (left**2 @ weights) / (total**2 @ weights))


def joint_against_separate(
    fit: JointLawFit, cells: Cells, losses: Array, n: str, by: str, errors: Errors
) -> Measures:
    """Compare one law for all weights with a law for each, on sizes left out of the fit.

    Parameters
    ----------
    fit
        The joint law of the cells.
    losses : (1 + B, m)
        From `noise.drawn`.
    n, by
        Columns of the size and of the weight.
    """
    joint, single = size_left_out(cells, n, by, errors, losses)
    return {
        "error_ratio": centred(joint / single),
        "joint_error": centred(joint),
        "r2_joint": centred_r2(_r2(fit, fit.refit(losses), losses)),
    }


def aicc_difference(fit: JointLawFit, cells: Cells, n: str, by: str, errors: Errors) -> Measure:
    """AICc of the joint law less that of a law for each weight."""
    laws = fit_per_weight_laws(cells, n=n, by=by, errors=errors)
    return Measure(value=pooled_aicc([fit]) - pooled_aicc(list(laws.values())))


def size_left_out(
    cells: Cells, n: str, by: str = "p", errors: Errors = "absolute", losses: Array | None = None
) -> tuple[Array, Array]:
    """Root mean square relative error of each row of `losses` (B, m) on sizes left out in turn.

    Both laws are refitted to each row without each size. The laws of the cells' own losses give the
    starts.

    Returns
    -------
    joint law (B,), per-weight laws (B,)
    """
    if losses is None:
        losses = cells["cross_entropy"].to_numpy()[None]
    p, size = cells[by].to_numpy(), cells[n].to_numpy(dtype=float)
    joint, single = np.zeros(len(losses)), np.zeros(len(losses))
    for left in np.unique(size):
        out, kept = size == left, size != left
        law = fit_joint_law(cells[kept], n=n, by=by, errors=errors)
        values = law.refit(losses[:, kept])
        joint += _squared(values, law.law.index(p[out]), size[out], losses[:, out])
        rows = [p == weight for weight in np.unique(p[out])]
        refitted = refit_power_laws(
            [size[kept & r] for r in rows],
            [losses[:, kept & r] for r in rows],
            [error_weights(errors, losses[0, kept & r]) for r in rows],
        )
        for mine, values in zip(rows, refitted, strict=True):
            held = losses[:, out & mine]
            zero = np.zeros(held.shape[1], dtype=int)
            single += _squared(values, zero, size[out & mine], held)
    return np.sqrt(joint / losses.shape[1]), np.sqrt(single / losses.shape[1])


def _squared(values: Array, group: NDArray[np.intp], n: Array, losses: Array) -> Array:
    return ((curve(values, group, n) / losses - 1) ** 2).sum(1)
