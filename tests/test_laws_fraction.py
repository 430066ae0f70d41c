"""Eq. 11 with the fractions of Eq. 12 and Eq. 13."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law_grids import WEIGHTS, grid
from scipy.optimize import least_squares

from mnmt_repro.errors import InputError
from mnmt_repro.laws import effective_fraction, fit_fraction
from mnmt_repro.laws.fraction import FractionLaw, fraction_of


def eq12(c1: float, c2: float, c3: float):
    return lambda p: p + c1 * p**c2 * (1 - p) ** c3


def eq13(c1: float):
    return lambda p: c1 * (p - 1) + 1


@pytest.mark.parametrize("c", [(0.4, 0.5, 1.5), (1.5, 0.9, 0.6), (0.1, 0.3, 2.0), (-0.3, 1.2, 0.8)])
def test_recovers_equation_12(c: tuple[float, float, float]) -> None:
    fit = fit_fraction(grid(eq12(*c)))
    assert fit.values == pytest.approx((0.3, 1.1, 60, *c), rel=1e-4)
    p = np.array([0.02, 0.2, 0.6, 1.0])
    assert fraction_of(p, fit.values[3:]) == pytest.approx(eq12(*c)(p), rel=1e-5)
    assert fit.predict(p, 1e6) == pytest.approx(60 * (eq12(*c)(p) * 1e6) ** -0.3 + 1.1, rel=1e-6)


@pytest.mark.parametrize("c1", [0.3, 0.8, 0.95, -0.4])
def test_recovers_equation_13(c1: float) -> None:
    fit = fit_fraction(grid(eq13(c1)), form="eq13")
    assert fit.values == pytest.approx((0.3, 1.1, 60, c1), rel=1e-5)
    assert fit.active_bounds == ()


def test_equation_13_is_held_at_one() -> None:
    """f below p, which Eq. 13 cannot say: c1 stops at 1 and the result tells."""
    fit = fit_fraction(grid(lambda p: p**1.3), form="eq13")
    assert fit.params["c1"] == 1.0 and fit.active_bounds == ("c1 <= 1",)
    assert math.isnan(fit.stderr["c1"])


@pytest.mark.parametrize("form", ["eq12", "eq13"])
def test_agrees_with_scipy_on_noisy_data(form) -> None:
    frame = grid(eq12(0.4, 0.5, 1.5), noise=0.004)
    fit = fit_fraction(frame, form=form)
    p, x = frame.p.to_numpy(), frame.n_non_embedding.to_numpy() / 2e4
    function, start = (eq12, [0.5, 0.5, 1.0]) if form == "eq12" else (eq13, [0.8])

    def residual(t: np.ndarray) -> np.ndarray:
        return t[2] * (function(*t[3:])(p) * x) ** -t[0] + t[1] - frame.cross_entropy.to_numpy()

    oracle = least_squares(residual, [0.3, 1.0, 3.0, *start], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert fit.rss == pytest.approx(2 * oracle.cost, rel=1e-6)
    assert np.delete(fit.values, 2) == pytest.approx(np.delete(oracle.x, 2), rel=1e-3)
    k = len(oracle.x)
    covariance = np.linalg.inv(oracle.jac.T @ oracle.jac) * 2 * oracle.cost / (64 - k)
    assert fit.stderr["c1"] == pytest.approx(math.sqrt(covariance[3, 3]), rel=0.01)
    assert fit.stderr["alpha"] == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.01)


@pytest.mark.parametrize("held", [False, True])
def test_neutral_data_leave_the_shape_undetermined(held: bool, monkeypatch) -> None:
    """Rounding decides whether the fit stops at the seam of its boxes, c1 = 0, or beside it."""
    search = FractionLaw.search

    def stop(*problem):
        found = search(*problem)
        found.held[:, 3] = held
        return found

    monkeypatch.setattr(FractionLaw, "search", stop)
    fit = fit_fraction(grid(lambda p: p))
    assert fit.identified and fit.params["c1"] == 0.0
    assert fit.active_bounds == ("c2 undetermined, f(p) = p", "c3 undetermined, f(p) = p")
    assert math.isnan(fit.stderr["c2"])
    assert effective_fraction(fit).f.to_numpy() == pytest.approx(WEIGHTS, rel=1e-5)


def test_the_fraction_stays_positive_for_any_refit() -> None:
    fit = fit_fraction(grid(eq12(-0.6, 1.1, 0.5), noise=0.03))
    values = fit.draws("residual", draws=200).values
    assert (fraction_of(np.linspace(1e-3, 1, 200), values[:, 3:]) > 0).all()


def test_quality() -> None:
    frame = grid(eq12(0.4, 0.5, 1.5))
    frame["chrf"] = 60 - 8 * (frame["cross_entropy"] - 1.1)
    fit = fit_fraction(frame, loss="chrf", direction="max", ceiling=100)
    assert fit.values == pytest.approx((0.3, 60, 480, 0.4, 0.5, 1.5), rel=1e-4)
    assert fit.predict(0.1, 2e4) == pytest.approx(
        [frame[(frame.p == 0.1) & (frame.n_non_embedding == 2e4)].chrf.item()]
    )


def test_too_few_weights_give_no_number() -> None:
    frame = grid(eq12(0.4, 0.5, 1.5))
    few = frame[frame.p.isin([0.1, 0.5, 1.0])]
    fit = fit_fraction(few)
    assert not fit.identified and "2 weights below 1" in fit.reason
    assert fit_fraction(few, form="eq13").identified
    flat = fit_fraction(frame.assign(cross_entropy=2.0))
    assert not flat.identified and "flat" in flat.reason and all(map(math.isnan, flat.values))


def test_unusable_input_is_an_error() -> None:
    with pytest.raises(InputError, match="form"):
        fit_fraction(grid(eq13(0.8)), form="eq14")
    fit = fit_fraction(grid(eq13(0.8)), form="eq13")
    with pytest.raises(InputError, match="above zero"):
        fit.predict(0.0, 1e5)
    with pytest.raises(InputError, match="0, 1"):
        fit.predict(1.2, 1e5)
