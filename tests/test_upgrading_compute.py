"""Figure 4: what it takes to reach a share of a baseline, by hand."""

from __future__ import annotations

import math

import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.compute import compute_share, steps_to_reach

STEPS, QUALITY = [10, 20, 40, 50], [2.0, 4.0, 3.0, 8.0]


@pytest.mark.parametrize(
    ("target", "step"),
    [(1.0, 10), (2.0, 10), (3.0, 15), (4.0, 20), (5.0, 44), (8.0, 50), (8.1, math.inf)],
)
def test_the_first_step_that_is_there(target: float, step: float) -> None:
    assert steps_to_reach(STEPS, QUALITY, target) == pytest.approx(step)


def test_share_of_compute_by_hand() -> None:
    """75 % of 4 is 3, reached at step 15 of 60; twice the cost a step is twice the share."""
    baseline = {"baseline_steps": 60, "baseline_quality": 4.0}
    assert compute_share(STEPS, QUALITY, **baseline, share=0.75) == pytest.approx(0.25)
    assert compute_share(STEPS, QUALITY, **baseline, share=0.75, cost=2) == pytest.approx(0.5)
    assert compute_share(STEPS, QUALITY, **baseline, share=3) == math.inf


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(InputError, match="got 0 and 0"):
        steps_to_reach([], [], 1.0)
    with pytest.raises(InputError, match="got 2 and 1"):
        steps_to_reach([1, 2], [1.0], 1.0)
    with pytest.raises(InputError, match="must rise"):
        steps_to_reach([1, 1], [1.0, 2.0], 1.0)
    with pytest.raises(InputError, match="must be above 0"):
        compute_share(STEPS, QUALITY, baseline_steps=0, baseline_quality=1.0, share=1.0)
