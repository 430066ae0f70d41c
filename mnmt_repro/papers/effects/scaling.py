"""Loss against size: Paper A's Figures 2 to 5 and those of its appendices B and C.

Each figure is drawn from tidy frames: `observed` for the points, `per_weight_curves` or
`joint_curves` for the laws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    JointLawFit,
    PowerLawFit,
    coefficients,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fit_result import LawFit, r_squared
from mnmt_repro.laws.selection import pooled_aicc
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.cells import check_one, mean_losses
from mnmt_repro.papers.effects.fit_quality import size_left_out
from mnmt_repro.papers.effects.framed import Rows, framed

PairFits = Mapping[str, tuple[Mapping[float, PowerLawFit], JointLawFit]]
"""Pair to its laws, one for each weight and the joint one; from `fit_pairs`."""
_CURVE_POINTS = 24
SIZE_TITLES = {
    "n_non_embedding": "non-embedding parameters N",
    "n_total": "all parameters, embeddings included",
}
HELD_OUT = "relative error on a size held out"


def observed(rows: pd.DataFrame, n: str = "n_non_embedding") -> pd.DataFrame:
    """Observed losses as the figures plot them: the mean over seeds at each pair, weight and size.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain.
    n
        Which parameter count is the size.

    Returns
    -------
    DataFrame
        ``pair, p, n, loss, seeds``; zero-shot rows (p = 0) are left out.

    Raises
    ------
    InputError
        When the rows are of several cohorts, test sets or domains, or there are none.
    """
    if rows.empty:
        raise InputError("no rows to draw: no run of this cohort is stored for this selection")
    check_one(rows, "cohort", "test_set", "domain")
    return mean_losses(rows, "pair", "p", n=n, seeds=("cross_entropy", "size"))


def fit_pairs(points: pd.DataFrame, errors: Errors = "absolute") -> PairFits:
    """Both laws of each pair: one fit a weight (Eq. 6), and the joint law (Eq. 7).

    `errors` as of `laws.fit_joint_law`.
    """
    return {
        str(pair): (
            fit_per_weight_laws(group, n="n", loss="loss", errors=errors),
            fit_joint_law(group, n="n", loss="loss", errors=errors),
        )
        for pair, group in points.groupby("pair")
    }


def _grid(points: pd.DataFrame) -> np.ndarray:
    return np.geomspace(points["n"].min(), points["n"].max(), _CURVE_POINTS)


@framed("pair", "p", "n", "loss")
def per_weight_curves(points: pd.DataFrame, fits: PairFits) -> Rows:
    """Eq. 6 at each pair and weight over the range of sizes: ``pair, p, n, loss``."""
    grid = _grid(points)
    for pair, (laws, _) in fits.items():
        for p, law in laws.items():
            if np.isfinite(law.values).all():
                yield pd.DataFrame({"pair": pair, "p": p, "n": grid, "loss": law.predict(grid)})


@framed("pair", "p", "n", "loss")
def joint_curves(points: pd.DataFrame, fits: PairFits) -> Rows:
    """Eq. 7 at each pair and weight over the range of sizes: ``pair, p, n, loss``."""
    grid = _grid(points)
    for pair, (_, law) in fits.items():
        for p in law.law.p if np.isfinite(law.values).all() else ():
            yield pd.DataFrame({"pair": pair, "p": p, "n": grid, "loss": law.predict(p, grid)})


@framed()
def reducible_loss(points: pd.DataFrame, fits: PairFits) -> Rows:
    """Loss minus the joint law's irreducible loss: ``pair, p, n, loss, reducible, law``."""
    for pair, group in points.groupby("pair"):
        law = fits[str(pair)][1]
        limit = law.params["l_inf"]
        predicted = [law.predict(p, n)[0] for p, n in zip(group["p"], group["n"], strict=True)]
        yield group.assign(reducible=group["loss"] - limit, law=np.array(predicted) - limit)


def coefficient_table(fits: PairFits) -> pd.DataFrame:
    """Coefficients of every law for Figure 4.

    Returns
    -------
    DataFrame
        ``pair, p, parameter, value, std, low, high, joint, held, identified``; `std` is the paper's
        (footnote 5: refits under 1 % noise), `joint` the coefficient of Eq. 7. `held`: at its
        bound, where `std` says nothing.
    """
    parts = []
    for pair, (laws, joint) in fits.items():
        # 1,000 refits give the width of a band to 3 %, which is finer than it is drawn.
        table = coefficients(laws, draws=1_000).assign(pair=pair)
        table["joint"] = [
            joint.beta[p] if name == "beta" else joint.params[name]
            for p, name in zip(table["p"], table["parameter"], strict=True)
        ]
        parts.append(table)
    frame = pd.concat(parts, ignore_index=True)
    frame["low"], frame["high"] = frame["value"] - frame["std"], frame["value"] + frame["std"]
    bounded = frame["parameter"] == "l_inf"
    frame["low"] = frame["low"].mask(bounded, frame["low"].clip(lower=0))
    names = ["pair", "p", "parameter", "value", "std", "low", "high", "joint", "held"]
    return frame[[*names, "identified"]]


@framed()
def fit_quality(points: pd.DataFrame, fits: PairFits, errors: Errors = "absolute") -> Rows:
    """How well separate laws (Eq. 6) and the joint law (Eq. 7) describe and predict each pair.

    `fits` and `errors` are those of `fit_pairs`.

    Returns
    -------
    DataFrame
        A row a pair and law: parameters, R² over all rows, the lowest R² among the weights, the
        root mean square relative error on sizes held out one at a time (as claim A6 has it), and
        AICc.
    """
    for pair, (separate, joint) in fits.items():
        alone, group = list(separate.values()), points[points["pair"] == pair]
        observed, weights = joint.loss, joint.weights
        joint_error, alone_error = size_left_out(
            group.rename(columns={"loss": "cross_entropy"}), "n", errors=errors
        )
        laws: list[tuple[str, Sequence[LawFit], float, Array]] = [
            ("one a weight (Eq. 6)", alone, min(fit.r2 for fit in alone), alone_error),
            ("joint (Eq. 7)", [joint], min(joint.r2_by_curve().values()), joint_error),
        ]
        for name, chosen, lowest, held_out in laws:
            yield {
                "pair": pair_name(pair),
                "law": name,
                "parameters": sum(len(fit.names) for fit in chosen),
                "R²": r_squared(observed, sum(fit.rss for fit in chosen), weights),
                "lowest R² of a weight": lowest,
                HELD_OUT: float(held_out[0]),
                "AICc": pooled_aicc(chosen),
            }


@framed()
def r2_without_a_size(points: pd.DataFrame, errors: Errors = "absolute") -> Rows:
    """Lowest R² of the laws of Eq. 6 over the weights, with each size left out of the fits in turn.

    `errors` as of `fit_pairs`.

    Returns
    -------
    DataFrame
        ``pair, all``, and a column for each size left out, the smallest first (``−1``).
    """
    for pair, group in points.groupby("pair"):
        left = {"all": group} | {
            f"−{place}": group[group["n"] != size]
            for place, size in enumerate(sorted(group["n"].unique()), start=1)
        }
        fits = {
            name: fit_per_weight_laws(part, n="n", loss="loss", errors=errors)
            for name, part in left.items()
        }
        lowest = {name: min(fit.r2 for fit in of.values()) for name, of in fits.items()}
        yield {"pair": pair_name(str(pair)), **lowest}
