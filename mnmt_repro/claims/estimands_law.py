"""Estimands of the laws themselves: claims A1 to A7 of Paper A.

Each function is pure: evidence, claim and scope in; for each pair its named measures out. What they
read is told in ``data/claims/paper_a.yml``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mnmt_repro.analysis.drift import fit_drift, refit_drift
from mnmt_repro.analysis.intervals import (
    DRAWS,
    Measure,
    Measures,
    NotIdentified,
    measure,
    power,
    quantiles,
)
from mnmt_repro.analysis.noise import curve, noisy, refit_power_laws, refits, require
from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.claims.evidence import Cells, Evidence, Units
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.laws import (
    JointLawFit,
    PowerLawFit,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.selection import pooled_aicc
from mnmt_repro.laws.trend import Coefficient
from mnmt_repro.laws.uncertainty import robust_sd

_HELD_OUT_DRAWS = 200


def draws_of(claim: Claim, usual: int = DRAWS) -> int:
    """How many refits its intervals rest on; fewer in simulated data (`claims.attainability`)."""
    return int(claim.options.get("draws", usual))


def errors_of(claim: Claim) -> Errors:
    """Whose squares the claim's laws minimise; the absolute errors' unless its options say else."""
    return claim.options.get("errors", "absolute")


def joint_law(
    cells: Cells, n: str, what: str, by: str = "p", errors: Errors = "absolute"
) -> JointLawFit:
    """Fit the joint law of a pair; `NotIdentified` where it is not."""
    fit = fit_joint_law(cells, n=n, by=by, errors=errors)
    require(fit, f"joint law of {what}")
    return fit


def parameter_counts_agree(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A1: the sixteen counts of Appendix A against the arithmetic of their shapes."""
    equal, difference = 0, 0.0
    for row in PAPER_A:
        counts = parameter_counts(row.config)
        for ours, published in (
            (counts["total"], row.published_total),
            (counts["non_embedding"], row.published_non_embedding),
        ):
            equal += ours == published
            difference = max(difference, abs(ours - published) / published)
    agreeing, largest = Measure(value=equal), Measure(value=difference)
    return {"all": {"agreeing": agreeing, "max_relative_difference": largest}}


def per_weight_fit(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A2: R² of Eq. 6 at each weight, and its error on a size left out."""
    units: Units = {}
    by, errors = claim.options.get("by", "p"), errors_of(claim)
    grid = evidence.grid(scope, scope.cohorts[0], claim.options["needs"], by=by)
    for pair, cells in grid.items():
        laws = fit_per_weight_laws(cells, n=scope.n, by=by, errors=errors)
        for p, law in laws.items():
            require(law, f"law of {pair} at {by} = {p}")
        fits = list(laws.values())
        r2 = [fit.r2 for fit in fits]
        draws = draws_of(claim)
        drawn = [noisy(f.fitted(), f.noise_sd(), k, draws) for k, f in enumerate(fits)]
        refitted = refit_power_laws([np.array(f.n) for f in fits], drawn, errors)
        least = np.full(len(drawn[0]), np.inf)
        for fit, losses, values in zip(fits, drawn, refitted, strict=True):
            weights = fit.row_weights()
            left = losses - curve(values, np.array(fit.group), np.array(fit.n))
            total = losses - (losses @ weights / weights.sum())[:, None]
            least = np.minimum(least, 1 - (left**2 @ weights) / (total**2 @ weights))
        low, high = quantiles(least)
        units[pair] = {
            "r2_min": Measure(value=min(r2), low=low, high=high),
            "r2_median": Measure(value=float(np.median(r2))),
        }
        if claim.options.get("unjudged", True):
            observed = cells["cross_entropy"].to_numpy()[None]
            _, single = _leave_size_out(cells, scope.n, observed, by, errors)
            units[pair]["held_out_error"] = Measure(value=float(single[0]))
    return units


def exponent_unchanged(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A3: spread of alpha over weights in the paper's standard deviations, and its drift."""
    return _unchanged(evidence, claim, scope, "alpha")


def irreducible_loss_unchanged(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A4: as A3, for L_inf."""
    return _unchanged(evidence, claim, scope, "l_inf")


def factor_rises(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A5: order of beta over p, and log beta(0.05) / beta(1)."""
    units: Units = {}
    needs = claim.options["needs"]
    for pair, cells in evidence.grid(scope, scope.cohorts[0], needs, weights=(0.05, 1)).items():
        fit = joint_law(cells, scope.n, pair, errors=errors_of(claim))
        tau = stats.kendalltau(list(fit.beta), list(fit.beta.values())).statistic
        small, one = (2 + int(fit.index(p)[0]) for p in (0.05, 1.0))
        drawn = refits(fit, 0, draws_of(claim))
        value = np.log(fit.values[small] / fit.values[one])
        deviations = np.log(drawn[:, small] / drawn[:, one]) - value
        units[pair] = {
            "kendall_tau": Measure(value=float(tau)),
            "log_ratio": measure(value, deviations),
        }
    return units


def joint_law_suffices(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A6: error on a size left out, joint law over per-weight laws; R² and AICc."""
    units: Units = {}
    by, errors = claim.options.get("by", "p"), errors_of(claim)
    grid = evidence.grid(scope, scope.cohorts[0], claim.options["needs"], by=by)
    for pair, cells in grid.items():
        fit = joint_law(cells, scope.n, pair, by, errors)
        ordered = cells.sort_values(by)
        loss = ordered["cross_entropy"].to_numpy()
        fitted = np.asarray(fit.predict(ordered[by], ordered[scope.n]))
        draws = draws_of(claim, _HELD_OUT_DRAWS)
        weights = error_weights(errors, loss)
        drawn = noisy(fitted, fit.residual_sd / np.sqrt(weights), seed=0, draws=draws)
        losses = np.vstack([loss, fitted, drawn])
        joint, single = _leave_size_out(ordered, scope.n, losses, by, errors)
        # At the law itself both errors vanish, so deviations are about the mean of the draws.
        ratios = np.log(joint[2:] / single[2:])
        low, high = quantiles(ratios - ratios.mean())
        ratio = joint[0] / single[0]
        laws = fit_per_weight_laws(cells, n=scope.n, by=by, errors=errors)
        units[pair] = {
            "error_ratio": Measure(
                value=float(ratio), low=float(ratio * np.exp(low)), high=float(ratio * np.exp(high))
            ),
            "joint_error": Measure(value=float(joint[0])),
            "r2_joint": Measure(value=fit.r2),
            "delta_aicc": Measure(value=pooled_aicc([fit]) - pooled_aicc(list(laws.values()))),
        }
    return units


def fraction_slope(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """A7: slope of log f on log N, f solved directly from Eq. 8 at each size."""
    assert claim.alternative is not None
    wanted = claim.options["weights"]
    units: Units = {}
    grid = evidence.grid(scope, scope.cohorts[0], claim.options["needs"], weights=(*wanted, 1))
    for pair, cells in grid.items():
        laws = fit_per_weight_laws(cells, n=scope.n, errors=errors_of(claim))
        one = laws[1.0]
        require(one, f"single-pair law of {pair}")
        for p in wanted:
            require(laws[p], f"law of {pair} at p = {p:g}")
        observed = cells.loc[cells["p"] == 1, "cross_entropy"]
        used = cells[
            cells["p"].isin(wanted) & cells["cross_entropy"].between(observed.min(), observed.max())
        ]
        used = used.groupby("p").filter(lambda rows: len(rows) >= 2)
        count = Measure(value=len(used))
        if len(used) < 3:
            units[pair] = {"cells": count}
            continue
        units[pair] = _slope(used, laws, wanted, scope.n, claim)
    return units


def _slope(
    used: Cells, laws: dict[float, PowerLawFit], wanted: list[float], n: str, claim: Claim
) -> Measures:
    assert claim.alternative is not None
    one, errors, effect = laws[1.0], errors_of(claim), claim.alternative.effect
    sd = float(
        np.sqrt(
            sum(laws[p].rss for p in (*wanted, 1.0))
            / sum(laws[p].degrees_of_freedom for p in (*wanted, 1.0))
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
        return noisy(mean, sd / np.sqrt(error_weights(errors, mean)), seed, draws_of(claim))

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


def _unchanged(evidence: Evidence, claim: Claim, scope: Scope, name: Coefficient) -> Units:
    assert claim.alternative is not None
    units: Units = {}
    needs = claim.options["needs"]
    for pair, cells in evidence.grid(scope, scope.cohorts[0], needs, weights=(0.05, 1)).items():
        fit = joint_law(cells, scope.n, pair, errors=errors_of(claim))
        laws = fit_per_weight_laws(cells, n=scope.n, errors=errors_of(claim))
        good = [law for law in laws.values() if law.identified and not law.active_bounds]
        smallest = cells["n_non_embedding"] == cells["n_non_embedding"].min()
        scale = float(cells.loc[smallest & (cells["p"] == 1), "cross_entropy"].iloc[0])
        units[pair] = {
            "spread_in_sd": Measure(value=_spread_in_sd(good, name, claim)),
            "identified_share": Measure(value=len(good) / len(laws)),
            **drift_measures(fit, name, claim.alternative.effect, scale, draws_of(claim)),
        }
    return units


def _spread_in_sd(laws: list[PowerLawFit], name: Coefficient, claim: Claim) -> float:
    if len(laws) < 2:
        return float("nan")
    sigma = claim.options["perturbation"]
    values = np.array([law.params[name] for law in laws])
    column = laws[0].names.index(name)
    drawn = []
    for k, law in enumerate(laws):
        loss = law.observed()
        noise = np.random.default_rng(k).standard_normal((draws_of(claim), len(loss)))
        drawn.append(loss * (1 + sigma * noise))
    refitted = refit_power_laws([np.array(law.n) for law in laws], drawn, errors_of(claim))
    sds = [float(robust_sd(found[:, column])) for found in refitted]
    larger = np.maximum.outer(sds, sds)
    return float((np.abs(np.subtract.outer(values, values)) / larger).max())


def drift_measures(
    fit: JointLawFit, name: Coefficient, effect: float, loss_scale: float, draws: int = DRAWS
) -> Measures:
    """Measure the `shift` of a coefficient from p = 1 to p = 0.05, and the power to see `effect`.

    Shifts are relative: of alpha to itself, of L_inf to `loss_scale`. The power is the smaller of
    both signs, of those that the law's bounds allow; its data are drawn from the joint law, with
    the alternative built in, and judged by the interval that data of the joint law have, whose
    noise is larger than the drifting law's where there is a drift.
    """
    law, values, sd = fit_drift(fit, name)
    one, small = law.ends(name)
    unit = fit.alpha if name == "alpha" else loss_scale

    def shift(theta: Array) -> Array:
        return law.change(name, theta) / (theta[:, one] if name == "alpha" else loss_scale)

    def refitted(theta: Array, noise_sd: Array, seed: int) -> Array:
        """Shifts of laws fitted to data of parameters `theta` (P,)."""
        losses = noisy(law.predict(theta[None])[0], noise_sd, seed, draws)
        return _finite(shift(refit_drift(law, losses, theta)))

    value = shift(values[None])[0]
    noise, level = fit.noise_sd(), law.start(fit)
    deviations = refitted(values, sd / np.sqrt(fit.row_weights()), 0) - value
    undrifted = refitted(level, noise, 2)
    powers = []
    for sign in (1, -1):
        moved = level.copy()
        moved[small] += sign * effect * unit
        if law.allows(moved):  # a constant below zero, say: no law that could be drawn from
            powers.append(power(refitted(moved, noise, 1), undrifted, sign))
    return {"shift": measure(value, deviations), "power": Measure(value=min(powers))}


def _finite(values: Array) -> Array:
    kept = values[np.isfinite(values)]
    if len(kept) < 0.9 * len(values):
        raise NotIdentified("more than a tenth of the refits under noise do not converge")
    return kept


def _leave_size_out(
    cells: Cells, n: str, losses: Array, by: str, errors: Errors
) -> tuple[Array, Array]:
    """Root mean square relative error of each row of `losses` (B, m) on sizes left out.

    Returns
    -------
    joint law (B,), per-weight laws (B,)
    """
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
