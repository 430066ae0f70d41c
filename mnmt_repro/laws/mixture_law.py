"""The law of any mixture of pairs or domains: what the text of each is worth to one of them.

The paper's laws know a pair's own weight alone. Here the other pairs count too, each by a factor,
so that losses of mixtures that nobody trained can be predicted, of any number of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import Array, Errors, columns, error_weights, of_one, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.joint_law import P_DIGITS
from mnmt_repro.laws.law import Box, Law, Optimum, is_flat

SUMS_TO = 2e-3
"""How far weights may sum to other than 1, which rounding in a table can do."""
_LEAST = 1e-12  # effective weight: none at all would cost an infinite loss


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureLaw(Law):
    """``loss = (l_inf + beta * n**-alpha) * q**-gamma`` of the effective weight q.

    ``q = p + sum of t[other] * p[other]``: text of another pair is worth ``t[other] >= 0`` times as
    much of the own. The irreducible loss is that of the pair alone. At a single size the law is
    ``beta * q**-gamma``.

    Searched as theta = (log beta', gamma, t..., alpha, l_inf), with sizes divided by their
    geometric mean.

    Attributes
    ----------
    n : (m,)
    mixture : (m, K)
        Weights of all pairs, the own first.
    pairs : (K,)
        Their names in this order.
    """

    n: Array
    mixture: Array
    pairs: tuple[str, ...]

    inputs = ("mixture", "n")
    logarithms = (0,)

    @property
    def sized(self) -> bool:
        """Whether there are several sizes, and so a law of the size."""
        return bool(np.ptp(self.n) > 0)

    @property
    def p(self) -> Array:
        """Weight of the own pair at each row, (m,)."""
        return self.mixture[:, 0]

    @property
    def names(self) -> tuple[str, ...]:
        size = ("alpha", "l_inf") if self.sized else ()
        return ("beta", "gamma", *(f"t[{other}]" for other in self.pairs[1:]), *size)

    @property
    def formula(self) -> str:
        size = "(l_inf + beta * n**-alpha)" if self.sized else "beta"
        return f"loss = {size} * (p + sum of t[other] * p[other])**-gamma"

    @property
    def rows(self) -> Array:
        return np.column_stack([self.mixture, self.n])

    @property
    def boxes(self) -> tuple[Box, ...]:
        others = [(0.0, 1e3)] * (len(self.pairs) - 1)
        size = [(1e-3, 5.0), (0.0, np.inf)] if self.sized else []
        lower, upper = np.array([(-40.0, 300.0), (0.0, 10.0), *others, *size]).T
        return ((lower, upper),)

    @property
    def shift(self) -> Array:
        shift = np.zeros((len(self.names), len(self.names)))
        if self.sized:
            shift[0, -2] = np.log(self.n).mean()
        return shift

    def _parts(self, theta: Array, rows: Array) -> tuple[Array, Array, Array]:
        """Part of the loss that falls with size, its constant, and q: (..., m) each."""
        k = len(self.pairs)
        q = np.maximum(rows[:, 0] + theta[..., 2 : k + 1] @ rows[:, 1:k].T, _LEAST)
        alpha, l_inf = np.zeros((2, *theta.shape[:-1], 1))
        if self.sized:
            alpha, l_inf = theta[..., -2:-1], theta[..., -1:]
        return np.exp(theta[..., :1] - alpha * self._log_size(rows)), l_inf, q

    def _log_size(self, rows: Array) -> Array:
        return np.asarray(np.log(rows[:, -1]) - np.log(self.n).mean())

    def model(self, theta: Array, rows: Array) -> Array:
        falling, l_inf, q = self._parts(theta, rows)
        return np.asarray((l_inf + falling) * q ** -theta[..., 1:2])

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        falling, l_inf, q = self._parts(theta, self.rows)
        gamma = theta[:, 1:2]
        shape = q**-gamma
        loss = (l_inf + falling) * shape
        others = (-gamma * loss / q)[..., None] * self.mixture[:, 1:]
        size = [-falling * shape * self._log_size(self.rows), shape] if self.sized else []
        slopes = [falling * shape, -loss * np.log(q), *np.moveaxis(others, -1, 0), *size]
        return loss, np.stack(slopes, axis=-1)

    def starts(self, loss: Array) -> Array:
        """Other text is worth little, or a third; half the loss is irreducible, given sizes."""
        size = [0.2, loss.mean() / 2] if self.sized else []
        log_beta, others = np.log(loss.mean() / (1 + self.sized)), len(self.pairs) - 1
        return np.array(
            [[log_beta, gamma, *[t] * others, *size] for gamma, t in ((0.1, 0.05), (0.4, 0.3))]
        )

    def rows_at(self, *at: Any) -> Array:
        mixture, n = at
        if not isinstance(mixture, np.ndarray):
            table = pd.DataFrame([mixture] if isinstance(mixture, Mapping) else mixture)
            mixture = table.reindex(columns=list(self.pairs), fill_value=0.0).to_numpy(float)
        weights = checked_weights(mixture, self.pairs)
        size = vector("n", np.atleast_1d(n), positive=True)
        if not self.sized and (size != self.n[0]).any():
            raise InputError(f"n: the law is of one size, {self.n[0]:,.10g}; fit several sizes")
        return np.column_stack(np.broadcast_arrays(*weights.T, size))

    def columns_at(self, *at: Any) -> dict[str, Array]:
        return dict(zip((*self.pairs, "n"), self.rows_at(*at).T, strict=True))

    def curve_names(self) -> list[str]:
        return ["/".join(f"{p:.3g}" for p in row) for row in self.mixture]

    def cannot(self, loss: Array) -> str:
        known = np.unique(self.mixture, axis=0)
        if len(known) <= len(self.pairs):
            return f"{len(known)} mixtures of {len(self.pairs)} pairs are too few; train more"
        for pair, weight in zip(self.pairs, known.T, strict=True):
            if np.ptp(weight) == 0:
                return f"the weight of {pair} is {weight[0]:g} in every mixture; vary it"
        if len(np.unique(self.n)) == 2:
            return "2 sizes cannot determine alpha and l_inf; train a third, or fit each size alone"
        return "the loss is flat" if is_flat(loss) else ""

    def doubt(self, best: Optimum, loss: Array) -> str:
        if self.sized and best.held[-2]:
            return "alpha ran to an end of its range: the loss does not fall with size"
        if best.held[1] or self.several(best):
            return (
                "several parameter sets fit equally well: the mixtures do not show what the other "
                "pairs are worth; vary their weights independently"
            )
        return "" if best.converged else "the optimiser did not converge"


def checked_weights(mixture: Array, pairs: Sequence[str]) -> Array:
    """Weights (m, K), rounded; `InputError` unless those of each row are shares of one whole."""
    weights = np.round(mixture, P_DIGITS)  # 1 - 0.8 - 0.2 is below 0
    bad = ~((weights >= 0).all(1) & (np.abs(weights.sum(1) - 1) <= SUMS_TO))  # true for NaN
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        said = ", ".join(f"{pair} {p:g}" for pair, p in zip(pairs, weights[row], strict=True))
        raise InputError(
            f"mixture: row {row} has {said}; give every pair its weight, from 0, with a sum of 1"
        )
    return weights


def fit_mixture_law(
    frame: pd.DataFrame,
    pair: str,
    pairs: Sequence[str],
    *,
    n: str | None = "n_non_embedding",
    loss: str = "cross_entropy",
    errors: Errors = "absolute",
    label: str = "",
) -> LawFit[MixtureLaw]:
    """Fit ``loss = (l_inf + beta * n**-alpha) * q**-gamma``, ``q = p + sum t[other] * p[other]``.

    The mixture is the unit of all intervals: losses of one mixture at several sizes err together.
    Rows in which the pair has no weight are fitted too.

    Parameters
    ----------
    frame : DataFrame
        Rows of ONE pair or domain: a column of weights for each of `pairs`, and those named by `n`
        and `loss`. Seeds are further rows.
    pair : the pair whose losses these are
    pairs : all pairs, two or more; in each row their weights sum to 1
    n : None where all models have one size; predictions then take n = 1
    errors : as in `fit_joint_law`

    Returns
    -------
    LawFit of a MixtureLaw
        ``predict(mixture, n)`` takes a dict of pair to weight, a frame with a column a pair, or
        weights (m, K) with the own pair first.
        ``identified=False`` with a reason where there are fewer mixtures than parameters, or their
        weights do not vary, or not independently.

    Raises
    ------
    InputError
        Missing columns, losses or sizes not above zero, weights that do not sum to 1.

    Examples
    --------
    >>> import itertools
    >>> steps = [w for w in itertools.product((0.1, 0.3, 0.5, 0.8), repeat=2) if sum(w) < 1]
    >>> runs = pd.DataFrame(steps, columns=["deu", "fra"]).eval("zho = 1 - deu - fra")
    >>> runs["loss"] = 2.0 * (runs["deu"] + 0.3 * runs["fra"] + 0.1 * runs["zho"]) ** -0.2
    >>> law = fit_mixture_law(runs, "deu", ["deu", "fra", "zho"], n=None, loss="loss")
    >>> {name: round(value, 3) for name, value in law.params.items()}
    {'beta': 2.0, 'gamma': 0.2, 't[fra]': 0.3, 't[zho]': 0.1}
    >>> law.predict({"deu": 1.0}, 1).round(3).tolist()
    [2.0]
    """
    if pair not in pairs or len(set(pairs)) < 2:
        raise InputError(f"pairs: {list(pairs)}; name {pair} and at least one other")
    ordered = (pair, *dict.fromkeys(other for other in pairs if other != pair))
    columns(frame, [*ordered, loss, *([n] if n else [])])
    of_one(frame)
    y = vector(loss, frame[loss], positive=True)
    size = vector(n, frame[n], positive=True) if n else np.ones(len(y))
    law = MixtureLaw(
        weights=error_weights(errors, y),
        n=size,
        mixture=checked_weights(frame[list(ordered)].to_numpy(float), ordered),
        pairs=ordered,
    )
    return solve.fit(law, y, runs=tuple(law.curve_names()), label=label)


def leave_one_mixture_out(fit: LawFit[MixtureLaw]) -> pd.DataFrame:
    """Predict every mixture from a fit to all others.

    Returns
    -------
    DataFrame
        ``mixture, n, loss, predicted, naive``, in the order of the rows fitted. `naive` is
        the mean loss of the other mixtures at the same size, which a law with a multiplier for each
        mixture cannot better. NaN where the other mixtures give no prediction.
    """
    law, names = fit.law, np.array(fit.runs)
    predicted, naive = np.full((2, len(names)), np.nan)
    for name in set(fit.runs) if len(set(fit.runs)) > 1 else ():
        out = names == name
        rest = replace(law, n=law.n[~out], mixture=law.mixture[~out], weights=law.weights[~out])
        refit = solve.fit(rest, fit.loss[~out], runs=tuple(names[~out]))
        predicted[out] = rest.curve(refit.values, law.rows[out])
        means = pd.Series(fit.loss[~out]).groupby(rest.n).mean()
        naive[out] = means.reindex(law.n[out])
    rows = {"mixture": names, "n": law.n, "loss": fit.loss, "predicted": predicted, "naive": naive}
    return pd.DataFrame(rows)
