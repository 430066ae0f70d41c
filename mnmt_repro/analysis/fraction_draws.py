"""Log f(p) of joint laws under noise (Eq. 10), and how it differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.analysis.cells import Cells
from mnmt_repro.analysis.intervals import Measure, Measures, NotIdentified, measure, power
from mnmt_repro.analysis.noise import curve, noisy, pooled_sd
from mnmt_repro.laws import JointLawFit, PowerLawFit
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.effective import log_fraction


@dataclass(frozen=True)
class Fractions:
    """Log f(p) of one joint law at some weights, with its draws under noise.

    The noise is that of the law: of one size for all rows, or in proportion to the loss where
    relative errors were least. Where the law's noise is of one size and that of the runs in
    proportion to their loss, a 95 % interval holds the truth some nine times in ten
    (`tests/test_claims.py` simulates it).

    Attributes
    ----------
    fit : the joint law
    weights : where f is asked for
    noise : (B, m)
        Standard normal, for each row of the law.
    """

    fit: JointLawFit
    weights: tuple[float, ...]
    noise: Array

    @classmethod
    def drawn(
        cls, fit: JointLawFit, weights: tuple[float, ...], draws: int, seed: int = 0
    ) -> Fractions:
        """With noise of its own."""
        noise = np.random.default_rng(seed).standard_normal((draws, fit.observations))
        return cls(fit, weights, noise)

    def beside(self, other: JointLawFit, shared: NDArray[np.intp], same_test: bool) -> Fractions:
        """Of another law, whose noise is that of this one in the runs that both read.

        Parameters
        ----------
        shared
            From `same_runs`.
        same_test
            Whether both read one test set. Else the noise is common as far as the residuals go
            together.
        """
        noise = np.random.default_rng(10).standard_normal((len(self.noise), other.observations))
        if len(shared):
            mine, theirs = shared.T
            together = 1.0
            if not same_test:
                left = [
                    (law.observed() - law.fitted()) / law.noise_sd() for law in (self.fit, other)
                ]
                together = float(np.corrcoef(left[0][mine], left[1][theirs])[0, 1])
            apart = np.sqrt(1 - together**2)
            noise[:, theirs] = together * self.noise[:, mine] + apart * noise[:, theirs]
        return Fractions(other, self.weights, noise)

    def of(self, values: Array) -> Array:
        """Log f(p) (B, W) at parameters (B, P) of the law."""
        every = log_fraction(values, int(self.fit.index(1.0)[0]))
        return every[:, self.fit.index(self.weights)]

    @cached_property
    def log_f(self) -> Array:
        """At the fit, (W,)."""
        return self.of(np.array(self.fit.values)[None])[0]

    @cached_property
    def draws(self) -> Array:
        """Refitted under noise, (B, W)."""
        return self._refitted(self.fit.fitted())

    def draws_with(self, log_f: Array) -> Array:
        """Refitted to draws from the same law with other fractions `log_f` (W,)."""
        values = np.array(self.fit.values)
        one = 2 + int(self.fit.index(1.0)[0])
        values[2 + self.fit.index(self.weights)] = values[one] * np.exp(-values[0] * log_f)
        return self._refitted(
            curve(values[None], np.array(self.fit.group), np.array(self.fit.n))[0]
        )

    def _refitted(self, mean: Array) -> Array:
        return self.of(self.fit.refit(mean + self.fit.noise_sd() * self.noise))


def same_runs(
    cells: Cells, fit: JointLawFit, others: Cells, other: JointLawFit, n: str
) -> NDArray[np.intp]:
    """Rows (s, 2) of two laws whose cells come from the same runs."""

    def runs(cells: Cells, fit: JointLawFit) -> list[str]:
        of = {(p, size): ids for p, size, ids in cells[["p", n, "runs"]].itertuples(index=False)}
        return [of[fit.p[group], size] for group, size in zip(fit.group, fit.n, strict=True)]

    place = {ids: row for row, ids in enumerate(runs(cells, fit))}
    found = [(place[ids], row) for row, ids in enumerate(runs(others, other)) if ids in place]
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def contrast(log_ratio: Array, draws: Array, alternatives: list[tuple[int, Array]]) -> Measures:
    """Mean and largest of log ratios (W,), with noise (B, W) and alternatives [(sign, (B, W))]."""
    value = float(log_ratio.mean())
    deviations = draws.mean(1) - value
    powers = [power(under.mean(1), deviations, sign) for sign, under in alternatives]
    return {
        "mean_log_ratio": measure(value, deviations),
        "max_log_ratio": Measure(value=float(np.abs(log_ratio).max())),
        "power": Measure(value=min(powers)),
    }


def slope_on(
    laws: Sequence[Fractions], similarity: Array, effect: float
) -> tuple[Measure, Measure, Measure]:
    """Slope of the mean log f of several laws on the similarity of their languages.

    Returns
    -------
    slope, spread of the mean log f, power to see `effect`
    """
    away = similarity - similarity.mean()
    slope_of = away / (away**2).sum()

    def slopes(draws: Sequence[Array]) -> Array:
        return np.tensordot(slope_of, np.array([each.mean(1) for each in draws]), 1)

    seen = np.array([law.log_f for law in laws])  # (cohorts, W)
    value = float(slope_of @ seen.mean(1))
    deviations = slopes([law.draws for law in laws]) - value
    powers = []
    for sign in (1, -1):
        tilted = seen.mean(0) + sign * effect * away[:, None]
        under = slopes([law.draws_with(f) for law, f in zip(laws, tilted, strict=True)])
        powers.append(power(under, deviations, sign))
    spread = Measure(value=float(np.ptp(seen.mean(1))))
    return measure(value, deviations), spread, Measure(value=min(powers))


def interpolated(cells: Cells, weights: Sequence[float]) -> int:
    """How many sizes at each of the weights, at least, have a loss that a single pair also has.

    A fraction is read off the losses of single-pair models. Beyond the range of those losses it is
    an extrapolation.
    """
    single = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(single.min(), single.max())
    return min(int((inside & (cells["p"] == p)).sum()) for p in weights)


def cells_within(cells: Cells, weights: Sequence[float]) -> Cells:
    """Cells of some weights whose losses lie among those of the single pair, two or more a weight.

    Beyond these losses a fraction is an extrapolation.
    """
    observed = cells.loc[cells["p"] == 1, "cross_entropy"]
    inside = cells["cross_entropy"].between(observed.min(), observed.max())
    used = cells[cells["p"].isin(weights) & inside]
    return used.groupby("p").filter(lambda rows: len(rows) >= 2)


def slope_of_fraction(
    used: Cells,
    laws: Mapping[float, PowerLawFit],
    n: str,
    effect: float,
    errors: Errors,
    draws: int,
) -> Measures:
    """One slope for all weights, an intercept for each, with the power to see `effect`.

    Parameters
    ----------
    used
        From `cells_within`.
    laws
        Eq. 6 at each weight that is asked for, and at 1.

    Raises
    ------
    NotIdentified
        When more than a tenth of the losses under noise have no fraction.
    """
    one = laws[1.0]
    sd = pooled_sd(laws.values())
    log_n, loss = np.log(used[n].to_numpy(dtype=float)), used["cross_entropy"].to_numpy()
    _, group = np.unique(used["p"], return_inverse=True)
    single = np.array(one.values)

    def slopes(curve: Array, losses: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            log_f = -np.log((losses - curve[:, 1:2]) / curve[:, 2:3]) / curve[:, :1] - log_n
        return _pooled_slope(log_n, log_f, group)

    def drawn(mean: Array, seed: int) -> Array:
        return noisy(mean, sd / np.sqrt(error_weights(errors, mean)), seed, draws)

    curves = one.refit(drawn(one.fitted(), seed=0))
    value = slopes(single[None], loss[None])[0]
    mean = np.concatenate([laws[p].predict(size) for p, size in used[["p", n]].to_numpy()])
    centre = slopes(single[None], mean[None])[0]
    deviations = slopes(curves, drawn(mean, seed=1)) - centre
    deviations = deviations[np.isfinite(deviations)]
    if not np.isfinite(value) or len(deviations) < 0.9 * len(curves):
        raise NotIdentified(
            "more than a tenth of the noisy losses lie below the single pair's L_inf"
        )

    log_f = -np.log((loss - single[1]) / single[2]) / single[0] - log_n
    level = (np.bincount(group, log_f) / np.bincount(group))[group]
    middle = (np.bincount(group, log_n) / np.bincount(group))[group]
    powers = []
    for sign in (1, -1):
        moved = log_n + level + sign * effect * (log_n - middle)
        around = single[1] + single[2] * np.exp(-single[0] * moved)
        tilted = slopes(curves, drawn(around, seed=2))
        powers.append(power(tilted[np.isfinite(tilted)], deviations, sign))
    return {
        "slope": measure(value, deviations),
        "cells": Measure(value=len(used)),
        "power": Measure(value=min(powers)),
    }


def _pooled_slope(x: Array, y: Array, group: NDArray[np.intp]) -> Array:
    """One slope and an intercept a group, for each row of `y` (B, m); NaN in `y` gives NaN."""
    member = np.eye(int(group.max()) + 1)[group]
    counts = member.sum(0)
    x = x - (member @ ((x @ member) / counts))
    return (y @ x) / (x @ x)
