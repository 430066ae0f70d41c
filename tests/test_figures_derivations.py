"""The algebra of Appendix D, of doubling, and of the two kinds of scalarization."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sympy as sp
from synthetic import loss_of, rows

from mnmt_repro.papers.effects import derivations, fractions, scaling
from mnmt_repro.papers.effects.derivations import ALPHA, BETA_1, BETA_P, L_INF, N

NUMBERS = {BETA_1: 3.0, BETA_P: 7.0, ALPHA: 0.3, N: 1e4, L_INF: 1.5}
PAIRS = ("eng-deu", "eng-zho")


def points(loss=loss_of, noise=0.0, pairs=PAIRS) -> pd.DataFrame:
    return scaling.observed(rows("some-cohort", pairs, loss=loss, noise=noise))


# --- Appendix D --------------------------------------------------------------------------------


def test_every_line_of_appendix_d_is_the_same_number() -> None:
    """An oracle without algebra: put numbers in."""
    steps = derivations.effective_size_steps()
    assert len(steps) == 5 and all(step.follows for step in steps)
    for step in steps:
        assert float(step.expression.subs(NUMBERS)) == pytest.approx(7.0 * 1e4**-0.3 + 1.5)


def test_its_last_line_as_printed_is_another() -> None:
    step = derivations.appendix_d_last_line()
    assert not step.follows
    n_eff = (3.0 / 7.0) ** (1 / 0.3) * 1e4
    printed = float(step.expression.subs(NUMBERS))
    assert printed == pytest.approx(7.0 * n_eff**-0.3 + 1.5)
    assert printed != pytest.approx(7.0 * 1e4**-0.3 + 1.5, rel=0.01)


def test_what_equations_10_to_13_need_holds() -> None:
    table = derivations.fraction_checks()
    assert len(table) == 10 and table["holds"].all()


# --- doubling ----------------------------------------------------------------------------------


def test_doubling_takes_a_share_of_the_reducible_loss_only() -> None:
    whole = derivations.doubling_of_the_whole()
    assert not whole.follows
    assert sp.simplify(whole.expression.subs(L_INF, 0) - 2**-ALPHA) == 0


def test_doubling_by_weight_assumes_no_law_in_common() -> None:
    frame = points(lambda p, n: 1.5 + 20.0 * n ** -(0.3 if p > 0.5 else 0.2))
    table = derivations.doubling_by_weight(frame, dict.fromkeys(PAIRS, 1.5))
    small = table[table["p"] <= 0.5]
    np.testing.assert_allclose(small["factor"], 2**-0.2, rtol=1e-6)
    np.testing.assert_allclose(table[table["p"] > 0.5]["factor"], 2**-0.3, rtol=1e-6)
    # All weights have the same sizes: the common slope is the mean, four and four of them.
    np.testing.assert_allclose(table["common"], 2**-0.25, rtol=1e-6)
    outside = (table["low"] > table["common"]) | (table["high"] < table["common"])
    assert outside.all()
    too_high = derivations.doubling_by_weight(frame, dict.fromkeys(PAIRS, 9.0))
    assert too_high.empty  # losses below L∞ have no logarithm


def test_the_limit_is_exact_where_it_is_known() -> None:
    pairs = ("src-aaa", "src-bbb")
    fits = scaling.fit_pairs(points(pairs=pairs))
    q = 0.2  # six words of two syllables and an end, each word in one of two spellings
    choice = -(q * np.log(q) + (1 - q) * np.log(1 - q))
    known = derivations.known_limits("conlang-sim0", fits)
    assert known == pytest.approx(dict.fromkeys(pairs, 6 * choice / 13))
    assert derivations.known_limits("conlang-steady", fits).keys() == known.keys()  # of any tier
    fitted = derivations.known_limits("webtech-en-dezh", scaling.fit_pairs(points()))
    assert fitted == pytest.approx(dict.fromkeys(PAIRS, 1.5), rel=1e-3)


# --- scalarization -----------------------------------------------------------------------------


def test_sampling_has_the_gradient_of_weights_times_lengths() -> None:
    found = derivations.compare_counting()
    assert found.implicit == found.explicit
    # By hand: German 16 over 6 tokens of 2 sentences, Chinese -6 over 7 tokens of 3.
    # (1/4 * 8 - 3/4 * 2) / (1/4 * 3 + 3/4 * 7/3) = 1/2 / (5/2)
    assert found.implicit == Fraction(1, 5)
    assert found.naive == Fraction(8, 3) / 4 - Fraction(6, 7) * 3 / 4
    assert found.naive != found.implicit


def test_token_shares_follow_from_the_lengths() -> None:
    # German sentences twice as long: at p = 0.5 two thirds of tokens, at 0.2 a third.
    frame = pd.DataFrame(
        {
            "pair": ["eng-deu"] * 4 + ["eng-zho"],
            "p": [0.2, 0.5, 0.0, 1.0, 0.3],
            "token_share": [1 / 3, 2 / 3, 0.0, 1.0, 0.2],
        }
    )
    table = derivations.token_shares(frame)
    assert list(table["p"]) == [0.2, 0.5]  # Chinese has no p = 0.5
    np.testing.assert_allclose(table["predicted"], table["w"])
    assert derivations.token_shares(frame.iloc[:0]).empty


# --- Appendix E --------------------------------------------------------------------------------


def linear(p: float) -> float:
    """Eq. 13 with c1 = 0.8."""
    return 0.8 * (p - 1) + 1


def test_a_linear_fraction_is_found_and_held_out_errors_vanish() -> None:
    frame = points(lambda p, n: loss_of(p, n, fraction=linear))
    laws = fractions.both_forms(frame)
    table = fractions.form_table(frame, laws).set_index(["pair", "form"])
    for pair in ("English→German", "English→Chinese"):
        row = table.loc[(pair, "Eq. 13")]
        assert row["c₁"] == pytest.approx(0.8, abs=1e-4)
        assert row["parameters"] == 4 and table.loc[(pair, "Eq. 12"), "parameters"] == 6
        assert row["error"] < 1e-5 and row["held-out error"] < 1e-5
        assert row["at a bound"] == "none"
    curves = fractions.form_curves(laws)
    line = curves[(curves["form"] == "Eq. 13") & (curves["pair"] == "eng-deu")]
    np.testing.assert_allclose(line["f"], 0.8 * (line["p"] - 1) + 1, atol=1e-4)
