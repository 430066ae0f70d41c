"""The joint law over mixture weights: Equation 7, and the per-weight laws it replaces (Eq. 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import (
    OF_ONE,
    Array,
    Direction,
    Errors,
    columns,
    error_weights,
    run_names,
    vector,
)
from mnmt_repro.laws.fit_result import Floats, r_squared
from mnmt_repro.laws.power_law import PowerLawFit, fit_power_law
from mnmt_repro.laws.shared_exponent import SharedExponentFit, fit_shared_exponent
from mnmt_repro.laws.uncertainty import Method

P_DIGITS = 9
"""Decimals of a mixture weight: those that agree in all of them are one weight."""
MOST_FRACTION = 1.02
"""A larger f is read as a fault of the rows: a pair would have more than the whole model."""


@dataclass(frozen=True, kw_only=True)
class JointLawFit(SharedExponentFit):
    """``loss = beta[p] * n**-alpha + l_inf``, fitted to all weights of one pair at once.

    Attributes
    ----------
    p : mixture weights, ascending; `beta[p]` follows their order; empty where `groups` are
    groups : names of what has a multiplier in place of a weight, such as whole mixtures
    """

    inputs = ("p", "n")

    p: Floats
    groups: tuple[str, ...] = ()

    @property
    def beta(self) -> dict[Any, float]:
        """Multiplier of each mixture weight, or of each of the `groups`."""
        return dict(zip(self.groups or self.p, self.values[2:], strict=True))

    def index(self, p: ArrayLike) -> NDArray[np.intp]:
        """Position of each weight (or group) among the fitted; `InputError` for one not fitted."""
        known: tuple[Any, ...] = self.groups or self.p
        wanted = np.atleast_1d(np.asarray(p, dtype=object if self.groups else float))
        keys = list(map(str, wanted)) if self.groups else np.round(wanted, P_DIGITS).tolist()
        place = {key: k for k, key in enumerate(known)}
        if absent := [key for key in keys if key not in place]:
            hint = "" if self.groups else "; use fit_fraction for other weights"
            raise InputError(f"p: {absent[0]} was not fitted; there are {list(known)}{hint}")
        return np.array([place[key] for key in keys], dtype=np.intp)

    def rows_at(self, *at: ArrayLike) -> Array:
        """Rows (m, 2) at fitted weights (or groups) and sizes."""
        p, n = at
        size = vector("n", np.atleast_1d(n), positive=True)
        return np.column_stack(np.broadcast_arrays(self.index(p), size))

    def curve_names(self) -> list[str]:
        """Weight, or group, of each row."""
        names = self.groups or tuple(f"{p:g}" for p in self.p)
        return [names[g] for g in self.group]

    def doubts(self) -> tuple[str, ...]:
        """Why the effective fraction is not identified, and the runs to add; empty where it is.

        None either where the multipliers are of other `groups` than weights.
        """
        if self.groups or len(self.p) < 2:
            return ()
        if 1.0 not in self.p:
            return (runs_alone(self.label, self.n),)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.array(self.values[2:])
            f = (beta[self.p.index(1.0)] / beta) ** (1 / self.alpha)
        return tuple(
            f"f({p:g}) is {value:.2f}, more than the whole model; add seeds at p = 1 and p = {p:g}"
            for p, value in zip(self.p, f, strict=True)
            if value > MOST_FRACTION
        )

    def r2_by_weight(self) -> dict[float, float]:
        """Share of the variance explained among the rows of each weight."""
        group, loss, w = np.array(self.group), self.observed(), self.row_weights()
        squared = w * (loss - self.fitted()) ** 2
        return {
            p: r_squared(loss[group == g], float(squared[group == g].sum()), w[group == g])
            for g, p in enumerate(self.p)
        }


def fit_joint_law(
    frame: pd.DataFrame,
    *,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    ceiling: float | None = None,
    errors: Errors = "absolute",
    by: str = "p",
    groups: str | None = None,
    label: str = "",
) -> JointLawFit:
    """Fit Eq. 7: one exponent and one irreducible loss for a pair, one multiplier a weight.

    ``loss = beta[p] * n**-alpha + l_inf``; of a quality (``direction="max"``),
    ``score = l_inf - beta[p] * n**-alpha``.

    Parameters
    ----------
    frame : DataFrame
        Rows of ONE pair and test set: columns ``p`` and those named by `n` and `loss`. Rows with
        p = 0 are left out and counted in `left_out`, which the result shows. Seeds are further
        rows.
    n, loss : column names
        Give ``n="n_total"`` to fit against all parameters, embeddings included.
    direction, ceiling, label : as in `fit_power_law`
    errors : ``"absolute"`` or ``"relative"``
        Whose squares are least: those of the errors, or of their share of the loss. Where losses
        fall to a fraction of the largest, absolute errors leave the law to the worst models.
    by : column name
        Each of its values has a multiplier of its own. Other than ``"p"`` where the mixture of
        several pairs or domains is not one number; its values are then taken as names. A column
        ``p`` is not needed then; where there is one, rows with p = 0 are an error.
    groups : column name, optional
        Run of each row. Rows of one run, such as its checkpoints or test sets, are not independent;
        standard errors and intervals then come from runs.

    Returns
    -------
    JointLawFit
        With ``identified=False`` and a reason when the rows leave no unique answer.

    Raises
    ------
    InputError
        Missing columns, rows of several pairs, values that are not finite, p outside [0, 1].

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> cells = [(n, p) for n in (1e4, 1e5, 1e6) for p in (0.5, 1.0)]
    >>> runs = pd.DataFrame(cells, columns=["n", "p"])
    >>> runs["loss"] = np.where(runs["p"] == 1, 40.0, 50.0) * runs["n"] ** -0.3 + 1.5
    >>> fit = fit_joint_law(runs, n="n", loss="loss")
    >>> {name: round(value, 3) for name, value in fit.params.items()}
    {'alpha': 0.3, 'l_inf': 1.5, 'beta[0.5]': 50.0, 'beta[1]': 40.0}
    """
    rows, key = grouped_rows(frame, n, loss, by)
    seen, group = np.unique(key, return_inverse=True)
    y = vector(loss, rows[loss])
    return fit_shared_exponent(
        JointLawFit.blank(
            ("alpha", "l_inf", *(f"beta[{_name(value)}]" for value in seen)),
            y,
            n=vector(n, rows[n], positive=True),
            weights=error_weights(errors, y),
            group=group,
            direction=direction,
            ceiling=ceiling,
            p=seen if by == "p" else (),
            groups=() if by == "p" else tuple(seen.tolist()),
            left_out=len(frame) - len(rows),
            runs=row_runs(rows, groups),
            label=label,
        )
    )


def fit_per_weight_laws(
    frame: pd.DataFrame,
    *,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
    direction: Direction = "min",
    ceiling: float | None = None,
    errors: Errors = "absolute",
    by: str = "p",
) -> dict[Any, PowerLawFit]:
    """Fit Eq. 6 at each weight alone: 3 parameters a weight, 24 for the paper's eight.

    ``loss = beta * n**-alpha + l_inf``, all three anew for each p. Parameters and errors as
    `fit_joint_law`.

    Returns
    -------
    dict of p (or of the values of `by`) to PowerLawFit, in ascending order.
    """
    rows, key = grouped_rows(frame, n, loss, by)
    return {
        (float(value) if by == "p" else str(value)): fit_power_law(
            rows[n][key == value],
            rows[loss][key == value],
            errors=errors,
            direction=direction,
            ceiling=ceiling,
            label=f"{by} = {_name(value)}",
        )
        for value in np.unique(key)
    }


def coefficients(
    fits: Mapping[float, PowerLawFit],
    *,
    method: Method = "perturbation",
    draws: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Tabulate the coefficients of per-weight laws with their standard deviations (Figure 4).

    Parameters
    ----------
    fits : from `fit_per_weight_laws`
    method, draws, seed : of the standard deviation, which is half the central 68 % of refits
        (`uncertainty.robust_sd`); the paper's is ``"perturbation"``, and ``"t"`` takes the standard
        error of the fit

    Returns
    -------
    DataFrame
        ``p, parameter, value, std, held, identified``, three rows a weight. At every weight the
        same seed draws the noise.
    """
    parts = []
    for p, fit in fits.items():
        if not fit.identified:
            std = dict.fromkeys(fit.names, math.nan)
        elif method == "t":
            std = fit.stderr
        else:
            std = fit.draws(method, draws=draws, seed=seed).spread()
        table = {"p": p, "parameter": fit.names, "value": fit.values}
        held = [name in fit.held for name in fit.names]
        parts.append(
            pd.DataFrame({**table, "std": std.values(), "held": held, "identified": fit.identified})
        )
    return pd.concat(parts, ignore_index=True)


def runs_alone(label: str, n: Floats) -> str:
    """Which runs to add where no row has p = 1, for a pair of this name and its sizes."""
    ends = dict.fromkeys(f"{size:,.6g}" for size in (min(n), max(n)))
    sizes = f"size{'s from' * (len(ends) > 1)} {' to '.join(ends)}"
    return f"no row has p = 1; add runs of {label or 'the pair'} alone at {sizes}"


def _name(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:.{P_DIGITS}g}"


def grouped_rows(
    frame: pd.DataFrame, n: str, loss: str, by: str
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Rows of one pair with p above 0, and the value of the column `by` in each; checked.

    Raises
    ------
    InputError
        Rows with p = 0 where `by` is another column. Such a law can describe them, so leaving them
        out is for the caller to decide.
    """
    if by == "p":
        return pair_rows(frame, n, loss)
    columns(frame, [by])
    # The column may be one of which a law reads one value only, were it not told apart here.
    others = frame.drop(columns=by)
    rows, _ = pair_rows(others if "p" in frame.columns else others.assign(p=1.0), n, loss)
    if zero := len(frame) - len(rows):
        raise InputError(
            f"p: {zero} rows have p = 0, and a law by {by} could describe them; remove them, or "
            f"drop the column p to fit them too"
        )
    return frame, frame[by].astype(str).to_numpy()


def row_runs(rows: pd.DataFrame, groups: str | None) -> tuple[str, ...]:
    """Run of each row, from the column `groups`."""
    if groups is None:
        return ()
    columns(rows, [groups])
    return run_names(rows[groups], len(rows))


def pair_rows(frame: pd.DataFrame, n: str, loss: str) -> tuple[pd.DataFrame, Array]:
    """Rows of one pair with p above 0, and their p; checked.

    Weights are rounded to `P_DIGITS` decimals, so that 0.1 and 1 - 0.9 are one weight.
    """
    columns(frame, ["p", n, loss], "; name its own as n=... and loss=..., and call weights p")
    for name in OF_ONE:
        if name in frame.columns and frame[name].nunique(dropna=False) > 1:
            raise InputError(
                f"{name}: {sorted(map(str, frame[name].unique()))}; a law is of one, filter first"
            )
    p = vector("p", frame["p"])
    if (p < 0).any() or (p > 1).any():
        row = int(np.flatnonzero((p < 0) | (p > 1))[0])
        raise InputError(f"p: row {row} is {p[row]:g}, and must lie in [0, 1]")
    p = np.round(p, P_DIGITS)
    if not (p > 0).any():
        raise InputError("p: all rows are zero-shot (p = 0), which no law describes")
    return frame[p > 0], p[p > 0]
