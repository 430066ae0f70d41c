"""Which mixture to train, for a model size and a stated preference (section 3.4).

Three preferences: weights on the pairs, a floor on one pair, equal regret. They hold for any number
of pairs; for more than two the laws must carry over (Appendix H).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.fraction import FractionFit
from mnmt_repro.laws.frontier import MOST_PAIRS, checked_pairs, drawn, lattice
from mnmt_repro.laws.uncertainty import percentiles

FINE, COARSE = 40, 8
"""How often the search halves its step: for the weights, and for their interval."""

MIN_WEIGHT = 0.01
"""Least share of a pair: the laws say nothing of zero-shot."""

GOOD_R2 = 0.95
LEAST_SIZES = 3  # that show whether losses follow a power law
"""A law with a lower R², or with a parameter held at a bound, gets a note on its quality."""

LEVEL = 0.95
"""Of the interval of the predicted losses."""


@dataclass(frozen=True, kw_only=True)
class Importance:
    """Least mean loss (greatest mean quality), in which each pair counts as much as `by_pair` says.

    Importances need not sum to one.
    """

    by_pair: Mapping[str, float]


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
    weights_low, weights_high : by pair
        95 % percentile interval of the weights, from the refits that give `low` and `high`: each
        refit has its own best mixture, to about 0.0025.
    weights, loss, regret, relative_regret : by pair
        `regret` is against the pair alone at the same size; `relative_regret` as a fraction of what
        that size can reduce there, see `EqualRegret`.
    low, high : by pair
        95 % percentile interval of `loss` at these weights, from the residual bootstrap of the
        pair's law; NaN for a law without rows to spare. It is of the law, not of a run:
    scatter : by pair
        How far single runs lie from the law at these weights: the standard deviation of its
        residuals, which relative errors make a share of the loss; NaN likewise.
    notes : tuple of str
        A size or weight outside those that a law was fitted to, a weight at its least, regret
        against an extrapolated p = 1, and laws of low quality: R² under `GOOD_R2`, a parameter
        held at a bound, or fewer than `LEAST_SIZES` sizes.
    """

    n: float
    weights: dict[str, float]
    weights_low: dict[str, float]
    weights_high: dict[str, float]
    loss: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    scatter: dict[str, float]
    regret: dict[str, float]
    relative_regret: dict[str, float]
    notes: tuple[str, ...] = field(default=())

    def summary(self) -> pd.DataFrame:
        """Tabulate the mixture: one row a pair."""
        columns = {
            "p": self.weights,
            "p_low": self.weights_low,
            "p_high": self.weights_high,
            "loss": self.loss,
            **{name: getattr(self, name) for name in ("low", "high", "scatter", "regret")},
            "relative_regret": self.relative_regret,
        }
        return pd.DataFrame(columns, index=list(self.weights)).rename_axis("pair").reset_index()

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{note}</p>" for note in self.notes)
        return self.summary().to_html(index=False, float_format="{:.3f}".format) + notes


def recommend_weights(
    laws: Mapping[str, FractionFit],
    n: float,
    preference: Preference,
    *,
    draws: int = 500,
    seed: int = 0,
) -> Recommendation:
    """Find the mixture that serves a preference best at one model size.

    Parameters
    ----------
    laws : dict of pair to FractionFit, at least two
    n : model size, in the unit of the laws
    preference : `Importance`, `Floor` or `EqualRegret`
    draws, seed : of the interval of the losses

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        Unknown pairs in the preference, importances below 0 or all 0, a floor that no mixture
        reaches (the message says how near one comes), a law that is not identified.

    Examples
    --------
    >>> import pandas as pd
    >>> from mnmt_repro.laws import fit_fraction
    >>> runs = pd.DataFrame(
    ...     [(n, p) for n in (1e4, 1e5, 1e6) for p in (0.1, 0.3, 0.5, 1.0)], columns=["n", "p"]
    ... )
    >>> runs["loss"] = 40 * (runs["p"] ** 0.5 * runs["n"]) ** -0.3 + 1.5
    >>> law = fit_fraction(runs, n="n", loss="loss")
    >>> found = recommend_weights({"eng-deu": law, "eng-zho": law}, 3e5, EqualRegret())
    >>> {pair: round(weight, 2) for pair, weight in found.weights.items()}
    {'eng-deu': 0.5, 'eng-zho': 0.5}
    """
    pairs = checked_pairs(laws)
    if not n > 0:
        raise InputError(f"n: {n}; give a model size above 0")
    _check(pairs, preference)
    sign = 1.0 if laws[pairs[0]].law.direction == "min" else -1.0

    def predicted(p: Array) -> Array:
        """Loss or quality of each pair at its share of a mixture (K,)."""
        return np.array([laws[pair].predict(p[i], n)[0] for i, pair in enumerate(pairs)])

    fitted = {pair: laws[pair].values[None] for pair in pairs}
    (best,) = _best_of_each(laws, fitted, n, preference, sign, FINE)
    at_best, alone = predicted(best), predicted(np.ones(len(pairs)))
    if isinstance(preference, Floor):
        _check_reached(preference, dict(zip(pairs, at_best, strict=True))[preference.pair], sign)
    regret = sign * (at_best - alone)
    reducible = sign * (alone - [laws[pair].params["l_inf"] for pair in pairs])
    refits = _refits(laws, pairs, draws, seed)
    bands = np.array(
        [
            percentiles(
                laws[pair].law.curve(refits[pair], laws[pair].law.rows_at(share, n)), LEVEL
            )[:, 0]
            for pair, share in zip(pairs, best, strict=True)
        ]
    )
    halvings = COARSE if len(pairs) > 2 else 0  # even steps of two pairs are fine enough
    shares = percentiles(_best_of_each(laws, refits, n, preference, sign, halvings), LEVEL).T

    def by_pair(values: Array) -> dict[str, float]:
        return dict(zip(pairs, values.tolist(), strict=True))

    return Recommendation(
        n=float(n),
        weights=by_pair(best),
        weights_low=by_pair(shares[:, 0]),
        weights_high=by_pair(shares[:, 1]),
        loss=by_pair(at_best),
        low=by_pair(bands[:, 0]),
        high=by_pair(bands[:, 1]),
        scatter={
            pair: float(laws[pair].noise_at(value))
            for pair, value in zip(pairs, at_best, strict=True)
        },
        regret=by_pair(regret),
        relative_regret=by_pair(regret / reducible),
        notes=tuple(_notes(laws, pairs, best, n)),
    )


def _refits(
    laws: Mapping[str, FractionFit], pairs: list[str], draws: int, seed: int
) -> dict[str, Array]:
    """Parameters of each pair's law refitted to resampled residuals, (B, P); NaN without any."""
    return {
        pair: laws[pair].draws(laws[pair].resampling, draws=draws, seed=seed + i).values
        if laws[pair].spare > 0
        else np.full((draws, len(laws[pair].values)), np.nan)
        for i, pair in enumerate(pairs)
    }


def _best_of_each(
    laws: Mapping[str, FractionFit],
    refits: Mapping[str, Array],
    n: float,
    preference: Preference,
    sign: float,
    halvings: int,
) -> Array:
    """Best mixture under each refit, (B, K); NaN where a law has no refits.

    The search starts at the best of mixtures in even steps. It lets one pair give share to another
    while that helps, and halves the share given `halvings` times.
    """
    pairs = list(refits)

    def objective(points: Array, refits: Mapping[str, Array]) -> Array:
        """What the preference minimises, at mixtures (M, K) under each refit: (B, M)."""
        with_alone = np.vstack([points, np.ones(len(pairs))])
        columns = [
            laws[pair].law.curve(refits[pair], laws[pair].law.rows_at(with_alone[:, i], n))
            for i, pair in enumerate(pairs)
        ]
        cost = sign * np.stack(columns, axis=2)
        cost, alone = cost[:, :-1], cost[:, -1:]
        if isinstance(preference, Importance):
            return np.asarray(cost @ _importance(pairs, preference))
        if isinstance(preference, Floor):
            one = pairs.index(preference.pair)
            missed = np.maximum(cost[..., one] - sign * preference.target, 0.0)
            return np.asarray(np.delete(cost, one, axis=2).mean(2) + 1e6 * missed)
        constants = sign * np.stack([refits[pair][:, 1] for pair in pairs], axis=1)
        scale = alone - constants[:, None] if preference.relative else np.ones(len(pairs))
        return np.asarray(((cost - alone) / scale).max(2))

    points = MIN_WEIGHT + (1 - len(pairs) * MIN_WEIGHT) * _closed_lattice(len(pairs))
    values = objective(points, refits)
    least, best = values.min(1), points[values.argmin(1)]
    for b in np.flatnonzero(np.isfinite(least)) if halvings else ():
        one = {pair: refits[pair][b : b + 1] for pair in pairs}
        for step in 2.0 ** -np.arange(4, halvings + 4):
            while True:
                near = _exchanged(best[b], step)
                (found,) = objective(near, one)
                if not found.min() < least[b]:
                    break
                least[b], best[b] = found.min(), near[found.argmin()]
    return np.where(np.isnan(values).any(1, keepdims=True), np.nan, best)


def _exchanged(mixture: Array, step: float) -> Array:
    """Mixtures in which one pair has given another `step`, or what it has to give: (M, K)."""
    gives, takes = np.nonzero(~np.eye(len(mixture), dtype=bool))
    given = np.minimum(step, mixture[gives] - MIN_WEIGHT)
    found = np.repeat(mixture[None], len(given), axis=0)
    rows = np.arange(len(given))
    found[rows, gives] -= given
    found[rows, takes] += given
    return found


def _check(pairs: list[str], preference: Preference) -> None:
    if isinstance(preference, Importance):
        _importance(pairs, preference)
    elif isinstance(preference, Floor):
        if preference.pair not in pairs:
            raise InputError(f"floor: {preference.pair!r} is none of {pairs}")
        if not np.isfinite(preference.target):
            raise InputError(f"floor: target {preference.target}; give a number")
    elif not isinstance(preference, EqualRegret):
        raise InputError(f"preference: {preference!r}; use Importance, Floor or EqualRegret")


def _check_reached(floor: Floor, reached: float, sign: float) -> None:
    if sign * (reached - floor.target) > 1e-9 * max(1.0, abs(floor.target)):
        raise InputError(
            f"floor: {floor.pair} comes no nearer to {floor.target:g} than {reached:.4g} at this "
            "size; relax the target or enlarge the model"
        )


def _importance(pairs: list[str], preference: Importance) -> Array:
    if set(preference.by_pair) != set(pairs):
        raise InputError(f"importance: pairs {sorted(preference.by_pair)}, laws {sorted(pairs)}")
    found = np.array([float(preference.by_pair[pair]) for pair in pairs])
    if not np.isfinite(found).all() or (found < 0).any() or found.max() == 0:
        raise InputError(f"importance: {dict(preference.by_pair)}; give numbers from 0, not all 0")
    found = found / found.max()  # whose sum would overflow where they are huge
    return found / found.sum()


def _closed_lattice(pairs: int) -> Array:
    """Mixtures in even steps, zero shares included; of many pairs the corners and some between."""
    if pairs > MOST_PAIRS:
        return np.vstack([np.eye(pairs), np.full((1, pairs), 1 / pairs), drawn(pairs)])
    steps = {2: 400, 3: 60, 4: 24}.get(pairs, 8)
    return (lattice(pairs, steps + pairs) * (steps + pairs) - 1) / steps


def _notes(laws: Mapping[str, FractionFit], pairs: list[str], p: Array, n: float) -> Iterator[str]:
    for pair, share in zip(pairs, p, strict=True):
        if share <= MIN_WEIGHT * 1.001:
            yield f"{pair} is at the least share that the law covers, {MIN_WEIGHT:g}"
        elif share < min(laws[pair].law.p) - 1e-9:
            yield f"{pair}: {share:.3f} is below every weight its law was fitted to"
        elif share > max(laws[pair].law.p) + 1e-9:
            yield f"{pair}: {share:.3f} is above every weight its law was fitted to"
    least = max(min(laws[pair].law.n) for pair in pairs)
    most = min(max(laws[pair].law.n) for pair in pairs)
    if not least <= n <= most:
        yield (
            f"n = {n:,.10g} is outside the sizes that the laws were fitted to, {least:,.10g} to "
            f"{most:,.10g}: the losses are extrapolated"
        )
    for pair in pairs:
        law = laws[pair]
        if max(law.law.p) < 1:
            yield (
                f"{pair}: no row has p = 1, so its regret is measured against an extrapolated p = 1"
            )
        faults = [f"R² {law.r2:.3f} is under {GOOD_R2:g}"] if law.r2 < GOOD_R2 else []
        if law.active_bounds:
            faults.append(f"held at a bound: {', '.join(law.active_bounds)}")
        if (sizes := len(set(law.law.n))) < LEAST_SIZES:
            faults.append(f"{sizes} sizes cannot test a power law: add some")
        if faults:
            yield f"{pair}: a law of low quality ({'; '.join(faults)})"
