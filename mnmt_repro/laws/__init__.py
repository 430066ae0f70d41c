"""Scaling laws: fit them, say how sure they are, predict from them.

Needs numpy, scipy and pandas only.

Where is which equation of the scaling paper?

========================  =================================================================
Eq. 2                     `fit_bivariate_law`
Eq. 3, 6                  `fit_power_law`, `fit_per_weight_laws`
Eq. 7                     `fit_joint_law`
Eq. 8 to 10               `effective_fraction`
Eq. 11, 12, 13            `fit_fraction`
Figure 4, footnote 5      `coefficients`, `mnmt_repro.laws.uncertainty`
Section 3.4, Figure 7     `frontier`, `recommend_weights`
Appendix G                `extrapolate_curve`
Appendix H                `recommend_weights` from laws of two pairs
========================  =================================================================

A law is one class: `PowerLaw`, `JointLaw`, `FractionLaw`, `BivariateLaw`, `AdditiveLaw`,
`MixtureLaw`. It has its formula, gradient, starts and box. `mnmt_repro.laws.solve` fits any of
them, and every fit gives a `LawFit`, which holds its law, prints as a few lines and has a `plot`.
Laws without weights (`PowerLaw`, `BivariateLaw`, `AdditiveLaw`) are fitted to arrays, and laws of
weights to a frame.

Losses may be in nats or in bits, if all are in one unit. Exponents, effective fractions and
recommended weights do not depend on it. Factors (`beta`) and constants (`l_inf`) are in this unit.
Not all weights need runs of all sizes: each law is fitted to the rows that are there.

Beyond the paper: `fit_additive_law`, `fit_mixture_law`, which predicts mixtures of any number of
pairs that nobody trained, and held-out errors and AICc (`mnmt_repro.laws.selection`).
"""

from mnmt_repro.laws.additive_law import AdditiveLaw, fit_additive_law, row_bootstrap
from mnmt_repro.laws.bivariate_law import BivariateLaw, fit_bivariate_law
from mnmt_repro.laws.convergence import extrapolate_curve
from mnmt_repro.laws.effective import effective_fraction
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionFit, FractionLaw, fit_fraction, fraction_of
from mnmt_repro.laws.frontier import frontier
from mnmt_repro.laws.joint_law import (
    JointLaw,
    JointLawFit,
    coefficients,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.laws.mixture_law import MixtureLaw, fit_mixture_law, leave_one_mixture_out
from mnmt_repro.laws.power_law import PowerLaw, PowerLawFit, fit_power_law
from mnmt_repro.laws.recommendation import Recommendation, recommend_weights
from mnmt_repro.laws.selection import error_summary, leave_one_size_out, leave_one_weight_out
