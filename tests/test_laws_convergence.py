"""Convergence correction (Appendix G)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import correct_convergence, declared_runs, extrapolate_curve

STEPS = np.arange(50, 1001, 50)
RATIO = (2 + 30 * 2500**-0.5) / (2 + 30 * 1000**-0.5)
"""Of the curve 2 + 30 t^-0.5 at 2,500 steps over 1,000."""


def curve(run: str, final: float) -> pd.DataFrame:
    loss = final + 30 * STEPS**-0.5
    return pd.DataFrame({"run_id": run, "pair": "eng-deu", "step": STEPS, "cross_entropy": loss})


def rows() -> pd.DataFrame:
    grid = [(p, n) for p in (0.0, 0.05, 0.1, 1.0) for n in (1e4, 2e4, 4e4)]
    frame = pd.DataFrame(grid, columns=["p", "n_non_embedding"])
    return frame.assign(
        run_id=[f"r{i}" for i in range(12)], pair="eng-deu", cross_entropy=np.linspace(5, 3, 12)
    )


def test_reads_the_curve_at_the_multiple() -> None:
    read = extrapolate_curve(STEPS, 2 + 30 * STEPS**-0.5)
    assert read.target == 2500
    assert read.ratio == pytest.approx(RATIO, rel=1e-5)
    assert read.law.alpha == pytest.approx(0.5, rel=1e-5)


def test_noisy_curves_are_read_without_bias() -> None:
    """A hundred curves with evaluations 0.1 % off: the middle one right, most within a fifth."""
    random = np.random.default_rng(0)
    clean = 2 + 30 * STEPS**-0.5
    noise = 0.001 * random.standard_normal((100, len(STEPS)))
    ratios = np.array([extrapolate_curve(STEPS, clean * (1 + each)).ratio for each in noise])
    falls, truth = 1 - ratios, 1 - RATIO
    assert np.median(falls) == pytest.approx(truth, rel=0.03)
    assert np.mean(np.abs(falls / truth - 1) < 0.2) > 0.9
    assert falls.std() > 0.005 * truth  # the noise does reach the answer


def test_early_steps_do_not_count() -> None:
    loss = 2 + 30 * STEPS**-0.5
    loss[STEPS < 100] += 5
    assert extrapolate_curve(STEPS, loss).ratio == pytest.approx(RATIO, rel=1e-5)
    assert 1 - extrapolate_curve(STEPS, loss, skip=0).ratio != pytest.approx(1 - RATIO, rel=0.1)


def test_the_papers_runs_are_declared() -> None:
    frame = rows()
    declared = frame[declared_runs(frame)]
    assert set(zip(declared.p, declared.n_non_embedding, strict=True)) == {
        (0.05, 2e4),
        (0.05, 4e4),
    }


def test_only_declared_rows_change_and_by_the_curves_promise() -> None:
    frame = rows()
    curves = pd.concat([curve("r4", 2.0), curve("r5", 1.5)])
    before = frame.copy()
    corrected = correct_convergence(frame, curves, declared_runs(frame))
    pd.testing.assert_frame_equal(frame, before)
    assert list(corrected.index[corrected.corrected]) == [4, 5]
    expected = frame.cross_entropy.to_numpy(copy=True)
    expected[4] *= RATIO
    expected[5] *= (1.5 + 30 * 2500**-0.5) / (1.5 + 30 * 1000**-0.5)
    assert corrected.cross_entropy.to_numpy() == pytest.approx(expected, rel=1e-6)
    assert corrected.observed.tolist() == before.cross_entropy.tolist()


def test_a_curve_without_a_law_leaves_the_row_and_says_why() -> None:
    frame = rows()
    flat = curve("r4", 2.0).assign(cross_entropy=3.0)
    corrected = correct_convergence(
        frame, pd.concat([flat, curve("r5", 1.5)]), declared_runs(frame)
    )
    assert corrected.cross_entropy[4] == frame.cross_entropy[4] and not corrected.corrected[4]
    assert "flat" in corrected.correction_reason[4] and corrected.correction_reason[0] == ""


def test_unusable_input_is_an_error() -> None:
    frame = rows()
    with pytest.raises(InputError, match="run r4"):
        correct_convergence(frame, curve("r5", 1.5), declared_runs(frame))
    with pytest.raises(InputError, match="declared"):
        correct_convergence(frame, curve("r5", 1.5), np.array([True]))
    with pytest.raises(InputError, match="multiple"):
        extrapolate_curve(STEPS, STEPS, multiple=1.0)
    with pytest.raises(InputError, match="skip"):
        extrapolate_curve(STEPS, STEPS, skip=1.0)
