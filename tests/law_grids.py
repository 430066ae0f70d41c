"""Losses that follow Eq. 11 exactly or with noise, for the tests of laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

SIZES = np.array([4e3, 7e3, 12e3, 20e3, 33e3, 55e3, 85e3, 120e3])
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
ALPHA, L_INF, BETA = 0.3, 1.1, 60.0


def grid(
    fraction: Callable[[float], float],
    noise: float = 0.0,
    seed: int = 0,
    weights: Iterable[float] = WEIGHTS,
) -> pd.DataFrame:
    """Rows of one pair at all weights and sizes, with noise in proportion to the loss."""
    rows = [(p, n, BETA * (fraction(p) * n) ** -ALPHA + L_INF) for p in weights for n in SIZES]
    frame = pd.DataFrame(rows, columns=["p", "n_non_embedding", "cross_entropy"])
    frame["cross_entropy"] *= 1 + noise * np.random.default_rng(seed).standard_normal(len(frame))
    return frame
