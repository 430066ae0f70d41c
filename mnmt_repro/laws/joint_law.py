"""The joint law over mixture weights: Equation 7, and the per-weight laws it replaces (Eq. 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mnmt_repro.errors import InputError
from mnmt_repro.laws import solve
from mnmt_repro.laws.checks import (
    Array,
    Direction,
    Errors,
    columns,
    error_weights,
    of_one,
    run_names,
    vector,
)
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.law import runs_alone
from mnmt_repro.laws.power_law import PowerLaw, PowerLawFit, check_direction, fit_power_law
from mnmt_repro.laws.uncertainty import robust_sd

P_DIGITS = 9
"""Decimals of a mixture weight: those that agree in all of them are one weight."""


class Reading(TypedDict, total=False):
    """What a law of a frame takes: columns of sizes and losses, and what the losses are."""

    n: str
    loss: str
    direction: Direction
    ceiling: float | None
    errors: Errors


def columns_of(of: Reading) -> tuple[str, str]:
    """Columns of sizes and of losses."""
    return of.get("n", "n_non_embedding"), of.get("loss", "cross_entropy")


@dataclass(frozen=True, kw_only=True, eq=False)
class JointLaw(PowerLaw):
    """``loss = beta[p] * n**-alpha + l_inf``, at all weights of one pair at once.

    Attributes
    ----------
    keys : tuple
        What has a multiplier: the mixture weights, ascending, or names of groups.
    by_weight : bool
        Whether `keys` are weights.
    """

    keys: tuple[Any, ...] = ()
    by_weight: bool = True

    formula = "loss = beta[p] * n**-alpha + l_inf"
    inputs = ("p", "n")

    @property
    def names(self) -> tuple[str, ...]:
        return ("alpha", "l_inf", *(f"beta[{_name(key)}]" for key in self.keys))

    @property
    def p(self) -> tuple[float, ...]:
        """Mixture weights, ascending; empty where groups have the multipliers."""
        return self.keys if self.by_weight else ()

    def index(self, p: ArrayLike) -> NDArray[np.intp]:
        """Position of each weight (or group) among the fitted; `InputError` for one not fitted."""
        wanted = np.atleast_1d(np.asarray(p, dtype=float if self.by_weight else object))
        keys = np.round(wanted, P_DIGITS).tolist() if self.by_weight else list(map(str, wanted))
        place = {key: k for k, key in enumerate(self.keys)}
        if absent := [key for key in keys if key not in place]:
            hint = "; use fit_fraction for other weights" if self.by_weight else ""
            raise InputError(f"p: {absent[0]} was not fitted; there are {list(self.keys)}{hint}")
        return np.array([place[key] for key in keys], dtype=np.intp)

    def rows_at(self, *at: ArrayLike) -> Array:
        p, n = at
        size = vector("n", np.atleast_1d(n), positive=True)
        return np.column_stack(np.broadcast_arrays(self.index(p), size))

    def curve_names(self) -> list[str]:
        names = [f"{key:g}" if self.by_weight else key for key in self.keys]
        return [names[g] for g in self.group]

    def fraction_doubts(self, held: tuple[str, ...], label: str) -> tuple[str, ...]:
        # Of groups other than weights none is a pair's share of the model.
        if len(self.p) < 2:
            return ()
        if 1.0 not in self.p:
            return (runs_alone(label, self.n),)
        return tuple(
            f"by {bound}, no loss at this weight falls with size; check its rows"
            for bound in held
            if bound.startswith("beta")
        )


def log_fraction(values: Array, one: int) -> Array:
    """Log f(p) (B, W), Eq. 10: (log beta(1) - log beta(p)) / alpha, at every weight of a joint law.

    Parameters
    ----------
    values : (B, 2 + W)
        Parameters in the order of the law: alpha, L_inf, a beta for each weight.
    one
        Which of the weights is the single pair's, p = 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_beta = np.log(values[:, 2:])
        return (log_beta[:, one : one + 1] - log_beta) / values[:, :1]


JointLawFit = LawFit[JointLaw]


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
    n : str
        Column of the sizes. Give ``"n_total"`` to fit against all parameters, embeddings included.
    loss : str
        Column of the losses.
    direction, ceiling, label : as in `fit_power_law`
    errors : ``"absolute"`` or ``"relative"``
        Whose squares are least: those of the errors, or of their share of the loss. Where losses
        fall to a fraction of the largest, absolute errors leave the law to the worst models. The
        command `fit` has the same default. Verdicts on runs with a final decay take relative ones.
    by : column name
        Each of its values has its own multiplier. Other than ``"p"`` where the mixture of
        several pairs or domains is not one number; its values are then taken as names, and all
        rows are fitted.
    groups : column name, optional
        Run of each row. Rows of one run, such as its checkpoints or test sets, are not independent;
        standard errors and intervals then come from runs.

    Returns
    -------
    LawFit of a JointLaw
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
    rows, key = pair_rows(frame, n, loss, by)
    seen, group = np.unique(key, return_inverse=True)
    size, y = vector(n, rows[n], positive=True), vector(loss, rows[loss])
    check_direction(y, direction, ceiling)
    law = JointLaw(
        weights=error_weights(errors, y), direction=direction, ceiling=ceiling, n=size,
        group=group, keys=tuple(seen.tolist()), by_weight=by == "p",
    )  # fmt: skip
    left_out = len(frame) - len(rows)
    return solve.fit(law, y, left_out=left_out, runs=row_runs(rows, groups), label=label)


def fit_per_weight_laws(
    frame: pd.DataFrame, *, by: str = "p", **of: Unpack[Reading]
) -> dict[Any, PowerLawFit]:
    """Fit Eq. 6 at each weight alone: 3 parameters a weight, 24 for the paper's eight.

    ``loss = beta * n**-alpha + l_inf``, all three anew for each p. Parameters (`n`, `loss`,
    `direction`, `ceiling`, `errors`) and errors raised as `fit_joint_law`.

    Returns
    -------
    dict of p (or of the values of `by`) to the fit of a PowerLaw, in ascending order.
    """
    n, loss = columns_of(of)
    rows, key = pair_rows(frame, n, loss, by)
    kind: Any = {name: value for name, value in of.items() if name not in ("n", "loss")}
    return {
        (float(value) if by == "p" else str(value)): fit_power_law(
            rows[n][key == value], rows[loss][key == value], label=f"{by} = {_name(value)}", **kind
        )
        for value in np.unique(key)
    }


def coefficients(fits: Mapping[float, PowerLawFit], *, draws: int = 10_000) -> pd.DataFrame:
    """Tabulate the coefficients of per-weight laws with their standard deviations (Figure 4).

    Parameters
    ----------
    fits : from `fit_per_weight_laws`
    draws : number of refits to losses with the paper's noise (``"perturbation"``), of which half
        the central 68 % is the standard deviation (`uncertainty.robust_sd`)

    Returns
    -------
    DataFrame
        ``p, parameter, value, std, held, identified``, three rows a weight. At every weight the
        same seed draws the noise.
    """
    parts = []
    for p, fit in fits.items():
        std = np.full(len(fit.names), math.nan)
        if fit.identified:
            std = robust_sd(fit.draws("perturbation", draws=draws).to_numpy())
        table = {"p": p, "parameter": fit.names, "value": fit.values}
        held = [name in fit.held for name in fit.names]
        parts.append(
            pd.DataFrame({**table, "std": std, "held": held, "identified": fit.identified})
        )
    return pd.concat(parts, ignore_index=True)


def _name(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:.{P_DIGITS}g}"


def row_runs(rows: pd.DataFrame, groups: str | None) -> tuple[str, ...]:
    """Run of each row, from the column `groups`."""
    if groups is None:
        return ()
    columns(rows, [groups])
    return run_names(rows[groups], len(rows))


def pair_rows(
    frame: pd.DataFrame, n: str, loss: str, by: str = "p"
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Rows of one pair with p above 0, and their p, checked; or all rows, and another column.

    Weights are rounded to `P_DIGITS` decimals, so that 0.1 and 1 - 0.9 are one weight.
    """
    columns(frame, [by, n, loss], "; name its own as n=... and loss=..., and call weights p")
    of_one(frame.drop(columns=by))
    if by != "p":
        return frame, frame[by].astype(str).to_numpy()
    p = vector("p", frame["p"])
    if (outside := (p < 0) | (p > 1)).any():
        row = frame.index[outside][0]
        raise InputError(f"p: row {row} is {p[outside][0]:g}, and must lie in [0, 1]")
    p = np.round(p, P_DIGITS)
    if not (p > 0).any():
        raise InputError("p: all rows are zero-shot (p = 0), which no law describes")
    return frame[p > 0], p[p > 0]
