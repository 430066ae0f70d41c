"""The law in encoder and decoder parameters (Eq. 2) and its reduction (Eq. 3)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import curve_fit

from mnmt_repro.laws import fit_bivariate_law, fit_power_law

ENCODER, DECODER = (
    axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e8, 5), np.geomspace(2e6, 2e8, 5))
)
LOSS = 30 * ENCODER**-0.1 * DECODER**-0.2 + 1.2


def test_recovers_the_exact_law() -> None:
    fit = fit_bivariate_law(ENCODER, DECODER, LOSS)
    truth = {"beta": 30, "alpha_e": 0.1, "alpha_d": 0.2, "l_inf": 1.2}
    assert fit.params == pytest.approx(truth, rel=1e-6)
    assert fit.predict(1e9, 1e7) == pytest.approx([30 * 1e9**-0.1 * 1e7**-0.2 + 1.2])


def test_agrees_with_scipy_on_noisy_data() -> None:
    loss = LOSS * (1 + 0.003 * np.random.default_rng(0).standard_normal(25))
    fit = fit_bivariate_law(ENCODER, DECODER, loss)
    popt, pcov = curve_fit(
        lambda x, b, e, d, c: b * x[0] ** -e * x[1] ** -d + c,
        np.stack([ENCODER / 1e7, DECODER / 2e7]),
        loss,
        p0=[1, 0.2, 0.2, 1],
        xtol=1e-14,
        ftol=1e-14,
    )
    assert fit.values[1:] == pytest.approx(popt[1:], rel=1e-5)
    errors = np.sqrt(np.diag(pcov))[1:]
    assert list(fit.stderr.values())[1:] == pytest.approx(errors, rel=1e-3)
    spread = fit.draws("residual", draws=1000).values[:, 1].std()
    assert spread == pytest.approx(fit.stderr["alpha_e"], rel=0.15)


def test_proportional_scaling_is_the_power_law() -> None:
    """Along encoders of 30 % of all parameters, Eq. 3 fitted afresh equals the reduction."""
    fit = fit_bivariate_law(ENCODER, DECODER, LOSS)
    total = np.geomspace(1e6, 1e9, 8)
    line = fit_power_law(total, fit.predict(0.3 * total, 0.7 * total))
    beta, e, d, l_inf = fit.values
    assert fit.beta == beta and not hasattr(fit, "alpha")
    reduced = {"alpha": e + d, "l_inf": l_inf, "beta": beta * 0.3**-e * 0.7**-d}
    assert line.params == pytest.approx(reduced, rel=1e-5)


@pytest.mark.parametrize(
    ("encoder", "decoder", "loss", "word"),
    [
        (ENCODER, 2 * ENCODER, LOSS, "proportion"),
        (ENCODER[:3], DECODER[:3], LOSS[:3], "distinct"),
        (ENCODER, DECODER, np.full(25, 2.0), "flat"),
        (ENCODER, DECODER, 5 - LOSS, "rises"),
    ],
)
def test_degenerate_data_give_no_number(encoder, decoder, loss, word) -> None:
    fit = fit_bivariate_law(encoder, decoder, loss)
    assert not fit.identified and word in fit.reason and all(map(math.isnan, fit.values))


def test_a_side_that_does_not_matter_is_held_at_zero() -> None:
    rng = np.random.default_rng(5)
    loss = 30 * ENCODER**0.01 * DECODER**-0.3 + 1.2 + 0.001 * rng.standard_normal(25)
    fit = fit_bivariate_law(ENCODER, DECODER, loss)
    assert fit.active_bounds == ("alpha_e >= 0",) and math.isnan(fit.stderr["alpha_e"])
