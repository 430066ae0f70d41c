"""The trade-off frontier between pairs at one model size (section 3.4, Figure 7)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionFit

STEPS = {2: 100, 3: 40, 4: 20, 5: 13, 6: 14}
"""Of a lattice by its number of pairs; of more pairs, three more than pairs, or it grows large."""


def frontier(laws: Mapping[str, FractionFit], n: ArrayLike) -> pd.DataFrame:
    """Predict every pair's loss along the mixtures, at each size.

    Mixtures are 99 even steps for two pairs, and a lattice of some hundred to a few thousand for
    more; all give every pair a share.

    Parameters
    ----------
    laws : dict of pair to FractionFit
        One law a pair (Eq. 11), at least two.
    n : model sizes

    Returns
    -------
    DataFrame
        One row per size, mixture and pair: ``n, point, pair, p, loss``.
        ``frame.pivot(index=["n", "point"], columns="pair", values="loss")`` gives the curve.

    Raises
    ------
    InputError
        Fewer than two laws, or a law that is not identified.
    """
    pairs = checked_pairs(laws)
    sizes = vector("n", np.atleast_1d(n), positive=True)
    mixtures = lattice(len(pairs))
    point = np.tile(np.arange(len(mixtures)), len(sizes))
    n_of_point = np.repeat(sizes, len(mixtures))
    frames = []
    for column, pair in enumerate(pairs):
        at = mixtures[point, column], n_of_point
        columns = {"n": at[1], "point": point, "pair": pair, "p": at[0]}
        frames.append(pd.DataFrame({**columns, "loss": laws[pair].predict(*at)}))
    whole = pd.concat(frames, ignore_index=True)
    return whole.sort_values(["n", "point"], kind="stable", ignore_index=True)


def lattice(pairs: int, steps: int | None = None) -> Array:
    """All mixtures of `pairs` pairs in even steps, each pair with at least one: (points, pairs).

    Examples
    --------
    >>> lattice(2, 4).tolist()
    [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
    """
    steps = steps or STEPS.get(pairs, pairs + 3)
    cuts = np.array(list(itertools.combinations(range(1, steps), pairs - 1)))
    ends = np.column_stack([np.zeros(len(cuts)), cuts, np.full(len(cuts), steps)])
    return np.diff(ends, axis=1) / steps


def checked_pairs(laws: Mapping[str, LawFit[Any]]) -> list[str]:
    """Return the pairs of usable laws; `InputError` when there are fewer than two."""
    if len(laws) < 2:
        raise InputError(f"laws: {list(laws)}; a trade-off needs at least two pairs")
    for pair, law in laws.items():
        if not law.identified:
            raise InputError(f"{pair}: its law is not identified: {law.reason}")
    if len({law.law.direction for law in laws.values()}) > 1:
        raise InputError("laws: losses and qualities mixed; fit all pairs to one measure")
    return list(laws)
