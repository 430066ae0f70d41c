"""The law in encoder and decoder parameters: Equation 2, and its reduction to Equation 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, same_length, vector
from mnmt_repro.laws.fit_result import Floats, LawFit

_NAMES = ("beta", "alpha_e", "alpha_d", "l_inf")
_LOWER = np.array([-300.0, 0.0, 0.0, 0.0])
_UPPER = np.array([300.0, 10.0, 10.0, np.inf])


@dataclass(frozen=True, kw_only=True)
class BivariateLawFit(LawFit):
    """``loss = beta * n_e**-alpha_e * n_d**-alpha_d + l_inf``, fitted. See `fit_bivariate_law`."""

    inputs = ("n_encoder", "n_decoder")

    n_encoder: Floats
    n_decoder: Floats

    def law(self) -> BivariateLaw:
        """Return Eq. 2 at the rows fitted."""
        return BivariateLaw(names=_NAMES, weights=self.row_weights(), log=np.log(self.design()))

    def design(self) -> Array:
        """Return encoder and decoder size of each row, (m, 2)."""
        return np.column_stack([self.n_encoder, self.n_decoder])

    def curve(self, values: Array, design: Array) -> Array:
        """Evaluate the law with parameters (..., 4) at both sizes (m, 2): (..., m)."""
        beta, alpha_e, alpha_d, l_inf = (values[..., i : i + 1] for i in range(4))
        encoder, decoder = design.T
        return np.asarray(beta * encoder**-alpha_e * decoder**-alpha_d + l_inf)

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
class BivariateLaw(solve.CurveLaw):
    """Eq. 2 in theta = (log beta', alpha_e, alpha_d, l_inf), sizes divided by their means.

    Attributes
    ----------
    log : (m, 2)
        Logarithms of the encoder's and the decoder's size.
    """

    log: Array

    logarithms = (0,)
    refit_tolerance = 1e-13
    boxes = ((_LOWER, _UPPER),)

    @property
    def shift(self) -> Array:
        shift = np.zeros((4, 4))
        shift[0, 1:3] = self.log.mean(0)
        return shift

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        # Derivatives of the logarithm of the reducible loss are the same at every theta.
        slopes = np.column_stack([np.ones(len(self.log)), self.log.mean(0) - self.log])
        # The search may try an exponent at which the power overflows; a finite value, however
        # large, lets it see that the step was too far.
        reducible = np.exp(np.minimum(theta[:, :3] @ slopes.T, 300.0))
        one = np.ones((*reducible.shape, 1))
        jacobian = np.concatenate([reducible[:, :, None] * slopes, one], axis=2)
        return reducible + theta[:, 3:], jacobian

    def starts(self, loss: Array) -> Array:
        """Linear least squares in beta and l_inf at each point of a small grid of exponents."""
        centred = self.log - self.log.mean(0)
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

    def cannot(self, loss: Array) -> str:
        cells = len(np.unique(self.log, axis=0))
        if cells < 4:
            return f"{cells} distinct rows cannot determine 4 parameters; train more sizes"
        centred = self.log - self.log.mean(0)
        singular = np.linalg.svd(centred, compute_uv=False)
        if singular[1] < 1e-3 * singular[0]:
            return (
                "encoder and decoder grow in proportion: only alpha_e + alpha_d can be seen (Eq. 3)"
            )
        if solve.is_flat(loss):
            return "the loss is flat: it does not change with size"
        if ((loss - loss.mean()) @ centred >= 0).all():
            return "the loss rises with size: train larger models longer"
        return ""

    def doubt(self, found: solve.Optimum, loss: Array) -> str:
        exponents = found.theta[1:3]
        if (exponents >= _UPPER[1:3]).any() or exponents.sum() < 1e-3:
            return "an exponent ran to an end of its range: no power law in these sizes"
        if self.several(found):
            return "several parameter sets fit equally well: the sizes do not separate them"
        fitted = self.evaluate(found.theta[None])[0][0]
        if solve.trend_p_value(loss, fitted, 2) >= solve.TREND_LEVEL:
            return "the loss does not change with size beyond its noise"
        return ""

    def bounds_in_words(self, found: solve.Optimum) -> tuple[str, ...]:
        return ("beta", "alpha_e >= 0", "alpha_d >= 0", "l_inf >= 0")


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
    return solve.fit(BivariateLawFit.blank(_NAMES, y, n_encoder=encoder, n_decoder=decoder))
