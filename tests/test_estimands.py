"""Estimands of Paper A on rows with known truth: values, and intervals that hold the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares
from synthetic import SIZES, WEIGHTS, loss_of, rows, seeds

from mnmt_repro.laws import fit_joint_law
from mnmt_repro.laws.trend import Coefficient
from mnmt_repro.papers.effects import fractions as fraction
from mnmt_repro.papers.effects import prediction
from mnmt_repro.papers.effects import scaling as law
from mnmt_repro.papers.effects.cells import cells_of
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    Measure,
    NoRowsYet,
    NotIdentified,
    OutOfRegime,
    centred,
    centred_r2,
    drawn,
    measured,
)
from mnmt_repro.papers.effects.scaling import fit_drift
from mnmt_repro.papers.effects.three_pairs import three_pairs_from_two

OUT, OTHER, INTO = "webtech-en-dezh", "webtech-en-defr", "webtech-dezh-en"
GERMAN, FRENCH, ENGLISH = ("eng-deu",), ("eng-deu", "eng-fra"), ("deu-eng", "zho-eng")
NEEDS = {"sizes": 4, "weights": 3, "span": 8}
Loss = Callable[[float, float], float]
MANY: dict[str, Any] = {"weights": list(WEIGHTS[:-1])}


def units(
    estimand: Callable[..., Units],
    *frames: pd.DataFrame,
    cohorts: tuple[str, ...] = (OUT,),
    tier: str = "mini",
    other: str = "",
    **options: Any,
) -> Units:
    """What an estimand finds, whatever the claims files say."""
    setting = Setting(
        name="synthetic",
        kind="real text",
        tier=tier,
        cohorts=cohorts,
        other_test_set=other,
        options={"needs": NEEDS, "pairs": "all"} | options,
    )
    return estimand(Evidence(frame=pd.concat(frames, ignore_index=True)), setting)


def holds(measure: Measure, truth: float) -> bool:
    return measure.low < truth < measure.high


def width(measure: Measure) -> float:
    return measure.high - measure.low


def with_fraction(of: Callable[[float], float]) -> Loss:
    return partial(loss_of, fraction=of)


def drifting(p: float, n: float, *, alpha: float = 0.0, l_inf: float = 0.0) -> float:
    """A law whose exponent (relatively) or constant moves from p = 1 to p = 0.05."""
    u = (1 - p) / 0.95
    centre = math.sqrt(SIZES[0] * SIZES[-1])
    reducible = 1.2 * p**-0.3 * (n / centre) ** -(0.3 * (1 + alpha * u))
    return reducible + 1.5 + l_inf * u


# ------------------------------------------------------------------ the draws


def test_drawn_cells_have_the_deviation_of_means_of_seeds() -> None:
    pairs = [f"eng-x{k:02}" for k in range(24)]
    for count in (2, 3):
        cells = cells_of(seeds(OUT, pairs, noise=0.02, count=count))
        noise = np.log(drawn(cells, draws=300))
        sd = math.sqrt(noise[1:].var(0).mean())
        assert sd == pytest.approx(0.02 / math.sqrt(count), rel=0.03)
        assert np.allclose(noise[0], np.log(cells["cross_entropy"]))


def test_without_seeds_there_is_no_interval() -> None:
    found = units(law.factor_rises, rows(OUT))["eng-deu"]["log_ratio"]
    assert found.value > 0 and math.isnan(found.low) and math.isnan(found.high)
    # Seeds of one cell are enough for sizes near its own only.
    again = rows(OUT, seed=1, sizes=SIZES[:1])
    found = units(law.factor_rises, rows(OUT), again)["eng-deu"]["log_ratio"]
    assert math.isnan(found.low)
    # A contrast needs seeds on both sides.
    how = {"cohorts": (OUT, OTHER), "between": "cohort", "pairs": "common"} | MANY
    for frame in (rows(OUT), seeds(OUT)):
        found = units(fraction.fraction_contrast, frame, rows(OTHER), **how)["eng-deu"]
        assert math.isnan(found["mean_log_ratio"].low) and found["mean_log_ratio"].value < 1


def test_draws_that_cannot_be_fitted_are_few_or_there_is_no_number() -> None:
    values = np.append(1.0, np.linspace(0, 2, 100))
    values[1:6] = np.nan
    assert measured(values).value == 1 and measured(values).high > 1.9
    values[1:20] = np.nan
    with pytest.raises(NotIdentified, match="more than a tenth"):
        measured(values)


def test_a_size_of_errors_is_the_middle_of_its_draws() -> None:
    values = np.append(0.1, np.geomspace(0.1, 0.4, 101))
    found = centred(values)
    assert found.low * found.high == pytest.approx(0.1**2, rel=1e-3)
    r2 = centred_r2(1 - values)
    assert (r2.value, r2.low, r2.high) == pytest.approx((0.9, 1 - found.high, 1 - found.low))


def test_an_interval_holds_its_truth_19_times_in_20() -> None:
    """200 tables with three seeds and 2 % of noise; log beta(0.05) / beta(1) is 0.3 log 20."""
    held = []
    for k in range(200):
        frame = seeds(OUT, weights=(0.05, 0.3, 1.0), sizes=SIZES[::2], noise=0.02, first=3 * k)
        cells = cells_of(frame)
        mine = cells[cells["pair"] == "eng-deu"].reset_index(drop=True)
        fit = fit_joint_law(mine, errors="relative")
        values = fit.refit(drawn(mine, draws=300))
        held.append(holds(measured(np.log(values[:, 2] / values[:, 4])), 0.3 * math.log(20)))
    assert 0.90 <= np.mean(held) <= 0.98


def test_rows_of_another_tier_test_set_or_domain_are_not_read() -> None:
    good = seeds(OUT)
    wild = partial(loss_of, alpha=0.05, l_inf=0.0)
    others = [
        rows(OUT, loss=wild).assign(tier="smoke"),
        rows(OUT, loss=wild, test_set="newstest21"),
        rows(OUT, loss=wild).assign(domain="tatoeba"),
        rows(OTHER, loss=wild),
        rows(OUT, loss=lambda p, n: 9.0, weights=(0.0,)),
    ]
    assert units(law.factor_rises, good, *others) == units(law.factor_rises, good)


def test_a_grid_is_of_the_cells_in_regime() -> None:
    frame = seeds(OUT, GERMAN)  # at p = 0.05 of 100 tokens per parameter and less
    every = units(law.factor_rises, frame)["eng-deu"]["log_ratio"]
    # The others are off, and out of it.
    poor = frame["pair_target_tokens"] / frame["n_non_embedding"] < 9
    off = frame.assign(cross_entropy=frame["cross_entropy"] * np.where(poor, 1.5, 1.0))
    found = units(law.factor_rises, off, least_own_tokens=9)["eng-deu"]["log_ratio"]
    assert found.value == pytest.approx(every.value, abs=0.05)
    with pytest.raises(OutOfRegime, match="too little text"):
        units(law.factor_rises, frame, least_own_tokens=80)
    with pytest.raises(OutOfRegime, match="no cell in regime"):
        units(law.factor_rises, frame, least_own_tokens=1e5)


# ------------------------------------------------------------------ A2 to A7


def test_a2_fit_of_each_weight() -> None:
    good = units(law.per_weight_fit, seeds(OUT))["eng-deu"]["r2_min"]
    assert 0.99 < good.low < good.value < good.high
    assert units(law.per_weight_fit, seeds(OUT, noise=0.08))["eng-deu"]["r2_min"].value < 0.95


@pytest.mark.parametrize(("alpha", "l_inf"), [(0.0, 0.0), (-0.4, 0.0), (0.0, 0.8)])
def test_a4_shift_and_spread(alpha: float, l_inf: float) -> None:
    frame = seeds(OUT, GERMAN, loss=partial(drifting, alpha=alpha, l_inf=l_inf), first=20)
    found = units(law.irreducible_loss_unchanged, frame, perturbation=0.01)["eng-deu"]
    if not l_inf:
        assert (found["spread_of_alpha"].value > 2) == (alpha != 0)
    if not alpha:
        assert holds(found["shift"], l_inf / drifting(1.0, SIZES[0]))


@pytest.mark.parametrize("coefficient", ["alpha", "l_inf"])
def test_the_drift_fit_is_the_least_squares_optimum(coefficient: Coefficient) -> None:
    frame = rows(OUT, GERMAN, loss=partial(drifting, alpha=0.2, l_inf=0.1), noise=0.01)
    fit = fit_joint_law(frame)
    model, values = fit_drift(fit, coefficient)
    oracle = least_squares(
        lambda theta: model.evaluate(theta[None])[0][0] - fit.loss,
        model.start,
        x_scale="jac",
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    np.testing.assert_allclose(values, oracle.x, rtol=1e-4, atol=1e-6)


def test_a5_order_of_the_multipliers() -> None:
    rising = units(law.factor_rises, seeds(OUT))["eng-deu"]
    assert holds(rising["log_ratio"], 0.3 * math.log(20))  # beta(0.05) / beta(1) = 0.05 ** -alpha
    assert rising["kendall_tau"].value == pytest.approx(-1)
    reverse = seeds(OUT, loss=lambda p, n: loss_of(1.05 - p, n))
    assert units(law.factor_rises, reverse)["eng-deu"]["kendall_tau"].value == pytest.approx(1)


def test_a6_joint_against_separate_laws() -> None:
    few = {"sizes": SIZES[::2], "weights": WEIGHTS[::2] + WEIGHTS[-1:]}
    same = units(law.joint_law_suffices, seeds(OUT, GERMAN, **few))["eng-deu"]
    assert same["error_ratio"].high < 1.5 and same["r2_joint"].low > 0.999
    broken = seeds(OUT, GERMAN, loss=partial(drifting, alpha=0.8), noise=0.001, **few)
    assert units(law.joint_law_suffices, broken)["eng-deu"]["error_ratio"].low > 1.5


# ------------------------------------------------------------------ A8 to A13, A21


def news(first: int, noise: float = 0.01, of: Callable[[float], float] = float) -> pd.DataFrame:
    loss = partial(loss_of, fraction=of, beta=30.0, alpha=0.25, l_inf=2.0)
    return seeds(OUT, GERMAN, loss=loss, test_set="newstest21", noise=noise, first=first)


def test_a8_two_test_sets_share_the_noise_of_their_runs() -> None:
    def contrast(out: pd.DataFrame) -> Measure:
        frames = (seeds(OUT, GERMAN, noise=0.01), out)
        found = units(
            fraction.fraction_contrast, *frames, other="newstest21", between="test_set", **MANY
        )
        return found["eng-deu"]["mean_log_ratio"]

    together, apart = contrast(news(0)), contrast(news(50))
    assert holds(together, 0.0) and holds(apart, 0.0)
    assert width(together) < 0.6 * width(apart)
    assert holds(contrast(news(0, of=lambda p: p**0.5)), -0.5 * np.mean(np.log(WEIGHTS[:-1])))
    with pytest.raises(NoRowsYet):
        contrast(rows(OTHER))


def test_a9_single_pairs_that_both_cohorts_read_have_one_noise() -> None:
    one = seeds(OUT, GERMAN, noise=0.02)
    helped = with_fraction(lambda p: p**0.8)
    mixed = seeds(OTHER, GERMAN, noise=0.02, first=9, weights=WEIGHTS[:-1], loss=helped)
    alone = one[one["p"] == 1].assign(cohort=OTHER)
    elsewhere = rows(OTHER, ("eng-fra",))

    def contrast(alone: pd.DataFrame) -> Measure:
        found = units(
            fraction.fraction_contrast,
            *(one, mixed, alone, elsewhere),
            cohorts=(OUT, OTHER),
            **MANY | {"between": "cohort", "pairs": "common"},
        )
        assert list(found) == ["eng-deu"]
        return found["eng-deu"]["mean_log_ratio"]

    same = contrast(alone)
    assert holds(same, -0.2 * np.mean(np.log(WEIGHTS[:-1])))
    assert width(same) < 0.8 * width(contrast(alone.assign(run_id="other-" + alone["run_id"])))


def test_a10_direction() -> None:
    into = seeds(INTO, ENGLISH, loss=with_fraction(lambda p: p**0.6), first=9)
    four = [0.05, 0.1, 0.3, 0.5]
    found = units(
        fraction.fraction_contrast,
        *(seeds(OUT), into),
        cohorts=(OUT, INTO),
        weights=four,
        between="cohort",
        pairs="reverse",
    )
    assert set(found) == {"deu-eng against eng-deu", "zho-eng against eng-zho"}
    for each in found.values():
        assert holds(each["mean_log_ratio"], -0.4 * np.mean(np.log(four)))


SIMILAR = ("conlang-sim0", "conlang-sim025", "conlang-sim05", "conlang-sim075", "conlang-sim1")
CONLANG = ("src-aaa", "src-bbb")
FIVE = tuple(SIZES[i] for i in (0, 1, 2, 4, 6))


@pytest.mark.parametrize("tilt", [0.0, 0.6])
def test_a21_fraction_against_similarity(tilt: float) -> None:
    """f = p times exp(tilt times similarity), but for the single pair."""
    frames = []
    for k, cohort in enumerate(SIMILAR):
        factor = math.exp(tilt * k / 4)
        loss = with_fraction(lambda p, factor=factor: p if p == 1 else factor * p)
        some = {} if k in (0, 4) else {"weights": (0.1, 0.5, 0.9, 1.0), "sizes": FIVE}
        frames.append(seeds(cohort, CONLANG, loss=loss, first=9 * k, **some))
    found = units(fraction.fraction_trend, *frames, cohorts=SIMILAR, weights=[0.1, 0.5, 0.9])
    assert holds(found["src-aaa"]["slope"], tilt)
    assert found["src-aaa"]["cells"].value == 4 * 5  # those that all have
    assert found["src-aaa"]["spread"].value == pytest.approx(tilt, abs=0.1)


# ------------------------------------------------------------------ A14 to A20


def eq12(p: float) -> float:
    return p + 0.4 * p**0.6 * (1 - p) ** 1.2


def test_a14_a15_weights_and_sizes_left_out() -> None:
    left = {"held_out_weights": [0.1, 0.5, 0.9], "held_out_largest_sizes": 2}

    def error(of: Callable[[float], float]) -> dict[str, Measure]:
        frame = seeds(OUT, GERMAN, loss=with_fraction(of))
        return units(prediction.held_out_prediction, frame, form="eq12", **left)["eng-deu"]

    good = error(eq12)
    assert good["error"].low < good["error"].value < good["error"].high < 0.01
    assert good["error_over_naive"].high < 0.1 and good["r2"].low > 0.99
    # Weights that follow no smooth curve cannot be predicted from the others.
    assert error(lambda p: 0.1 if p in (0.1, 0.5) else p)["error"].low > 0.02

    def forms(of: Callable[[float], float]) -> Measure:
        frame = seeds(OUT, GERMAN, loss=with_fraction(of))
        forms = ["eq13", "eq12"]
        found = units(prediction.held_out_forms, frame, forms=forms, **left)
        return found["eng-deu"]["error_ratio"]

    assert forms(lambda p: 1 + 0.9 * (p - 1)).low < 1.2
    assert forms(lambda p: p**2.5).low > 1.5


def test_a20_three_pairs_from_two() -> None:
    two = seeds("conlang-sim0", CONLANG, loss=with_fraction(eq12))

    def three(of: Callable[[float], float], mixture: str = "one") -> pd.DataFrame:
        some = {"weights": (0.1, 0.25, 0.5), "sizes": FIVE, "first": 9}
        pairs = (*CONLANG, "src-ccc")
        frame = seeds("conlang-three", pairs, loss=with_fraction(of), **some)
        return frame.assign(mixture=mixture)

    def predicted(*frames: pd.DataFrame) -> dict[str, Measure]:
        return units(
            three_pairs_from_two,
            *(two, *frames),
            cohorts=("conlang-sim0", "conlang-three"),
            form="eq12",
            alike=True,  # so that a pair that no model of two has seen is predicted, too
            needs_predicted={"sizes": 4, "mixtures": 3},
        )["all"]

    good = predicted(three(eq12))
    assert good["error"].high < 0.01 and holds(good["bias"], 0.0) and good["r2"].low > 0.99
    # One weight in two mixtures: two cells, not the mean of two seeds.
    twice = three(eq12, "another")
    twice["cross_entropy"] *= 1.2
    assert predicted(three(eq12), twice)["error"].value > 0.1
    assert predicted(three(lambda p: 0.3 * p))["bias"].low > 0  # worse than predicted
    with pytest.raises(NoRowsYet):
        predicted()
