"""Laws refitted to losses under noise, which show how far a measure moves.

All draws are Gaussian around a law, with its residual standard deviation, and refitted in one
batched call. An interval is the spread of the refitted measure about its value at the law itself,
laid around the observed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_repro.analysis.intervals import DRAWS, NotIdentified
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.grouped_law import GroupedLawFit
from mnmt_repro.laws.power_law import fit_power_law


def require(fit: LawFit, what: str) -> None:
    """`NotIdentified` unless the fit is identified and leaves residuals."""
    if not fit.identified:
        raise NotIdentified(f"{what}: {fit.reason}")
    if fit.degrees_of_freedom < 1:
        raise NotIdentified(f"{what}: as many parameters as rows")


def noisy(mean: Array, sd: Array | float, seed: int, draws: int = DRAWS) -> Array:
    """Losses (draws, m) drawn around `mean` (m,), with one `sd` or one for each row (m,)."""
    return mean + sd * np.random.default_rng(seed).standard_normal((draws, len(mean)))


def refits(fit: GroupedLawFit, seed: int, draws: int = DRAWS) -> Array:
    """Parameters (draws, P) of the law refitted to draws around itself."""
    return fit.refit(noisy(fit.fitted(), fit.noise_sd(), seed, draws))


def curve(values: Array, group: NDArray[np.intp], n: Array) -> Array:
    """Losses (B, m) of laws with parameters alpha, l_inf, beta... (B, P)."""
    return values[:, 1:2] + values[:, 2 + group] * n ** -values[:, :1]


def refit_power_laws(
    sizes: Sequence[Array], losses: Sequence[Array], errors: Errors = "absolute"
) -> list[Array]:
    """Fit Eq. 6 to many losses (B, m) at each of several sets of sizes (m,).

    Sets that are alike share one call. Relative errors are shares of the mean of the B losses.

    Returns
    -------
    list of (B, 3)
        alpha, l_inf, beta, in the order given.
    """
    alike: dict[tuple[tuple[float, ...], ...], list[int]] = {}
    for i, (size, drawn) in enumerate(zip(sizes, losses, strict=True)):
        key = tuple(size), tuple(error_weights(errors, drawn.mean(0)))
        alike.setdefault(key, []).append(i)
    found: dict[int, Array] = {}
    for (n, weights), members in alike.items():
        stacked = np.concatenate([losses[i] for i in members])
        first = np.abs(stacked[0])  # for its sizes; noise may reach below zero
        law = fit_power_law(n, first, weights=weights)
        values = law.refit(stacked)
        parts = np.split(values, np.cumsum([len(losses[i]) for i in members])[:-1])
        found.update(zip(members, parts, strict=True))
    return [found[i] for i in range(len(sizes))]


def pooled_sd(fits: Iterable[LawFit]) -> float:
    """Residual standard deviation of several laws together; NaN where none leaves residuals."""
    known = [fit for fit in fits if fit.identified]
    spare = sum(fit.degrees_of_freedom for fit in known)
    return float(np.sqrt(sum(fit.rss for fit in known) / spare)) if spare > 0 else float("nan")
