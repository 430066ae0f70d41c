"""Perturbation and residual bootstraps, and the batched fits behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law_grids import SIZES

from mnmt_repro.errors import InputError
from mnmt_repro.laws import PowerLawFit, fit_power_law
from mnmt_repro.laws.uncertainty import perturbed

TRUTH = 60 * SIZES**-0.3 + 1.1


def test_perturbation_is_the_papers_noise() -> None:
    fit = fit_power_law(SIZES, TRUTH)
    relative = perturbed(TRUTH, 20_000, 0) / TRUTH - 1
    assert relative.std() == pytest.approx(0.01, rel=0.01)
    assert relative.mean() == pytest.approx(0, abs=1e-4)
    small = fit.draws("perturbation", draws=4000, seed=3)
    again = fit.draws("perturbation", draws=4000, seed=3)
    assert small.equals(again)
    with pytest.raises(InputError, match="method"):
        fit.draws("guess")


def curve(l_inf: float, seed: int = 0, scale: float = 0.02) -> PowerLawFit:
    """Eight sizes on a curve with noise in proportion to the loss."""
    n = np.geomspace(1e3, 1e5, 8)
    noise = np.random.default_rng(seed).standard_normal(8)
    return fit_power_law(n, (20 * n**-0.25 + l_inf) * (1 + scale * noise))


def test_a_bound_changes_how_intervals_are_made() -> None:
    free, bound = curve(2.0), next(f for f in map(curve, [0.0] * 20, range(20)) if f.held)
    assert (free.method, bound.method) == ("t", "residual")
    wide = bound.interval()
    drawn = bound.draws("residual", draws=1_000).quantile([0.025, 0.975])
    assert wide["alpha"] == pytest.approx(tuple(drawn["alpha"]))
    # Standard errors take the bound for known, so that their interval is too narrow.
    narrow = 2 * bound.t_quantile * bound.stderr["alpha"]
    assert np.diff(wide["alpha"]) > 1.3 * narrow
    assert math.isnan(bound.stderr["l_inf"]) and wide["l_inf"][1] > 0
    assert "refits to resampled residuals" in bound._repr_html_()


def test_exponents_and_factors_have_positive_limits() -> None:
    fit = curve(2.0, scale=0.06)
    t = fit.t_quantile
    assert fit.params["beta"] < t * fit.stderr["beta"]  # else this test shows nothing
    for name in ("alpha", "beta"):
        low, high = fit.interval()[name]
        assert 0 < low < fit.params[name] < high
        assert low * high == pytest.approx(fit.params[name] ** 2)
