"""How well laws describe and predict: R² under noise, and errors on a size left out of the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.analysis.cells import Cells
from mnmt_repro.analysis.intervals import Measure, Measures, quantiles
from mnmt_repro.analysis.noise import curve, noisy, refit_power_laws
from mnmt_repro.laws import JointLawFit, PowerLawFit, fit_joint_law, fit_per_weight_laws
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.selection import pooled_aicc


def lowest_r2(fits: Sequence[PowerLawFit], errors: Errors, draws: int) -> Measure:
    """Lowest R² of several laws; its interval refits all of them to losses under noise."""
    drawn = [noisy(fit.fitted(), fit.noise_sd(), k, draws) for k, fit in enumerate(fits)]
    refitted = refit_power_laws([np.array(fit.n) for fit in fits], drawn, errors)
    least = np.full(len(drawn[0]), np.inf)
    for fit, losses, values in zip(fits, drawn, refitted, strict=True):
        weights = fit.row_weights()
        left = losses - curve(values, np.array(fit.group), np.array(fit.n))
        total = losses - (losses @ weights / weights.sum())[:, None]
        least = np.minimum(least, 1 - (left**2 @ weights) / (total**2 @ weights))
    low, high = quantiles(least)
    return Measure(value=min(fit.r2 for fit in fits), low=low, high=high)


def joint_against_separate(
    fit: JointLawFit, cells: Cells, n: str, by: str, errors: Errors, draws: int
) -> Measures:
    """Compare one law for all weights with a law for each, on sizes left out of the fit.

    Parameters
    ----------
    fit
        The joint law of the cells.
    n, by
        Columns of the size and of the weight.
    draws
        Of losses under noise, behind the interval of the ratio.
    """
    ordered = cells.sort_values(by)
    loss = ordered["cross_entropy"].to_numpy()
    fitted = np.asarray(fit.predict(ordered[by], ordered[n]))
    drawn = noisy(fitted, fit.residual_sd / np.sqrt(error_weights(errors, loss)), 0, draws)
    losses = np.vstack([loss, fitted, drawn])
    joint, single = size_left_out(ordered, n, by, errors, losses)
    # At the law itself both errors vanish, so deviations are about the mean of the draws.
    ratios = np.log(joint[2:] / single[2:])
    low, high = quantiles(ratios - ratios.mean())
    ratio = joint[0] / single[0]
    return {
        "error_ratio": Measure(
            value=float(ratio), low=float(ratio * np.exp(low)), high=float(ratio * np.exp(high))
        ),
        "joint_error": Measure(value=float(joint[0])),
        "r2_joint": Measure(value=fit.r2),
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
        joint += _squared(values, law.index(p[out]), size[out], losses[:, out])
        rows = [p == weight for weight in np.unique(p[out])]
        refitted = refit_power_laws(
            [size[kept & r] for r in rows], [losses[:, kept & r] for r in rows], errors
        )
        for mine, values in zip(rows, refitted, strict=True):
            held = losses[:, out & mine]
            zero = np.zeros(held.shape[1], dtype=int)
            single += _squared(values, zero, size[out & mine], held)
    return np.sqrt(joint / losses.shape[1]), np.sqrt(single / losses.shape[1])


def _squared(values: Array, group: NDArray[np.intp], n: Array, losses: Array) -> Array:
    return ((curve(values, group, n) / losses - 1) ** 2).sum(1)
