"""Which mixture to train at a model size: the one with the least mean loss (section 3.4).

Pairs count as much as the caller says. It holds for any number of pairs; for more than two the laws
must carry over (Appendix H). `frontier` shows what else can be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import Delaunay

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.frontier import checked_pairs, lattice
from mnmt_repro.laws.law import Law, runs_alone
from mnmt_repro.laws.mixture_law import MixtureLaw
from mnmt_repro.laws.uncertainty import percentiles

PairLaw = LawFit[Any]
"""A FractionFit, or the fit of a MixtureLaw."""

FINE, COARSE = 40, 8
"""How often the search halves its step: for the weights, and for their interval."""

MOST_BEYOND = 4
"""Times the largest trained size up to which losses are extrapolated."""

MOST_SPREAD = 0.5
"""Width of the interval of a weight from which nothing is recommended: it leaves the choice open.
``benchmarks/recommended.py`` measures how often that is so."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A mixture and what it is predicted to do.

    Attributes
    ----------
    n : float
        Model size.
    table : DataFrame with a row a pair
        ``p``: the weight, with ``p_low, p_high``, its 95 % percentile interval: each refit of the
        laws has its own best mixture, to about 0.0025. ``loss``: predicted, with ``low, high``, the
        95 % percentile interval from the same refits; it is of the law, not of a run. Both are NaN
        for a law without rows to spare. ``regret``: the loss above that of the pair alone
        at the same size.
    notes : tuple of str
        A size outside those that a law was fitted to, a weight at its least, and doubts about an
        effective fraction.
    refusal : tuple of str
        Why the runs do not support these weights; empty where they do. A pair has no run of its
        own (p = 1), or the interval of a weight is missing or wider than `MOST_SPREAD`.
    """

    n: float
    table: pd.DataFrame
    notes: tuple[str, ...]
    refusal: tuple[str, ...]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each pair; `InputError` where the runs do not support the mixture."""
        if self.refusal:
            why = "; ".join(self.refusal)
            raise InputError(f"no recommendation: {why}; `table` has the weights all the same")
        return {str(pair): float(p) for pair, p in self.table["p"].items()}


def recommend_weights(
    laws: Mapping[str, PairLaw],
    n: float,
    importance: Mapping[str, float] | None = None,
    *,
    draws: int = 500,
) -> Recommendation:
    """Find the mixture with the least mean loss (greatest mean quality) at one model size.

    Each pair gets at least the least weight that it was trained at: below it, its effective
    fraction is not measured.

    Parameters
    ----------
    laws : dict of pair to FractionFit, or to LawFit of a MixtureLaw, at least two
        By laws of mixtures, the answer lies in the convex hull of the trained mixtures.
    n : model size, in the unit of the laws
    importance : dict of pair to number, optional
        How much each pair counts in the mean; by default all alike. The sum need not be one.
    draws : refits of the laws, of which the intervals are made

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        Unknown pairs, importances below 0 or all 0, a law that is not identified, a size beyond
        `MOST_BEYOND` times the largest trained one, or least weights that add up to 1 or more.

    Examples
    --------
    >>> import pandas as pd
    >>> from mnmt_repro.laws import fit_fraction
    >>> runs = pd.DataFrame(
    ...     [(n, p) for n in (1e4, 1e5, 1e6) for p in (0.1, 0.3, 0.5, 1.0)], columns=["n", "p"]
    ... )
    >>> runs["loss"] = 40 * (runs["p"] ** 0.5 * runs["n"]) ** -0.3 + 1.5
    >>> law = fit_fraction(runs, n="n", loss="loss")
    >>> best = recommend_weights({"eng-deu": law, "eng-zho": law}, 3e5)
    >>> {pair: round(weight, 2) for pair, weight in best.weights.items()}
    {'eng-deu': 0.5, 'eng-zho': 0.5}
    """
    pairs = checked_pairs(laws)
    if not n > 0:
        raise InputError(f"n: {n}; give a model size above 0")
    largest = min(max(laws[pair].law.n) for pair in pairs)
    if n > MOST_BEYOND * largest:
        raise InputError(
            f"n: {n:,.10g} is more than {MOST_BEYOND} times the largest trained size "
            f"({largest:,.10g}), so there is no recommendation; train larger models"
        )
    sign = laws[pairs[0]].law.sign
    alike = dict.fromkeys(pairs, 1.0)
    cost = sign * _importance(pairs, alike if importance is None else importance)
    fitted = {pair: laws[pair].values[None] for pair in pairs}
    (best,) = _best_of_each(laws, fitted, n, cost, FINE)
    at_best, alone = _losses(laws, fitted, best[None], n)[0]
    refits = {pair: laws[pair].refits(draws, seed=i) for i, pair in enumerate(pairs)}
    halvings = COARSE if len(pairs) > 2 else 0  # even steps of two pairs are fine enough
    each = _best_of_each(laws, refits, n, cost, halvings)
    table = pd.DataFrame({"p": best}, index=pd.Index(pairs, name="pair"))
    table["p_low"], table["p_high"] = percentiles(each)
    table["loss"] = at_best
    table["low"], table["high"] = percentiles(_losses(laws, refits, best[None], n)[:, 0])
    table["regret"] = sign * (at_best - alone)
    return Recommendation(
        n=float(n),
        table=table,
        notes=tuple(_notes(laws, pairs, best, n)),
        refusal=tuple(_refusal(laws, table)),
    )


def _refusal(laws: Mapping[str, PairLaw], table: pd.DataFrame) -> Iterator[str]:
    for pair, law in laws.items():
        if law.law.p.max() < 1 and not isinstance(law.law, MixtureLaw):
            yield f"{pair}: {runs_alone(pair, law.law.n)}"
        elif law.spare < 1:
            mixtures = isinstance(law.law, MixtureLaw)
            each, more = ("mixtures",) * 2 if mixtures else ("rows", "seeds or sizes")
            yield f"{pair}: as many parameters as {each}, so no interval; add {more}"
    width = (table["p_high"] - table["p_low"]).fillna(0.0)
    if width.max() > MOST_SPREAD:
        pair = str(width.idxmax())
        low, high = table.loc[pair, ["p_low", "p_high"]]
        yield (
            f"the best weight of {pair} lies from {low:.2f} to {high:.2f}, an interval "
            f"wider than {MOST_SPREAD:g}; add seeds, sizes or mixtures"
        )


def _rows(law: Law, pairs: list[str], mixtures: Array, pair: str, n: float | Array) -> Array:
    """What the law of a pair reads of mixtures (M, K)."""
    if isinstance(law, MixtureLaw):
        return law.rows_at(mixtures[:, [pairs.index(other) for other in law.pairs]], n)
    return law.rows_at(mixtures[:, pairs.index(pair)], n)


def _losses(
    laws: Mapping[str, PairLaw], refits: Mapping[str, Array], mixtures: Array, n: float
) -> Array:
    """Losses (B, M+1, K) under each refit in mixtures (M, K), and after them of each pair alone."""
    columns = []
    for pair, alone in zip(refits, np.eye(len(refits)), strict=True):
        rows = _rows(laws[pair].law, list(refits), np.vstack([mixtures, alone]), pair, n)
        columns.append(laws[pair].law.curve(refits[pair], rows))
    return np.stack(columns, axis=2)


def _within(laws: Mapping[str, PairLaw], pairs: list[str]) -> Callable[[Array], Array]:
    """Keeps those of mixtures (M, K) that lie in the convex hull of the trained, by their laws."""
    own = [laws[pair].law for pair in pairs]
    if len(pairs) < 3 or not all(isinstance(law, MixtureLaw) for law in own):
        return lambda points: points
    known = [law.mixture[:, [law.pairs.index(pair) for pair in pairs]] for law in own]
    hull = Delaunay(np.unique(np.vstack(known)[:, :-1], axis=0))
    return lambda points: points[hull.find_simplex(points[:, :-1], tol=1e-9) >= 0]


def _best_of_each(
    laws: Mapping[str, PairLaw],
    refits: Mapping[str, Array],
    n: float,
    cost: Array,
    halvings: int,
) -> Array:
    """Mixture with the least mean loss, by `cost` (K,), under each refit, (B, K); NaN without any.

    The search starts at the best of mixtures in even steps. It lets one pair give share to another
    while that helps, and halves the share given `halvings` times.
    """
    pairs = list(refits)

    def objective(points: Array, refits: Mapping[str, Array]) -> Array:
        """What is minimised, at mixtures (M, K) under each refit: (B, M)."""
        return np.asarray(_losses(laws, refits, points, n)[:, :-1] @ cost)

    lowest = np.array([min(laws[pair].law.p) for pair in pairs])
    if (rest := 1 - lowest.sum()) <= 0:
        raise InputError(
            f"the least weights of {', '.join(pairs)} leave no other mixture; train smaller weights"
        )
    within = _within(laws, pairs)
    points = within(lowest + rest * _closed_lattice(len(pairs)))
    values = objective(points, refits)
    least, best = values.min(1), points[values.argmin(1)]
    for b in np.flatnonzero(np.isfinite(least)) if halvings else ():
        one = {pair: refits[pair][b : b + 1] for pair in pairs}
        for step in 2.0 ** -np.arange(4, halvings + 4):
            while True:
                near = within(_exchanged(best[b], step, lowest))
                if not len(near):
                    break
                (reached,) = objective(near, one)
                if not reached.min() < least[b]:
                    break
                least[b], best[b] = reached.min(), near[reached.argmin()]
    return np.where(np.isnan(values).any(1, keepdims=True), np.nan, best)


def _exchanged(mixture: Array, step: float, lowest: Array) -> Array:
    """Mixtures in which one pair has handed another `step`, or what it can spare: (M, K)."""
    gives, takes = np.nonzero(~np.eye(len(mixture), dtype=bool))
    handed = np.minimum(step, mixture[gives] - lowest[gives])
    mixtures = np.repeat(mixture[None], len(handed), axis=0)
    rows = np.arange(len(handed))
    mixtures[rows, gives] -= handed
    mixtures[rows, takes] += handed
    return mixtures


def _importance(pairs: list[str], by_pair: Mapping[str, float]) -> Array:
    """How much each pair counts, as shares of one whole, (K,)."""
    if set(by_pair) != set(pairs):
        named = ", ".join(by_pair) or "no pair"
        raise InputError(f"importance: of {named}; give each of {', '.join(pairs)} a number")
    importance = np.array([float(by_pair[pair]) for pair in pairs])
    if not np.isfinite(importance).all() or (importance < 0).any() or importance.max() == 0:
        raise InputError(f"importance: {dict(by_pair)}; give numbers from 0, not all 0")
    importance = importance / importance.max()  # whose sum would overflow where they are huge
    return importance / importance.sum()


def _closed_lattice(pairs: int) -> Array:
    """Mixtures in even steps, zero shares included."""
    steps = {2: 400, 3: 60, 4: 24, 5: 8, 6: 8}.get(pairs, 3)
    return (lattice(pairs, steps + pairs) * (steps + pairs) - 1) / steps


def _notes(laws: Mapping[str, PairLaw], pairs: list[str], p: Array, n: float) -> Iterator[str]:
    for pair, share in zip(pairs, p, strict=True):
        if share <= (lowest := min(laws[pair].law.p)) * 1.001:
            yield f"{pair} is at its least trained weight, {lowest:g}; the best may lie below"
    for pair in pairs:
        law = laws[pair]
        least, most = min(law.law.n), max(law.law.n)
        if not least <= n <= most:
            yield (
                f"{pair}: its models have sizes from {least:,.6g} to {most:,.6g}, so its loss at "
                f"{n:,.6g} is extrapolated"
            )
        yield from (f"{pair}: {doubt}" for doubt in law.fraction_doubts())
        if isinstance(law.law, MixtureLaw) and law.law.p.max() < 1:
            yield f"{pair}: no model of it alone, so its regret is extrapolated"
