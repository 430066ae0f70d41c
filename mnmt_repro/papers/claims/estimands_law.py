"""Estimands of the laws themselves: claims A1 to A7 of Paper A.

Each function is pure: evidence, claim and setting in; for each pair its named measures out.
What they read is told in ``data/claims/paper_a.yml``.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from mnmt_repro.laws import JointLawFit, fit_joint_law, fit_per_weight_laws
from mnmt_repro.laws.checks import Errors
from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.effects import fit_quality
from mnmt_repro.papers.effects.cells import Cells
from mnmt_repro.papers.effects.drift import shift, spread_in_sd
from mnmt_repro.papers.effects.intervals import Measure, measured
from mnmt_repro.papers.effects.noise import drawn, require


def errors_of(claim: Claim) -> Errors:
    """Whose squares the claim's laws minimise; the absolute errors' unless its options say else."""
    return claim.options.get("errors", "absolute")


def joint_law(cells: Cells, claim: Claim, setting: Setting, pair: str) -> JointLawFit:
    """Fit the joint law of a pair; `NotIdentified` where it is not."""
    by = claim.options.get("by", "p")
    fit = fit_joint_law(cells, n=setting.n, by=by, errors=errors_of(claim))
    require(fit, f"joint law of {pair}")
    return fit


def per_weight_fit(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A2: R² of Eq. 6 at each weight, and its error on a size left out."""
    units: Units = {}
    by, errors = claim.options.get("by", "p"), errors_of(claim)
    for pair, cells in evidence.grid(claim, setting).items():
        laws = fit_per_weight_laws(cells, n=setting.n, by=by, errors=errors)
        for p, law in laws.items():
            require(law, f"law of {pair} at {by} = {p}")
        fits, losses = list(laws.values()), drawn(cells)
        own = [losses[:, cells[by] == p] for p in laws]
        _, single = fit_quality.size_left_out(cells, setting.n, by, errors)
        units[pair] = {
            "r2_min": fit_quality.lowest_r2(fits, own),
            "r2_median": Measure(value=float(np.median([fit.r2 for fit in fits]))),
            "held_out_error": Measure(value=float(single[0])),
        }
    return units


def irreducible_loss_unchanged(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A4: drift of L_inf, and its spread over weights in the paper's standard deviations."""
    units, noise = {}, claim.options["perturbation"]
    for pair, cells in evidence.grid(claim, setting, weights=(0.05, 1)).items():
        laws = fit_per_weight_laws(cells, n=setting.n, errors=errors_of(claim))
        good = [law for law in laws.values() if law.identified and not law.active_bounds]
        fit = joint_law(cells, claim, setting, pair)
        units[pair] = {
            "shift": shift(fit, "l_inf", drawn(cells)),
            "spread_of_alpha": Measure(value=spread_in_sd(good, "alpha", noise)),
            "spread_of_l_inf": Measure(value=spread_in_sd(good, "l_inf", noise)),
        }
    return units


def factor_rises(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A5: order of beta over p, and log beta(0.05) / beta(1)."""
    units: Units = {}
    for pair, cells in evidence.grid(claim, setting, weights=(0.05, 1)).items():
        fit = joint_law(cells, claim, setting, pair)
        tau = stats.kendalltau(list(fit.beta), list(fit.beta.values())).statistic
        small, one = (2 + int(fit.law.index(p)[0]) for p in (0.05, 1.0))
        values = fit.refit(drawn(cells))
        units[pair] = {
            "kendall_tau": Measure(value=float(tau)),
            "log_ratio": measured(np.log(values[:, small] / values[:, one])),
        }
    return units


def joint_law_suffices(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """A6: error on a size left out, joint law over per-weight laws; R² and AICc."""
    by, errors = claim.options.get("by", "p"), errors_of(claim)
    units: Units = {}
    for pair, cells in evidence.grid(claim, setting).items():
        fit = joint_law(cells, claim, setting, pair)
        units[pair] = {
            **fit_quality.joint_against_separate(fit, cells, drawn(cells), setting.n, by, errors),
            "delta_aicc": fit_quality.aicc_difference(fit, cells, setting.n, by, errors),
        }
    return units
