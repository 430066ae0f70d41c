"""What it takes to reach a share of a baseline's quality (Figure 4). No torch is needed here.

Quality is any measure of which more is better, such as spBLEU. Of a cross-entropy in nats take
`exp(-loss)`, the probability of a token in the geometric mean: its ratio is one of perplexities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from mnmt_repro.errors import InputError


def steps_to_reach(steps: Sequence[float], quality: Sequence[float], target: float) -> float:
    """First step at which a curve, straight between its points, is at `target` or above.

    >>> steps_to_reach([10, 20, 40], [1.0, 3.0, 4.0], 2.0)
    15.0

    Returns
    -------
    The first point's step where that one is there already (nothing is known of what is before it);
    infinity where none is.

    Raises
    ------
    InputError
        When there is no point, lengths differ or steps do not rise.
    """
    if not steps or len(steps) != len(quality):
        raise InputError(
            f"a curve needs points of step and quality, got {len(steps)} and {len(quality)}"
        )
    if any(b <= a for a, b in pairwise(steps)):
        raise InputError("the steps of a curve must rise")
    if quality[0] >= target:
        return float(steps[0])
    for (a, low), (b, high) in pairwise(zip(steps, quality, strict=True)):
        if high >= target:
            return a + (b - a) * (target - low) / (high - low)
    return math.inf


def compute_share(
    steps: Sequence[float],
    quality: Sequence[float],
    *,
    baseline_steps: float,
    baseline_quality: float,
    share: float,
    cost: float = 1.0,
) -> float:
    """Share of the baseline's compute after which `share` of its quality is reached (Section 5.3).

    What is saved is 1 minus that. The old model's own training is not counted, as in the paper.

    Parameters
    ----------
    steps, quality
        Curve of the upgraded model (or of the baseline itself).
    baseline_steps, baseline_quality
        All updates of the model trained from scratch, and its quality at the end.
    cost
        Compute of one update over that of one of the baseline's.

    Returns
    -------
    Above 0; infinity where the curve ends below.

    Examples
    --------
    95 % of 32.8, half-way between 2,000 and 10,000 updates out of 100,000:

    >>> reached = compute_share([2000, 10_000], [30.36, 31.96], baseline_steps=100_000,
    ...                         baseline_quality=32.8, share=0.95)
    >>> round(reached, 6)
    0.06
    """
    if not (baseline_steps > 0 and cost > 0):
        raise InputError("the baseline's steps and the cost of a step must be above 0")
    return cost * steps_to_reach(steps, quality, share * baseline_quality) / baseline_steps
