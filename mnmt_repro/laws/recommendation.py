"""Which mixture to train, for a model size and a stated preference (section 3.4).

Three preferences: weights on the pairs, a floor on one pair, equal regret. They hold for any number
of pairs; for more than two the laws must carry over (Appendix H).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fraction import FractionFit
from mnmt_repro.laws.frontier import checked_pairs, lattice

MIN_WEIGHT = 0.01
"""Least share of a pair: the laws say nothing of zero-shot."""


@dataclass(frozen=True, kw_only=True)
class Importance:
    """Least weighted mean loss (greatest mean quality); `weights` say how much each pair counts."""

    weights: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Floor:
    """`pair` must reach `target`; then the best mean over the other pairs.

    `target` is a loss that may not be exceeded, or a quality that must be reached.
    """

    pair: str
    target: float


@dataclass(frozen=True, kw_only=True)
class EqualRegret:
    """Every pair gives up as much against a model of its own of the same size.

    Regret is the loss in the mixture less the loss at p = 1; with ``relative=True`` as a fraction
    of the reducible loss at p = 1, so that pairs of different scale compare.
    """

    relative: bool = False


Preference = Importance | Floor | EqualRegret


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A mixture and what it is predicted to do.

    Attributes
    ----------
    n : model size
    preference : what was asked
    weights, loss, regret : by pair
        `regret` is against the pair alone at the same size.
    notes : tuple of str
        A weight at its least, or outside the weights that the law was fitted to.
    """

    n: float
    preference: Preference
    weights: dict[str, float]
    loss: dict[str, float]
    regret: dict[str, float]
    notes: tuple[str, ...] = field(default=())

    def summary(self) -> pd.DataFrame:
        """Tabulate the mixture: one row a pair."""
        return pd.DataFrame(
            {
                "pair": list(self.weights),
                "p": list(self.weights.values()),
                "loss": list(self.loss.values()),
                "regret": list(self.regret.values()),
            }
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{note}</p>" for note in self.notes)
        return self.summary().to_html(index=False) + notes


def recommend_weights(
    laws: Mapping[str, FractionFit], n: float, preference: Preference
) -> Recommendation:
    """Find the mixture that serves a preference best at one model size.

    Parameters
    ----------
    laws : dict of pair to FractionFit, at least two
    n : model size, in the unit of the laws
    preference : `Importance`, `Floor` or `EqualRegret`

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        Unknown pairs in the preference, importances below 0 or all 0, a floor that no mixture
        reaches (the message says how near one comes), a law that is not identified.
    """
    pairs = checked_pairs(laws)
    if not n > 0:
        raise InputError(f"n: {n}; give a model size above 0")
    sign = 1.0 if laws[pairs[0]].direction == "min" else -1.0

    def cost(p: Array) -> Array:
        """Loss (or less the quality) of each pair at mixtures (..., K)."""
        flat = p.reshape(-1, len(pairs))
        columns = [laws[pair].predict(flat[:, i], n) for i, pair in enumerate(pairs)]
        return sign * np.stack(columns, axis=1).reshape(p.shape)

    alone = cost(np.ones(len(pairs)))
    if isinstance(preference, Importance):
        weights = _importance(pairs, preference) @ np.eye(len(pairs))
        best = _search(len(pairs), lambda p: cost(p) @ weights)
    elif isinstance(preference, Floor):
        best = _floor(pairs, preference, cost, sign)
    elif isinstance(preference, EqualRegret):
        scale = np.ones(len(pairs))
        if preference.relative:
            limits = np.array([sign * laws[pair].params["l_inf"] for pair in pairs])
            scale = alone - limits
        best = _equal_regret(len(pairs), lambda p: (cost(p) - alone) / scale)
    else:
        raise InputError(f"preference: {preference!r}; use Importance, Floor or EqualRegret")
    regret = cost(best) - alone
    return Recommendation(
        n=float(n),
        preference=preference,
        weights=dict(zip(pairs, best.tolist(), strict=True)),
        loss=dict(zip(pairs, (sign * cost(best)).tolist(), strict=True)),
        regret=dict(zip(pairs, regret.tolist(), strict=True)),
        notes=_notes(laws, pairs, best),
    )


def _importance(pairs: list[str], preference: Importance) -> Array:
    if set(preference.weights) != set(pairs):
        raise InputError(f"importance: pairs {sorted(preference.weights)}, laws {sorted(pairs)}")
    weights = np.array([float(preference.weights[pair]) for pair in pairs])
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() == 0:
        raise InputError(f"importance: {dict(preference.weights)}; give numbers from 0, not all 0")
    return weights / weights.sum()


def _floor(pairs: list[str], preference: Floor, cost, sign: float) -> Array:  # type: ignore[no-untyped-def]
    if preference.pair not in pairs:
        raise InputError(f"floor: {preference.pair!r} is none of {pairs}")
    if not np.isfinite(preference.target):
        raise InputError(f"floor: target {preference.target}; give a number")
    one = pairs.index(preference.pair)
    others = np.arange(len(pairs)) != one
    target = sign * preference.target
    most = np.full(len(pairs), MIN_WEIGHT)
    most[one] = 1 - MIN_WEIGHT * (len(pairs) - 1)
    reached = float(cost(most)[one])
    if reached > target:
        raise InputError(
            f"floor: {preference.pair} comes no nearer to {preference.target:g} than "
            f"{sign * reached:.4g} at this size; relax the target or enlarge the model"
        )
    # With others as good as they can be, the pair gets the least share that reaches its target.
    low, high = MIN_WEIGHT, float(most[one])
    probe = np.full((2001, len(pairs)), 0.5)
    probe[:, one] = np.linspace(low, high, 2001)
    enough = cost(probe)[:, one] <= target
    first = int(enough.argmax())
    if first > 0:
        low, high = probe[first - 1, one], probe[first, one]
        for _ in range(60):
            probe[0, one] = (low + high) / 2
            if float(cost(probe[:1])[0, one]) <= target:
                high = probe[0, one]
            else:
                low = probe[0, one]
        share = high
    else:
        share = low
    rest = _search(
        len(pairs) - 1,
        lambda q: cost(_insert(q * (1 - share), one, share))[..., others].mean(-1),
        MIN_WEIGHT / (1 - share),
    )
    return _insert(rest * (1 - share), one, share)


def _insert(rest: Array, position: int, share: float) -> Array:
    return np.insert(rest, position, share, axis=-1)


def _search(pairs: int, objective, least: float = MIN_WEIGHT) -> Array:  # type: ignore[no-untyped-def]
    """Global minimum over the simplex with shares of at least `least`: a lattice, then polish."""
    if pairs == 1:
        return np.ones(1)
    points = least + (1 - pairs * least) * _closed_lattice(pairs)
    values = objective(points)
    best = points[int(values.argmin())]
    for start in points[np.argsort(values)[:5]]:
        found = minimize(
            lambda p: float(objective(p)),
            start,
            method="SLSQP",
            bounds=[(least, 1.0)] * pairs,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
            options={"ftol": 1e-14, "maxiter": 300},
        )
        p = np.clip(found.x, least, 1.0)
        p = p / p.sum()
        if float(objective(p)) < float(objective(best)):
            best = p
    return best


def _equal_regret(pairs: int, regret) -> Array:  # type: ignore[no-untyped-def]
    """Smallest greatest regret: where shares can be traded, that is where all are equal.

    For a bound r, pair i needs the least share at which its regret is r; the shares needed fall
    as r rises, and the bound sought is where they sum to one.
    """
    grid = np.linspace(MIN_WEIGHT, 1.0, 4001)
    table = regret(np.repeat(grid[:, None], pairs, axis=1))  # (points, pairs)
    table = np.minimum.accumulate(table, axis=0)  # the best reachable with at most this share

    def shares(bound: float) -> Array:
        need = [np.interp(-bound, -table[:, i], grid) for i in range(pairs)]
        return np.array(need)

    low, high = float(table.min()), float(table.max())
    for _ in range(200):
        middle = (low + high) / 2
        if shares(middle).sum() > 1:
            low = middle
        else:
            high = middle
    p = shares(high)
    return p / p.sum()


def _closed_lattice(pairs: int) -> Array:
    """Mixtures in even steps, zero shares included."""
    steps = {2: 400, 3: 60, 4: 24}.get(pairs, 8)
    return (lattice(pairs, steps + pairs) * (steps + pairs) - 1) / steps


def _notes(laws: Mapping[str, FractionFit], pairs: list[str], p: Array) -> tuple[str, ...]:
    notes = []
    for pair, share in zip(pairs, p, strict=True):
        if share <= MIN_WEIGHT * 1.001:
            notes.append(f"{pair} is at the least share that the law covers, {MIN_WEIGHT:g}")
        elif share < min(laws[pair].p) - 1e-9:
            notes.append(f"{pair}: {share:.3f} is below every weight its law was fitted to")
    return tuple(notes)
