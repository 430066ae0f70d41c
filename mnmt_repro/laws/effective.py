"""Effective parameters of a pair in a mixture: Equations 8 to 10, two ways.

*From the joint law* (Eq. 9, 10): ``f(p) = (beta[1] / beta[p])**(1 / alpha)``, one number a weight,
independent of size because the law says so. *Directly* (Eq. 8): at every weight and size, the size
at which the single-pair curve reaches the observed loss; no assumption about size.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionLaw, fraction_of
from mnmt_repro.laws.joint_law import JointLaw, log_fraction, pair_rows
from mnmt_repro.laws.power_law import PowerLawFit
from mnmt_repro.laws.uncertainty import LEVEL, Asked, noise_scale, percentiles


def effective_fraction(
    fit: LawFit[JointLaw] | LawFit[FractionLaw], *, method: Asked = "auto", draws: int = 2_000
) -> pd.DataFrame:
    """Effective fraction of the parameters at each fitted weight (Eq. 10, Figure 6).

    ``f(p) = (beta[1] / beta[p]) ** (1 / alpha)`` by the joint law, or f(p) of Eq. 12 or 13: a model
    of n parameters is worth f(p) * n of a model of the pair alone.

    Parameters
    ----------
    fit : from `fit_joint_law`, with the single pair (p = 1), or from `fit_fraction`
    method, draws
        Of the 95 % interval, as in `LawFit.interval`. ``"t"`` carries the covariance of the joint
        law over to log f. The others take percentiles of refits, as the laws of Eq. 12 and 13
        always do.

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
    chosen = fit.method_of(method)
    if chosen is None:
        low = high = np.full(len(p), np.nan)
    elif not isinstance(law, JointLaw):
        drawn = fit.draws(fit.resampling if chosen == "t" else chosen, draws=draws)
        low, high = np.log(percentiles(fraction_of(p, drawn.values[:, 3:])))
    elif chosen == "t":
        contrast = np.eye(len(p))[one] - np.eye(len(p))
        by_beta = np.zeros_like(contrast)
        with np.errstate(divide="ignore", invalid="ignore"):  # f is infinite where a factor is 0
            np.divide(contrast, values[0] * values[2:], out=by_beta, where=contrast != 0)
            gradient = np.column_stack([-log_f / values[0], np.zeros(len(p)), by_beta])
            variance = np.einsum("ij,jk,ik->i", gradient, fit.covariance, gradient)
        half = fit.t_quantile * np.sqrt(np.maximum(variance, 0.0))
        low, high = log_f - half, log_f + half
    else:
        refits = fit.draws(chosen, draws=draws).values
        low, high = percentiles(log_fraction(refits, one))
    table = pd.DataFrame({"p": p, "f": np.exp(log_f), "f_low": np.exp(low), "f_high": np.exp(high)})
    relative = (table[["f", "f_low", "f_high"]].div(table["p"], axis=0)).set_axis(
        ["relative", "relative_low", "relative_high"], axis=1
    )
    return table.join(relative)


def effective_fraction_direct(
    single: PowerLawFit,
    frame: pd.DataFrame,
    *,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    draws: int = 2000,
) -> pd.DataFrame:
    """Solve Eq. 8 at every row: the single-pair size that reaches the observed loss.

    Parameters
    ----------
    single : PowerLawFit
        The law of the pair alone (p = 1).
    frame : DataFrame
        Rows of the pair at any weights: ``p`` and the columns named by `n` and `loss`.
    draws
        Of the 95 % interval, from refits of the single-pair law to resampled residuals and, for the
        observed loss, Gaussian noise of the standard deviation of these residuals.

    Returns
    -------
    DataFrame
        ``p, n, loss, n_effective, f, f_low, f_high, relative, extrapolated``. A loss at or below
        the law's irreducible loss is out of its reach: `f` is infinite. `extrapolated` marks
        effective sizes outside the sizes that the law was fitted to.

    Raises
    ------
    InputError
        When the single-pair law is not identified, or for frames that `fit_joint_law` rejects.
    """
    if not single.identified:
        raise InputError(f"the single-pair law is not identified: {single.reason}")
    rows, p = pair_rows(frame, n, loss)
    size, observed = vector(n, rows[n], positive=True), vector(loss, rows[loss])
    effective = _inverse(single.values[None], observed, single.law.sign)[0]
    many = _direct_draws(single, size, observed, draws)
    bounds = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(many, bounds, axis=0, method="inverted_cdf")
    f = effective / size
    table = pd.DataFrame({"p": p, "n": size, "loss": observed, "n_effective": effective, "f": f})
    outside = (effective < single.law.n.min()) | (effective > single.law.n.max())
    return table.assign(f_low=low, f_high=high, relative=f / p, extrapolated=outside)


def direct_slopes(
    single: PowerLawFit,
    frame: pd.DataFrame,
    *,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    draws: int = 2000,
) -> pd.DataFrame:
    """Slope of log f on log n at each weight: zero when the fraction does not depend on size.

    All fractions rest on one single-pair law, whose error tilts them together: the scatter about
    the line says little about the error of its slope. The interval is therefore of slopes
    recomputed with refits of that law and noise on the losses, as in `effective_fraction_direct`.
    Only sizes at which that law need not be extrapolated are used: beyond its data, a slope is what
    its curve was assumed to be.

    Parameters
    ----------
    single, frame, n, loss, draws
        As in `effective_fraction_direct`. Rows whose effective size lies outside those of the
        single pair are left out and counted; so are draws in which a kept row has infinite f, or
        one too small for a float.

    Returns
    -------
    DataFrame
        ``p, slope, low, high, rows, left_out, draws``; NaN where fewer than three sizes remain.
    """
    direct = effective_fraction_direct(single, frame, n=n, loss=loss, draws=2)
    size, observed = direct["n"].to_numpy(), direct["loss"].to_numpy()
    many = _direct_draws(single, size, observed, draws)
    lines = []
    for p in np.unique(direct["p"]):
        rows = np.flatnonzero(direct["p"] == p)
        kept = rows[~direct["extrapolated"].to_numpy()[rows]]
        slope = low = high = np.nan
        used = 0
        if len(np.unique(size[kept])) >= 3:
            x = np.log(size[kept]) - np.log(size[kept]).mean()
            slope = float(np.log(direct["f"].to_numpy()[kept]) @ x / (x @ x))
            drawn = many[:, kept]
            finite = drawn[(np.isfinite(drawn) & (drawn > 0)).all(axis=1)]
            used = len(finite)
            slopes = np.log(finite) @ x / (x @ x)
            low, high = percentiles(slopes)
        line = {"p": p, "slope": slope, "low": low, "high": high, "rows": len(kept)}
        lines.append(line | {"left_out": len(rows) - len(kept), "draws": used})
    return pd.DataFrame(lines)


def _direct_draws(single: PowerLawFit, size: Array, observed: Array, draws: int) -> Array:
    """Fractions (B, m) with refits of the single-pair law and noise on the observed losses."""
    refits = single.draws("residual", draws=draws)
    spread = noise_scale(single.degrees_of_freedom, draws=draws, seed=0)[:, None]
    noise = np.random.default_rng(2).standard_normal((draws, len(observed)))
    drawn = observed + spread * single.noise_at(observed) * noise
    return _inverse(refits.values, drawn, single.law.sign) / size


def _inverse(values: Array, loss: Array, sign: float) -> Array:
    """Size at which each power law (B, 3) has each loss (m,) or (B, m); infinite out of reach."""
    alpha, l_inf, beta = (values[:, i : i + 1] for i in range(3))
    reducible = sign * (loss - l_inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(reducible > 0, (np.maximum(reducible, 0) / beta) ** (-1 / alpha), np.inf)
