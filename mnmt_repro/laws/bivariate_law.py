"""The law in encoder and decoder parameters: Equation 2, and its reduction to Equation 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, same_length, vector
from mnmt_repro.laws.fit_result import (
    Floats,
    LawFit,
    as_rows,
    as_tuple,
    covariance_of,
    r_squared,
    rank_deficient,
    trend_p_value,
)
from mnmt_repro.laws.grouped_law import TREND_LEVEL
from mnmt_repro.laws.newton import Index, Minimum, minimise

NAMES = ("beta", "alpha_e", "alpha_d", "l_inf")
_LOWER = np.array([-300.0, 0.0, 0.0, 0.0])
_UPPER = np.array([300.0, 10.0, 10.0, np.inf])


@dataclass(frozen=True, kw_only=True)
class BivariateLawFit(LawFit):
    """``loss = beta * n_e**-alpha_e * n_d**-alpha_d + l_inf``, fitted. See `fit_bivariate_law`."""

    n_encoder: Floats
    n_decoder: Floats

    def fitted(self) -> Array:
        """Evaluate the law at the rows fitted, (m,)."""
        return self.predict(self.n_encoder, self.n_decoder)

    def design(self) -> Array:
        """Return encoder and decoder size of each row, (m, 2)."""
        return np.column_stack([self.n_encoder, self.n_decoder])

    def predict(self, n_encoder: ArrayLike, n_decoder: ArrayLike) -> Array:
        """Evaluate the law at encoder and decoder sizes (broadcast together)."""
        encoder = vector("n_encoder", np.atleast_1d(n_encoder), positive=True)
        decoder = vector("n_decoder", np.atleast_1d(n_decoder), positive=True)
        beta, alpha_e, alpha_d, l_inf = self.values
        return beta * encoder**-alpha_e * decoder**-alpha_d + l_inf

    def refit(self, losses: Array) -> Array:
        """Fit the same law to other losses (B, m) at the same rows, from this optimum."""
        model = _Bivariate(log=np.log(self.design()), loss=losses)
        start = np.repeat(model.scaled(np.array(self.values))[None], len(losses), 0)
        return model.unscaled(_minimise(model, start).theta)

    def proportional(self, encoder_share: float) -> dict[str, float]:
        """Reduce Eq. 2 to Eq. 3 for encoders that hold a fixed share of all parameters.

        Parameters
        ----------
        encoder_share : in (0, 1), encoder over encoder plus decoder parameters

        Returns
        -------
        dict
            ``alpha``, ``beta`` and ``l_inf`` of the power law in encoder plus decoder parameters.
        """
        if not 0 < encoder_share < 1:
            raise InputError(f"encoder_share: {encoder_share}; give a share between 0 and 1")
        beta, alpha_e, alpha_d, l_inf = self.values
        beta = beta * encoder_share**-alpha_e * (1 - encoder_share) ** -alpha_d
        return {"alpha": alpha_e + alpha_d, "l_inf": l_inf, "beta": beta}


@dataclass(frozen=True, kw_only=True)
class _Bivariate:
    """Residuals in theta = (log beta', alpha_e, alpha_d, l_inf), sizes divided by their means."""

    log: Array  # (m, 2)
    loss: Array  # (B, m)

    def scaled(self, values: Array) -> Array:
        beta, alpha_e, alpha_d, l_inf = values
        shift = self.log.mean(0) @ [alpha_e, alpha_d]
        return np.array([np.log(beta) - shift, alpha_e, alpha_d, l_inf])

    def unscaled(self, theta: Array) -> Array:
        beta = np.exp(theta[:, 0] + theta[:, 1:3] @ self.log.mean(0))
        return np.column_stack([beta, theta[:, 1:]])

    def _direction(self) -> Array:
        centred = self.log - self.log.mean(0)
        return np.column_stack([np.ones(len(centred)), -centred])  # (m, 3)

    def residual(self, theta: Array, index: Index) -> tuple[Array, Array]:
        direction = self._direction()
        power = np.exp(np.minimum(theta[:, :3] @ direction.T, 300.0))
        jacobian = np.concatenate(
            [power[:, :, None] * direction, np.ones((*power.shape, 1))], axis=2
        )
        return power + theta[:, 3:] - self.loss[index], jacobian

    def curvature(self, theta: Array, index: Index, score: Array) -> Array:
        direction = self._direction()
        power = np.exp(np.minimum(theta[:, :3] @ direction.T, 300.0))
        hessian = np.zeros((len(theta), 4, 4))
        hessian[:, :3, :3] = (direction.T * (score * power)[:, None, :]) @ direction
        return hessian


def fit_bivariate_law(
    n_encoder: ArrayLike, n_decoder: ArrayLike, loss: ArrayLike
) -> BivariateLawFit:
    """Fit Eq. 2, ``loss = beta * n_encoder**-alpha_e * n_decoder**-alpha_d + l_inf``.

    Parameters
    ----------
    n_encoder, n_decoder, loss : (m,)
        Non-embedding parameters of each side, losses in nats per token.

    Returns
    -------
    BivariateLawFit
        With ``identified=False`` when the loss does not change with the sizes beyond its noise, or
        when the sides grow in proportion: then only the sum of both exponents can be seen, and
        Eq. 3 (`fit_power_law`) is the law to fit.

    Raises
    ------
    InputError
        Unequal lengths, values that are not finite, sizes not above zero.
    """
    encoder = vector("n_encoder", n_encoder, positive=True)
    decoder = vector("n_decoder", n_decoder, positive=True)
    y = vector("loss", loss)
    same_length(n_encoder=encoder, n_decoder=decoder, loss=y)
    model = _Bivariate(log=np.log(np.column_stack([encoder, decoder])), loss=y[None])
    rows: dict[str, Any] = {
        "n_encoder": as_tuple(encoder),
        "n_decoder": as_tuple(decoder),
        "loss": as_tuple(y),
        "observations": len(y),
    }
    reason = _cannot(model.log, y)
    if not reason:
        found = _minimise(model, _starts(model, y))
        best = int(found.objective.argmin())
        theta, held = found.theta[best : best + 1], found.held[best]
        jacobian = model.residual(theta, np.zeros(1, dtype=int))[1][0]
        if (theta[0, 1:3] >= _UPPER[1:3]).any() or theta[0, 1:3].sum() < 1e-3:
            reason = "an exponent ran to an end of its range: no power law in these sizes"
        elif rank_deficient(jacobian, held):
            reason = "several parameter sets fit equally well: the sizes do not separate them"
        elif trend_p_value(y, model.residual(theta, np.zeros(1, int))[0][0] + y, 2) >= TREND_LEVEL:
            reason = "the loss does not change with size beyond its noise"
    if reason:
        return BivariateLawFit.unidentified(reason, NAMES, **rows)
    values = model.unscaled(theta)[0]
    change = np.eye(4)
    change[0, :3] = values[0] * np.array([1.0, *model.log.mean(0)])
    rss = 2.0 * float(found.objective[best])
    scaled = covariance_of(jacobian, np.ones(len(y)), rss, held)
    bounds = ("beta", "alpha_e >= 0", "alpha_d >= 0", "l_inf >= 0")
    return BivariateLawFit(
        names=NAMES,
        values=as_tuple(values),
        covariance=as_rows(change @ scaled @ change.T),
        rss=rss,
        r2=r_squared(y, rss, np.ones(len(y))),
        identified=True,
        active_bounds=tuple(b for b, h in zip(bounds, held, strict=True) if h),
        **rows,
    )


def _cannot(log: Array, loss: Array) -> str:
    cells = len(np.unique(log, axis=0))
    if cells < 4:
        return f"{cells} distinct rows cannot determine 4 parameters; train more sizes"
    centred = log - log.mean(0)
    singular = np.linalg.svd(centred, compute_uv=False)
    if singular[1] < 1e-3 * singular[0]:
        return "encoder and decoder grow in proportion: only alpha_e + alpha_d can be seen (Eq. 3)"
    if np.ptp(loss) <= 1e-10 * np.abs(loss).max():
        return "the loss is flat: it does not change with size"
    if ((loss - loss.mean()) @ centred >= 0).all():
        return "the loss rises with size"
    return ""


def _starts(model: _Bivariate, loss: Array) -> Array:
    """Linear least squares in beta and l_inf at each point of a small grid of exponents."""
    centred = model.log - model.log.mean(0)
    starts = []
    for alpha_e in (0.05, 0.3, 1.0):
        for alpha_d in (0.05, 0.3, 1.0):
            power = np.exp(-centred @ [alpha_e, alpha_d])
            basis = np.column_stack([power, np.ones(len(loss))])
            beta, l_inf = np.linalg.lstsq(basis, loss, rcond=None)[0]
            beta = max(beta, 0.05 * abs(loss).mean())
            starts.append([np.log(beta), alpha_e, alpha_d, max(l_inf, 0.0)])
    return np.array(starts)


def _minimise(model: _Bivariate, start: Array) -> Minimum:
    rows = _Bivariate(log=model.log, loss=np.broadcast_to(model.loss, (len(start), len(model.log))))
    return minimise(rows, start, np.ones((1, len(model.log))), lower=_LOWER, upper=_UPPER)
