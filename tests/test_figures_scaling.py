"""Frames behind the figures of loss against size and of capacity, on rows whose law is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.errors import InputError
from mnmt_repro.laws import fit_joint_law, leave_one_size_out
from mnmt_repro.papers.claims import load_claims
from mnmt_repro.papers.effects import fractions, prediction, quality, scaling
from mnmt_repro.papers.effects.cells import cells_of
from mnmt_repro.repository import ROOT

ALPHA, BETA, LIMIT = 0.3, 20.0, 1.5


def exact(**options) -> pd.DataFrame:
    return scaling.observed(rows("some-cohort", noise=0.0, **options))


def test_observed_averages_seeds_and_leaves_out_zero_shot():
    frame = pd.DataFrame(
        {
            "cohort": "c",
            "test_set": "indomain",
            "domain": "all",
            "pair": "eng-deu",
            "p": [0.5, 0.5, 0.0],
            "n_non_embedding": [100, 100, 100],
            "cross_entropy": [2.0, 8.0, 9.0],
        }
    )
    points = scaling.observed(frame)
    assert points[["p", "n", "seeds"]].to_numpy().tolist() == [[0.5, 100, 2]]
    assert points["loss"].item() == pytest.approx(4.0)  # the geometric mean


@pytest.mark.parametrize("column", ["cohort", "test_set", "domain"])
def test_observed_refuses_a_mixture_of_settings(column):
    mixed = rows("some-cohort")
    mixed.loc[mixed.index[0], column] = "other"
    with pytest.raises(InputError, match=column):
        scaling.observed(mixed)


def test_curves_pass_through_exact_points():
    points = exact()
    fits = scaling.fit_pairs(points)
    for curves in (scaling.per_weight_curves(points, fits), scaling.joint_curves(points, fits)):
        ends = curves[np.isclose(curves["n"], points["n"].min())]
        for row in ends.itertuples():
            assert row.loss == pytest.approx(loss_of(row.p, row.n), rel=1e-6)
        assert set(curves["p"]) == set(points["p"])


def test_coefficient_table_has_the_truth_and_the_joint_law():
    table = scaling.coefficient_table(scaling.fit_pairs(exact()))
    alpha = table[table["parameter"] == "alpha"]
    np.testing.assert_allclose(alpha["value"], ALPHA, rtol=1e-4)
    np.testing.assert_allclose(alpha["joint"], ALPHA, rtol=1e-4)
    beta = table[table["parameter"] == "beta"]
    np.testing.assert_allclose(beta["joint"], BETA * beta["p"] ** -ALPHA, rtol=1e-3)
    assert (table["std"] > 0).all()


def test_the_held_out_error_is_relative_and_that_of_claim_a6():
    points = scaling.observed(
        rows("c", noise=0.01, pairs=("eng-deu",), weights=(0.1, 0.5, 1), sizes=SIZES[::2])
    )
    quality = scaling.fit_quality(points, scaling.fit_pairs(points))
    out = points[points["n"] == points["n"].min()]
    law = fit_joint_law(points.drop(out.index), n="n", loss="loss")
    by_hand = [law.predict(p, n)[0] / y - 1 for p, n, y in out[["p", "n", "loss"]].to_numpy()]
    held = leave_one_size_out(points, "joint", n="n", loss="loss")
    rest = (held["error"] / held["loss"])[held["n"] > held["n"].min()]
    whole = np.sqrt(np.mean(np.square([*by_hand, *rest])))
    assert quality[scaling.HELD_OUT].iloc[1] == pytest.approx(whole)


def test_observed_frontier_joins_the_two_losses_of_a_run():
    seen = fractions.observed_frontier(exact())
    for row in seen.itertuples():
        assert row[3] == pytest.approx(loss_of(row.p, row.n))
        assert row[4] == pytest.approx(loss_of(1 - row.p, row.n))
    assert 1.0 not in set(seen["p"])  # the other pair has no loss there


def test_lines_between_neighbours_predict_a_power_of_weight_and_size_exactly():
    """Losses that are straight lines in the logs, also beyond the last size; other losses not."""
    cells = pd.DataFrame(
        [(p, n) for p in (0.05, 0.1, 0.3, 0.5, 0.9, 1.0) for n in SIZES], columns=["p", "n"]
    )
    cells["loss"] = 3 * cells["p"] ** -0.1 * cells["n"] ** -0.2
    unseen = prediction.held_out(cells)
    assert unseen.sum() == 3 * len(SIZES) + 3 * 2
    plain = prediction.interpolate_unseen(cells, unseen)
    np.testing.assert_allclose(plain.relative, 0, atol=1e-12)
    one = pd.DataFrame({"p": [0.1, 0.4], "n": [100, 100], "loss": [4.0, 1.0]})
    held = pd.DataFrame({"p": [0.2], "n": [100]})
    shares = prediction.neighbours_seen(one, held)  # half-way between a tenth and four tenths
    np.testing.assert_allclose(shares, [[0.5, 0.5]])
    assert np.exp(shares @ np.log(one["loss"]))[0] == pytest.approx(2)


def test_a_true_law_contains_runs_in_its_interval_and_not_in_the_band_of_its_curve():
    points = scaling.observed(rows("c", noise=0.02, pairs=("eng-deu",)))
    law = prediction.fit_eq11(points, errors="relative")
    band, run = prediction.in_own_intervals([law], points).mean(axis=1)
    assert band < 0.7 and run > 0.9
    far = points.assign(loss=2 * points["loss"])
    assert prediction.in_own_intervals([law], far).sum() == 0
    unknown = prediction.fit_eq11(points[points["p"] == 1])
    assert np.isnan(prediction.in_own_intervals([law, unknown], points)).all()


def test_predictors_are_compared_on_the_same_runs():
    cells = cells_of(rows("c", noise=0.02, pairs=("eng-deu",), seed=1))
    again = cells_of(
        pd.concat(
            [rows("c", noise=0.02, pairs=("eng-deu",), seed=k).assign(seed=k) for k in (1, 2)]
        )
    )
    of = {"n_non_embedding": "n", "cross_entropy": "loss"}
    table = prediction.predictors(again.rename(columns=of), "relative", draws=50)
    table = table.set_index("predictor")
    assert list(table.index) == ["Eq. 12", "Eq. 13", "plain interpolation", "nearest run"]
    assert table.loc["Eq. 12", "error"] < table.loc["nearest run", "error"]
    assert (table["low"] < table["error"]).all() and (table["error"] < table["high"]).all()
    shares = table[["in its band", "in its interval"]]
    assert (shares.loc["Eq. 12"].diff().dropna() >= 0).all() and shares.isna().sum().sum() == 4
    alone = prediction.predictors(cells.rename(columns=of), "relative", draws=50)
    assert alone["low"].isna().all()  # one seed has no noise


def test_pages_hold_out_what_the_claims_hold_out():
    options = {claim.id: claim.options for claim in load_claims(ROOT / "data" / "claims")}
    pages = {
        "A14": (prediction.UNSEEN_WEIGHTS, prediction.LARGEST_SIZES),
        "A15": (prediction.UNSEEN_WEIGHTS, prediction.LARGEST_SIZES),
        "A17": ((quality.HELD_OUT_WEIGHT,), 1),
    }
    for claim, (weights, sizes) in pages.items():
        assert tuple(options[claim]["held_out_weights"]) == weights
        assert options[claim]["held_out_largest_sizes"] == sizes
