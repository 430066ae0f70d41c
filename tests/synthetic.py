"""Rows with known truth, in the shape of `mnmt_repro.results.load`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
SIZES = tuple(int(n) for n in np.geomspace(2_000, 115_000, 8))


def identity(p: float) -> float:
    """f(p) = p."""
    return p


def loss_of(
    p: float,
    n: float,
    *,
    fraction: Callable[[float], float] = identity,
    alpha: float = 0.3,
    beta: float = 20.0,
    l_inf: float = 1.5,
) -> float:
    """Eq. 11 with any fraction."""
    return beta * (fraction(p) * n) ** -alpha + l_inf


def rows(
    cohort: str,
    pairs: Sequence[str] = ("eng-deu", "eng-zho"),
    *,
    loss: Callable[[float, float], float] = loss_of,
    weights: Sequence[float] = WEIGHTS,
    sizes: Sequence[int] = SIZES,
    test_set: str = "indomain",
    noise: float = 0.002,
    seed: int = 0,
    commit: str = "c0ffee",
    **columns: Any,
) -> pd.DataFrame:
    """One row for each pair, weight and size, its loss with relative Gaussian noise."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {
                "run_id": f"{cohort}-{pair}-{p}-{n}",
                "commit": commit,
                "seed": seed,
                "tier": "mini",
                "cohort": cohort,
                "pair": pair,
                "test_set": test_set,
                "domain": "all",
                "p": p,
                "n_non_embedding": n,
                "n_total": n + 100_000,
                "pair_target_tokens": 4e6 * p,
                "cross_entropy": loss(p, n) * (1 + noise * rng.standard_normal()),
                **columns,
            }
            for pair in pairs
            for p in weights
            for n in sizes
        ]
    )


def seeds(cohort: str, *args: Any, first: int = 0, count: int = 3, **more: Any) -> pd.DataFrame:
    """Rows of several seeds, from which intervals can be drawn."""
    each = [rows(cohort, *args, seed=first + k, **more) for k in range(count)]
    return pd.concat(each, ignore_index=True)
