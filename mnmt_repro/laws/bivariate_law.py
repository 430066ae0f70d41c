"""The law in encoder and decoder parameters: Equation 2, and its reduction to Equation 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, same_length, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.law import TREND_LEVEL, Law, Optimum, is_flat, trend_p_value

_LOWER = np.array([-300.0, 0.0, 0.0, 0.0])
_UPPER = np.array([300.0, 10.0, 10.0, np.inf])


@dataclass(frozen=True, kw_only=True, eq=False)
class BivariateLaw(Law):
    """``loss = beta * n_encoder**-alpha_e * n_decoder**-alpha_d + l_inf``, Eq. 2.

    Searched as theta = (log beta', alpha_e, alpha_d, l_inf), with sizes divided by their means.

    Attributes
    ----------
    n_encoder : (m,)
        Size of each row's encoder.
    n_decoder : (m,)
        Size of each row's decoder.
    """

    n_encoder: Array
    n_decoder: Array

    formula = "loss = beta * n_encoder**-alpha_e * n_decoder**-alpha_d + l_inf"
    inputs = ("n_encoder", "n_decoder")
    names = ("beta", "alpha_e", "alpha_d", "l_inf")
    logarithms = (0,)
    refit_tolerance = 1e-13
    boxes = ((_LOWER, _UPPER),)

    @property
    def rows(self) -> Array:
        return np.column_stack([self.n_encoder, self.n_decoder])

    @property
    def shift(self) -> Array:
        shift = np.zeros((4, 4))
        shift[0, 1:3] = np.log(self.rows).mean(0)
        return shift

    def model(self, theta: Array, rows: Array) -> Array:
        return self._reducible(theta, rows)[0] + theta[..., 3:]

    def _reducible(self, theta: Array, rows: Array) -> tuple[Array, Array]:
        """Reducible loss (..., m) and the derivatives (m, 3) of its logarithm."""
        # These are the same at every theta.
        slopes = np.column_stack([np.ones(len(rows)), np.log(self.rows).mean(0) - np.log(rows)])
        # The search may try an exponent at which the power overflows; a finite value, however
        # large, lets it see that the step was too far.
        return np.exp(np.minimum(theta[..., :3] @ slopes.T, 300.0)), slopes

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        reducible, slopes = self._reducible(theta, self.rows)
        one = np.ones((*reducible.shape, 1))
        jacobian = np.concatenate([reducible[:, :, None] * slopes, one], axis=2)
        return reducible + theta[:, 3:], jacobian

    def starts(self, loss: Array) -> Array:
        """Linear least squares in beta and l_inf at each point of a small grid of exponents."""
        centred = self._centred()
        starts = []
        for alpha_e in (0.05, 0.3, 1.0):
            for alpha_d in (0.05, 0.3, 1.0):
                power = np.exp(-centred @ [alpha_e, alpha_d])
                basis = np.column_stack([power, np.ones(len(loss))])
                beta, l_inf = np.linalg.lstsq(basis, loss, rcond=None)[0]
                # Exponents far from the truth can ask for a negative multiplier, which has no
                # logarithm.
                beta = max(beta, 0.05 * abs(loss).mean())
                starts.append([np.log(beta), alpha_e, alpha_d, max(l_inf, 0.0)])
        return np.array(starts)

    def _centred(self) -> Array:
        return np.asarray(np.log(self.rows) - np.log(self.rows).mean(0))

    def cannot(self, loss: Array) -> str:
        if (cells := len(np.unique(self.rows, axis=0))) < 4:
            return f"{cells} distinct rows cannot determine 4 parameters; train more sizes"
        centred = self._centred()
        singular = np.linalg.svd(centred, compute_uv=False)
        if singular[1] < 1e-3 * singular[0]:
            return (
                "encoder and decoder grow in proportion: only alpha_e + alpha_d can be seen (Eq. 3)"
            )
        if is_flat(loss):
            return "the loss is flat: it does not change with size"
        if ((loss - loss.mean()) @ centred >= 0).all():
            return "the loss rises with size: train larger models longer"
        return ""

    def doubt(self, best: Optimum, loss: Array) -> str:
        exponents = best.theta[1:3]
        if (exponents >= _UPPER[1:3]).any() or exponents.sum() < 1e-3:
            return "an exponent ran to an end of its range: no power law in these sizes"
        if self.several(best):
            return "several parameter sets fit equally well: the sizes do not separate them"
        fitted = self.evaluate(best.theta[None])[0][0]
        if trend_p_value(loss, fitted, 2) >= TREND_LEVEL:
            return "the loss does not change with size beyond its noise"
        return ""


def fit_bivariate_law(
    n_encoder: ArrayLike, n_decoder: ArrayLike, loss: ArrayLike
) -> LawFit[BivariateLaw]:
    """Fit Eq. 2, ``loss = beta * n_encoder**-alpha_e * n_decoder**-alpha_d + l_inf``.

    For encoders that hold a share s of all parameters this is Eq. 3 with ``alpha_e + alpha_d`` as
    its exponent and ``beta * s**-alpha_e * (1 - s)**-alpha_d`` as its multiplier.

    Parameters
    ----------
    n_encoder : (m,)
        Non-embedding parameters of the encoder.
    n_decoder : (m,)
        Non-embedding parameters of the decoder.
    loss : (m,)
        Losses in one unit, such as nats per token.

    Returns
    -------
    LawFit of a BivariateLaw
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
    law = BivariateLaw(weights=np.ones(len(y)), n_encoder=encoder, n_decoder=decoder)
    return solve.fit(law, y)
