"""The joint law over weights (Eq. 7) and the per-weight laws it replaces (Eq. 6)."""

from __future__ import annotations

import math
from functools import partial

import law_grids
import numpy as np
import pandas as pd
import pytest
from law_grids import ALPHA, BETA, L_INF, SIZES, WEIGHTS
from scipy.optimize import least_squares

from mnmt_repro.errors import InputError
from mnmt_repro.laws import fit_joint_law, fit_per_weight_laws


def beta_of(p: float) -> float:
    return BETA * p**-0.25


grid = partial(law_grids.grid, lambda p: p ** (0.25 / ALPHA))


def test_recovers_ten_parameters_exactly() -> None:
    fit = fit_joint_law(grid())
    assert len(fit.names) == 10
    assert (fit.alpha, fit.l_inf) == pytest.approx((ALPHA, L_INF), rel=1e-7)
    assert fit.law.p == WEIGHTS
    assert list(fit.beta.values()) == pytest.approx([beta_of(p) for p in WEIGHTS], rel=1e-6)
    assert fit.params["beta[0.05]"] == fit.beta[0.05]
    assert fit.r2 > 1 - 1e-10
    assert fit.predict(0.5, [1e6]) == pytest.approx([beta_of(0.5) * 1e6**-ALPHA + L_INF])


def test_weights_that_differ_by_rounding_are_one() -> None:
    frame = grid(noise=0.005)
    odd = frame.assign(p=[1 - 0.9 if p == 0.1 and i % 2 else p for i, p in enumerate(frame["p"])])
    assert odd["p"].nunique() == 9
    fit = fit_joint_law(odd)
    assert fit.law.p == WEIGHTS and (fit.values == fit_joint_law(frame).values).all()
    assert fit.predict(1 - 0.9, 1e4) == fit.predict(0.1, 1e4)
    assert list(fit_per_weight_laws(odd)) == list(WEIGHTS)


def test_agrees_with_scipy_on_noisy_data() -> None:
    frame = grid(noise=0.005)
    fit = fit_joint_law(frame)
    group = pd.Categorical(frame["p"]).codes
    x, y = frame["n_non_embedding"] / 2e4, frame["cross_entropy"].to_numpy()

    def residual(theta: np.ndarray) -> np.ndarray:
        return theta[2:][group] * x.to_numpy() ** -theta[0] + theta[1] - y

    oracle = least_squares(residual, [0.5, 0.5, *np.ones(8)], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert (fit.alpha, fit.l_inf) == pytest.approx(oracle.x[:2], rel=1e-6)
    assert np.array(fit.values[2:]) * 2e4**-fit.alpha == pytest.approx(oracle.x[2:], rel=1e-6)
    covariance = np.linalg.inv(oracle.jac.T @ oracle.jac) * 2 * oracle.cost / (64 - 10)
    errors = np.sqrt(np.diag(covariance))
    assert (fit.stderr["alpha"], fit.stderr["l_inf"]) == pytest.approx(errors[:2], rel=1e-4)


def test_relative_errors_are_least_squares_of_shares() -> None:
    frame = grid(noise=0.02, seed=1)
    fit = fit_joint_law(frame, errors="relative")
    p, n, loss = (frame[c].to_numpy() for c in ("p", "n_non_embedding", "cross_entropy"))
    group = np.unique(p, return_inverse=True)[1]

    def share(theta):
        return (theta[1] + theta[2 + group] * n ** -theta[0]) / loss - 1

    start = np.array(fit.values) * 1.1
    oracle = least_squares(share, start, x_scale="jac", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(fit.values, oracle.x, rtol=1e-4)
    assert fit.values != pytest.approx(fit_joint_law(frame).values)
    with pytest.raises(InputError, match='errors: .percent.; use "absolute" or "relative"'):
        fit_joint_law(frame, errors="percent")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one is 0, of which no error is a share"):
        fit_joint_law(frame.assign(cross_entropy=0.0), direction="max", errors="relative")


def test_zero_shot_rows_are_left_out_and_counted() -> None:
    frame = grid(noise=0.01)
    zero = frame[frame.p == 0.05].assign(p=0.0, cross_entropy=9.0)
    fit = fit_joint_law(pd.concat([frame, zero]))
    assert fit.left_out == 8 and (fit.values == fit_joint_law(frame).values).all()
    assert 0.0 not in fit_per_weight_laws(pd.concat([frame, zero]))


def test_a_group_against_the_trend_is_held_at_zero_and_said() -> None:
    frame = grid(noise=0.001)
    frame.loc[frame.p == 1.0, "cross_entropy"] = np.linspace(0.9, 0.95, 8)
    fit = fit_joint_law(frame)
    assert "beta[1] >= 0" in fit.active_bounds and fit.beta[1.0] == 0.0
    assert math.isnan(fit.stderr["beta[1]"])


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (lambda f: f[f.n_non_embedding == SIZES[0]], "distinct"),
        (lambda f: f.groupby("p").head(1).assign(n_non_embedding=SIZES), "distinct"),
        (lambda f: f.assign(cross_entropy=2.0), "flat"),
        (lambda f: f.assign(cross_entropy=20 - f.cross_entropy), "rises"),
    ],
)
def test_degenerate_grids_give_no_number(rows, word) -> None:
    fit = fit_joint_law(rows(grid()))
    assert not fit.identified and word in fit.reason and all(map(math.isnan, fit.values))


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (lambda f: f.drop(columns="p"), "columns missing: .*name its own as n=... and loss=..."),
        (lambda f: f.head(0), "no rows"),
        (lambda f: f.to_dict(), "give a pandas DataFrame, not a dict"),
        (lambda f: f.assign(p=f.p * 2), "p: row"),
        (lambda f: f.assign(p=0.0), "zero-shot"),
        (lambda f: f.assign(pair=["eng-deu", "eng-zho"] * 32), "pair"),
        (lambda f: f.assign(cross_entropy=math.nan), "cross_entropy: row 0"),
    ],
)
def test_unusable_frames_are_errors(rows, word) -> None:
    with pytest.raises(InputError, match=word):
        fit_joint_law(rows(grid()))


def test_a_prediction_says_which_values_it_needs() -> None:
    for wrong in (grid(),), (0.5, 1000.0, 1):
        with pytest.raises(InputError, match="give values of p, n, in this order"):
            fit_joint_law(grid()).predict(*wrong)


def test_a_weight_that_was_not_fitted_is_an_error() -> None:
    with pytest.raises(InputError, match="0.4 was not fitted"):
        fit_joint_law(grid()).predict(0.4, 1e5)


def test_a_weight_without_any_fall_with_size_is_named() -> None:
    """A loss that is ten times too small at the smallest size leaves its weight a constant."""
    frame = pd.DataFrame([(p, n) for p in (0.3, 0.6, 1.0) for n in SIZES], columns=["p", "n"])
    frame["loss"] = 60 * (frame["p"] ** 0.5 * frame["n"]) ** -0.3 + 1
    frame.loc[0, "loss"] /= 10
    (doubt,) = fit_joint_law(frame, n="n", loss="loss").fraction_doubts()
    assert doubt == "by beta[0.3] >= 0, no loss at this weight falls with size; check its rows"
