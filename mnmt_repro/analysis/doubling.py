"""What doubling the size does to the loss: "reduces its loss by the same 1/2^α" (section 3.2).

True of the reducible loss; the whole loss keeps its irreducible part.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.analysis.scaling import PairFits
from mnmt_repro.cohorts.catalogue import get_cohort
from mnmt_repro.corpora.conlang import irreducible_entropy


def known_limits(cohort: str, fits: PairFits, tier: str = "mini") -> dict[str, float]:
    """L∞ of each pair: the exact entropy for generated languages, else that of the joint law."""
    config = get_cohort(cohort, tier).corpus.conlang
    return {
        pair: irreducible_entropy(config, pair) if config is not None else joint.params["l_inf"]
        for pair, (_, joint) in fits.items()
    }


def doubling_by_weight(points: pd.DataFrame, limits: Mapping[str, float]) -> pd.DataFrame:
    """What doubling the size did to the reducible loss, at each weight by itself and at all.

    Least squares of log(loss - L∞) on log2 N give the factor of one doubling: with a slope a
    weight, and with one slope for all of them, which is what the joint law says.

    Parameters
    ----------
    points
        From `scaling.observed`.
    limits
        L∞ of each pair, such as from `known_limits`.

    Returns
    -------
    DataFrame
        ``pair, p, factor, low, high, common``; the last is the pair's factor with one slope for all
        weights. Weights with fewer than three sizes, or a loss at or below L∞, are left out.
    """
    rows = []
    for (pair, p), group in points.groupby(["pair", "p"]):
        above = group["loss"].to_numpy() - limits[str(pair)]
        if len(group) < 3 or not (above > 0).all():
            continue
        x = np.log2(group["n"].to_numpy(dtype=float))
        line = stats.linregress(x, np.log2(above))
        half = stats.t.ppf(0.975, len(group) - 2) * line.stderr
        factor, low, high = 2.0 ** np.array([line.slope, line.slope - half, line.slope + half])
        rows.append([pair, p, factor, low, high, line.slope, ((x - x.mean()) ** 2).sum()])
    names = ["pair", "p", "factor", "low", "high", "slope", "spread"]
    table = pd.DataFrame(rows, columns=names)
    # The common slope is the mean of the weights' own, each counted by the spread of its sizes.
    weighted = (table["slope"] * table["spread"]).groupby(table["pair"]).transform("sum")
    common = weighted / table.groupby("pair")["spread"].transform("sum")
    return table.assign(common=2.0**common).drop(columns=["slope", "spread"])
