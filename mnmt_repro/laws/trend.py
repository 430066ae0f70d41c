"""The joint law with one coefficient allowed to follow the weight.

Eq. 7 says that alpha and L_inf do not depend on p. Here one of them may, along a straight line in
a stated place of each weight, 0 at one end and 1 at the other: a single further parameter, hence a
test of far more power than comparing eight separate fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.joint_law import JointLawFit
from mnmt_repro.laws.minimise import TOLERANCE, Curve, Minimum, minimise
from mnmt_repro.laws.power_law import least_constant
from mnmt_repro.laws.variable_projection import ALPHA_BOUNDS

Coefficient = Literal["alpha", "l_inf"]


@dataclass(frozen=True, kw_only=True)
class TrendLaw(Curve):
    """``beta[p] * x**-alpha(p) + l_inf(p)``, in losses or in negated qualities.

    Parameters are alpha, l_inf and the multipliers at the geometric mean of the sizes. The
    coefficient with a trend has two entries, at place 0 and at place 1: then its bounds at all
    weights, which are those of the joint law, are a box.

    Attributes
    ----------
    log_x : (m,)
        Log of the size over the geometric mean.
    alpha, l_inf : (m, 1 or 2)
        Share of each of the coefficient's entries in a row's.
    ends : positions of the coefficient with a trend among the parameters, at places 0 and 1
    group : (m,)
    weights : (m,)
        Of the squared residuals, those of the joint law.
    start : (P,)
        Parameters that make this the joint law.
    lower, upper : (P,)
        Their bounds.
    """

    log_x: Array
    alpha: Array
    l_inf: Array
    ends: tuple[int, int]
    group: NDArray[np.intp]
    weights: Array
    start: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, fit: JointLawFit, place: Array, trend: Coefficient) -> TrendLaw:
        """Widen a joint law.

        Parameters
        ----------
        fit : whose rows, and order of weights, the law takes
        place : (G,)
            Place on the line of each weight.
        trend : the coefficient that follows it
        """
        law, group = fit.law, fit.law.group
        log_n = np.log(law.n)
        shares = np.column_stack([1 - place, place])[group]
        one = np.ones((len(group), 1))
        beta = fit.values[2:] * np.exp(-fit.alpha * log_n.mean())
        entries = [2 if trend == "alpha" else 1, 2 if trend == "l_inf" else 1, len(beta)]
        least = [ALPHA_BOUNDS[0], least_constant(law), 0.0]
        return cls(
            log_x=log_n - log_n.mean(),
            alpha=shares if trend == "alpha" else one,
            l_inf=shares if trend == "l_inf" else one,
            ends=(0, 1) if trend == "alpha" else (1, 2),
            group=group,
            weights=law.weights,
            start=np.append(np.repeat([fit.alpha, law.sign * fit.l_inf], entries[:2]), beta),
            lower=np.repeat(least, entries),
            upper=np.repeat([ALPHA_BOUNDS[1], np.inf, np.inf], entries),
        )

    def fit(self, losses: Array, start: Array, tolerance: float = TOLERANCE) -> Minimum:
        """Fit losses (B, m) by least squares, all from the parameters `start` (P,)."""
        return minimise(
            self, losses, np.tile(start, (len(losses), 1)), self.weights[None], lower=self.lower,
            upper=self.upper, tolerance=tolerance,
        )  # fmt: skip

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Losses (B, m) and their derivatives (B, m, P) at parameters (B, P)."""
        a, b = self.alpha.shape[1], self.l_inf.shape[1]
        exponent = -(theta[:, :a] @ self.alpha.T) * self.log_x
        power = np.exp(np.minimum(exponent, 300.0))
        reducible = theta[:, a + b + self.group] * power
        jacobian = np.zeros((*power.shape, theta.shape[1]))
        jacobian[:, :, :a] = (-reducible * self.log_x)[:, :, None] * self.alpha
        jacobian[:, :, a : a + b] = self.l_inf
        jacobian[:, np.arange(len(self.group)), a + b + self.group] = power
        return reducible + theta[:, a : a + b] @ self.l_inf.T, jacobian
