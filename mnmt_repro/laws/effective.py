"""Effective parameters of a pair in a mixture: Equations 8 to 10.

``f(p) = (beta[1] / beta[p])**(1 / alpha)`` by the joint law is one number a weight, independent of
size because the law says so.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionLaw, fraction_of
from mnmt_repro.laws.joint_law import JointLaw, log_fraction
from mnmt_repro.laws.uncertainty import percentiles


def effective_fraction(
    fit: LawFit[JointLaw] | LawFit[FractionLaw], *, draws: int = 2_000
) -> pd.DataFrame:
    """Effective fraction of the parameters at each fitted weight (Eq. 10, Figure 6).

    ``f(p) = (beta[1] / beta[p]) ** (1 / alpha)`` by the joint law, or f(p) of Eq. 12 or 13: a model
    of n parameters is worth f(p) * n of a model of the pair alone.

    Parameters
    ----------
    fit : from `fit_joint_law`, with the single pair (p = 1), or from `fit_fraction`
    draws
        Refits for the 95 % interval, which is made as `LawFit.method` says. Student's t carries the
        covariance of the joint law over to log f. The laws of Eq. 12 and 13 always take
        percentiles of refits.

    Returns
    -------
    DataFrame
        ``p, f, f_low, f_high, relative, relative_low, relative_high``; `relative` is f / p, the
        relative effective capacity of section 3.3. NaN when the fit is not identified, or its
        runs are too few for an interval.

    Raises
    ------
    InputError
        For a joint law without the single pair among its weights.
    """
    law, values = fit.law, fit.values
    p = np.unique(law.p)
    if isinstance(law, JointLaw):
        if 1.0 not in law.p:
            raise InputError(
                f"effective fraction: needs the single pair, p = 1; fitted: {list(law.p)}"
            )
        one = law.p.index(1.0)
        log_f = log_fraction(values[None], one)[0]
    else:
        log_f = np.log(fraction_of(p, values[3:]))
    if fit.method is None:
        low = high = np.full(len(p), np.nan)
    elif not isinstance(law, JointLaw):
        low, high = np.log(percentiles(fraction_of(p, fit.refits(draws)[:, 3:])))
    elif fit.method == "t":
        contrast = np.eye(len(p))[one] - np.eye(len(p))
        by_beta = np.zeros_like(contrast)
        with np.errstate(divide="ignore", invalid="ignore"):  # f is infinite where a factor is 0
            np.divide(contrast, values[0] * values[2:], out=by_beta, where=contrast != 0)
            gradient = np.column_stack([-log_f / values[0], np.zeros(len(p)), by_beta])
            variance = np.einsum("ij,jk,ik->i", gradient, fit.covariance, gradient)
        half = fit.t_quantile * np.sqrt(np.maximum(variance, 0.0))
        low, high = log_f - half, log_f + half
    else:
        low, high = percentiles(log_fraction(fit.refits(draws), one))
    table = pd.DataFrame({"p": p, "f": np.exp(log_f), "f_low": np.exp(low), "f_high": np.exp(high)})
    relative = (table[["f", "f_low", "f_high"]].div(table["p"], axis=0)).set_axis(
        ["relative", "relative_low", "relative_high"], axis=1
    )
    return table.join(relative)
