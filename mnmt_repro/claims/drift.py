"""The joint law with one coefficient allowed to drift with the weight.

Eq. 7 says that alpha and L_inf do not depend on p. Here one of them may, along
``u = (1 - p) / 0.95``, which is 0 at p = 1 and 1 at p = 0.05: a single further parameter, hence a
test of far more power than comparing eight separate fits. At both ends the coefficient keeps to the
bounds of the joint law; without them curves that have not begun to flatten determine no fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.claims.evidence import NotIdentified
from mnmt_repro.laws import JointLawFit
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.grouped_law import ALPHA_BOUNDS
from mnmt_repro.laws.newton import Index, minimise

Coefficient = Literal["alpha", "l_inf"]


def along(p: Array) -> Array:
    """Place each weight on the drift: 0 at p = 1, 1 at p = 0.05."""
    return (1.0 - p) / 0.95


@dataclass(frozen=True, kw_only=True)
class DriftModel:
    """``beta[p] x**-alpha + l_inf``, alpha or l_inf a straight line of u between its two ends.

    Parameters are alpha and l_inf at p = 1, the drifting one of them at p = 0.05, then the
    multipliers in the order of the joint law, at the geometric mean of the sizes.

    Attributes
    ----------
    coefficient : which one drifts
    log_x, u : (m,)
        Log of the size over the geometric mean, and the position on the drift, of each row.
    group : (m,)
    """

    coefficient: Coefficient
    log_x: Array
    u: Array
    group: NDArray[np.intp]

    @classmethod
    def of(cls, fit: JointLawFit, coefficient: Coefficient) -> DriftModel:
        """Make the model for the rows of a joint law."""
        log_n, group = np.log(np.array(fit.n)), np.array(fit.group)
        u = along(np.array(fit.p))[group]
        return cls(coefficient=coefficient, log_x=log_n - log_n.mean(), u=u, group=group)

    @property
    def _at_one(self) -> int:
        """Position of the drifting coefficient at p = 1."""
        return 0 if self.coefficient == "alpha" else 1

    def start(self, fit: JointLawFit, shift: float = 0.0) -> Array:
        """Parameters of the joint law, its coefficient moved by `shift` from p = 1 to p = 0.05."""
        centre = np.log(np.array(fit.n)).mean()
        beta = np.array(list(fit.beta.values())) * np.exp(-fit.alpha * centre)
        ends = [fit.alpha, fit.l_inf]
        return np.concatenate([ends, [ends[self._at_one] + shift], beta])

    def shift(self, values: Array) -> Array:
        """By how much the coefficient moves from p = 1 to p = 0.05, (B,), at parameters (B, P)."""
        return values[:, 2] - values[:, self._at_one]

    def losses(self, values: Array) -> Array:
        """Losses (B, m) at parameters (B, P)."""
        return self._parts(values)[0]

    def fit(self, losses: Array, start: Array) -> Array:
        """Least squares for each row of `losses` (B, m) from `start` (P,): parameters (B, P).

        One that does not converge is NaN.
        """
        lower, upper = self._bounds(len(start))
        found = minimise(
            _Residuals(model=self, observed=losses),
            np.tile(start, (len(losses), 1)),
            np.ones((1, losses.shape[1])),
            lower=lower,
            upper=upper,
            tolerance=1e-10,
        )
        return np.where(found.converged[:, None], found.theta, np.nan)

    def allows(self, values: Array) -> bool:
        """Whether parameters (P,) keep to the bounds."""
        lower, upper = self._bounds(len(values))
        return bool(((values >= lower) & (values <= upper)).all())

    def _bounds(self, count: int) -> tuple[Array, Array]:
        lower, upper = np.zeros(count), np.full(count, np.inf)
        for at in (0, 2) if self.coefficient == "alpha" else (0,):
            lower[at], upper[at] = ALPHA_BOUNDS
        return lower, upper

    def _parts(self, values: Array) -> tuple[Array, Array]:
        rise = self.shift(values)[:, None] * self.u
        alpha, l_inf = values[:, :1], values[:, 1:2]
        exponent, constant = (
            (alpha + rise, l_inf) if self.coefficient == "alpha" else (alpha, l_inf + rise)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            power = np.exp(-exponent * self.log_x)
            reducible = values[:, 3 + self.group] * power
            jacobian = np.zeros((*reducible.shape, values.shape[1]))
            jacobian[:, :, 0] = -reducible * self.log_x
            jacobian[:, :, 1] = 1.0
            at_one = jacobian[:, :, self._at_one].copy()
            jacobian[:, :, self._at_one] = at_one * (1 - self.u)
            jacobian[:, :, 2] = at_one * self.u
            jacobian[:, np.arange(len(self.group)), 3 + self.group] = power
        return reducible + constant, jacobian


@dataclass(frozen=True, kw_only=True)
class _Residuals:
    """The model against many sets of losses (B, m), as `laws.newton.minimise` takes it."""

    model: DriftModel
    observed: Array

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        losses, jacobian = self.model._parts(theta)
        return losses - self.observed[index], jacobian

    def curvature(self, theta: Array, index: Index, score: Array) -> float:
        return 0.0


def fit_drift(fit: JointLawFit, coefficient: Coefficient) -> tuple[DriftModel, Array, float]:
    """Fit the drift model to the rows of a joint law.

    Returns
    -------
    model, parameters (P,), residual standard deviation

    Raises
    ------
    NotIdentified
        When the fit does not converge.
    """
    model = DriftModel.of(fit, coefficient)
    values = model.fit(fit.observed()[None], model.start(fit))[0]
    if not np.isfinite(values).all():
        raise NotIdentified(f"a drift of {coefficient} with the weight cannot be fitted")
    residual = fit.observed() - model.losses(values[None])[0]
    spare = len(residual) - len(values)
    return model, values, float(np.sqrt((residual**2).sum() / spare))
