"""Laws of loss against size and weight: Figures 2 to 5, appendices B and C, claims A2 to A6.

How a coefficient drifts with the weight (A3, A4) is a line in ``(1 - p) / 0.95``, which is 0 at
p = 1 and 1 at p = 0.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    JointLawFit,
    PowerLawFit,
    coefficients,
    fit_joint_law,
    fit_per_weight_laws,
)
from mnmt_repro.laws.checks import Array, Errors, error_weights
from mnmt_repro.laws.fit_result import LawFit, r_squared
from mnmt_repro.laws.minimise import REFIT_TOLERANCE, Minimum
from mnmt_repro.laws.power_law import PowerLaw
from mnmt_repro.laws.selection import pooled_aicc
from mnmt_repro.laws.trend import Coefficient, TrendLaw
from mnmt_repro.laws.uncertainty import perturbed, robust_sd
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.cells import Cells, Rows, check_one, framed, mean_losses
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    DRAWS,
    Measure,
    Measures,
    NotIdentified,
    centred,
    centred_r2,
    drawn,
    measured,
    require,
)

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
        joint_error, alone_error = size_left_out(
            group.rename(columns={"loss": "cross_entropy"}), "n", errors=errors
        )
        laws: list[tuple[str, Sequence[LawFit], float, Array]] = [
            ("one a weight (Eq. 6)", alone, min(fit.r2 for fit in alone), alone_error),
            ("joint (Eq. 7)", [joint], lowest_of_weights(joint), joint_error),
        ]
        for name, chosen, lowest, held_out in laws:
            yield {
                "pair": pair_name(pair),
                "law": name,
                "parameters": sum(len(fit.names) for fit in chosen),
                "R²": r_squared(joint.loss, sum(fit.rss for fit in chosen), joint.weights),
                "lowest R² of a weight": lowest,
                HELD_OUT: float(held_out[0]),
                "AICc": pooled_aicc(chosen),
            }


def lowest_of_weights(joint: JointLawFit) -> float:
    """Lowest R² of a joint law among the rows of each weight."""
    group, left = joint.law.group, joint.residuals() ** 2
    rows = [group == g for g in np.unique(group)]
    each = [r_squared(joint.loss[own], left[own].sum(), joint.weights[own]) for own in rows]
    return float(np.nanmin(each))  # a weight of one size has none


def lowest_r2(fits: Sequence[PowerLawFit], losses: Sequence[Array]) -> Measure:
    """Lowest R² of several laws, each refitted to draws (1 + B, m) of its own losses."""
    r2 = [_r2(fit, fit.refit(own), own) for fit, own in zip(fits, losses, strict=True)]
    return centred_r2(np.min(r2, axis=0))


def _r2(fit: PowerLawFit | JointLawFit, values: Array, losses: Array) -> Array:
    """R² (B,) of a law with refitted parameters (B, P)."""
    weights = fit.weights
    left = losses - fit.law.curve(values, fit.law.rows)
    total = losses - (losses @ weights / weights.sum())[:, None]
    return np.asarray(1 - (left**2 @ weights) / (total**2 @ weights))


def joint_against_separate(
    fit: JointLawFit, cells: Cells, losses: Array, n: str, by: str, errors: Errors
) -> Measures:
    """Compare one law for all weights with a law for each, on sizes left out of the fit.

    Parameters
    ----------
    fit
        The joint law of the cells.
    losses : (1 + B, m)
        From `noise.drawn`.
    n, by
        Columns of the size and of the weight.
    """
    joint, single = size_left_out(cells, n, by, errors, losses)
    return {
        "error_ratio": centred(joint / single),
        "r2_joint": centred_r2(_r2(fit, fit.refit(losses), losses)),
    }


def size_left_out(
    cells: Cells, n: str, by: str = "p", errors: Errors = "absolute", losses: Array | None = None
) -> tuple[Array, Array]:
    """Root mean square relative error of each row of `losses` (B, m) on sizes left out in turn.

    Both laws are refitted to each row without each size. The laws of the cells' own losses give the
    starts.

    Returns
    -------
    joint law (B,), per-weight laws (B,)
    """
    if losses is None:
        losses = cells["cross_entropy"].to_numpy()[None]
    p, size = cells[by].to_numpy(), cells[n].to_numpy(dtype=float)
    squares = np.zeros(len(losses))
    for left in np.unique(size):
        out, kept = size == left, size != left
        law = fit_joint_law(cells[kept], n=n, by=by, errors=errors)
        rows = law.law.rows_at(p[out], size[out])
        squares += _squared(law.law, law.refit(losses[:, kept]), rows, losses[:, out])
    joint = np.sqrt(squares / losses.shape[1])
    return joint, separate_left_out(cells, n, by, errors, losses)


def separate_left_out(cells: Cells, n: str, by: str, errors: Errors, losses: Array) -> Array:
    """The per-weight laws' part of `size_left_out`, (B,)."""
    p, size = cells[by].to_numpy(), cells[n].to_numpy(dtype=float)
    squares = np.zeros(len(losses))
    for left in np.unique(size):
        for weight in np.unique(p[size == left]):
            out, kept = ((p == weight) & rows for rows in (size == left, size != left))
            law = PowerLaw(
                weights=error_weights(errors, losses[0, kept]),
                n=size[kept],
                group=np.zeros(kept.sum(), dtype=np.intp),
            )
            values, rows = law.follow(losses[:, kept]).theta, law.rows_at(size[out])
            squares += _squared(law, values, rows, losses[:, out])
    return np.sqrt(squares / losses.shape[1])


def _squared(law: PowerLaw, values: Array, rows: Array, losses: Array) -> Array:
    return ((law.curve(values, rows) / losses - 1) ** 2).sum(1)


def along(p: Array) -> Array:
    """Place each weight on the drift: 0 at p = 1, 1 at p = 0.05."""
    return (1.0 - p) / 0.95


def fit_drift(fit: JointLawFit, coefficient: Coefficient) -> tuple[TrendLaw, Array]:
    """Fit a drift of one coefficient to the rows of a joint law.

    Returns
    -------
    law, parameters (P,)

    Raises
    ------
    NotIdentified
        When the fit does not converge.
    """
    law = TrendLaw.of(fit, along(np.array(fit.law.p)), coefficient)
    values = _found(law.fit(fit.loss[None], law.start))[0]
    if not np.isfinite(values).all():
        raise NotIdentified(f"a drift of {coefficient} with the weight cannot be fitted")
    return law, values


def _found(fit: Minimum) -> Array:
    """Parameters (B, P); NaN where none are found."""
    return np.where(fit.converged[:, None], fit.theta, np.nan)


def shift(fit: JointLawFit, name: Coefficient, losses: Array) -> Measure:
    """Shift of a coefficient from p = 1 to p = 0.05: of alpha relative to itself.

    That of L_inf is relative to the loss of the smallest single-pair model.

    Parameters
    ----------
    losses : (1 + B, m)
        Of the law's rows, from `noise.drawn`.
    """
    law, values = fit_drift(fit, name)
    theta = _found(law.fit(losses, values, REFIT_TOLERANCE))
    one, small = law.ends
    alone = np.flatnonzero(fit.law.group == fit.law.index(1.0))
    smallest = alone[fit.law.n[alone].argmin()]
    unit = theta[:, one] if name == "alpha" else losses[:, smallest]
    return measured((theta[:, small] - theta[:, one]) / unit)


def spread_in_sd(laws: Sequence[PowerLawFit], name: Coefficient, sigma: float) -> float:
    """Largest difference of a coefficient of two laws, over the larger standard deviation.

    The standard deviations are those of refits to losses under noise, `sigma` of the loss. NaN of
    fewer than two laws.
    """
    if len(laws) < 2:
        return float("nan")
    values = np.array([law.params[name] for law in laws])
    sds = _robust_sds(tuple(laws), sigma)[:, laws[0].names.index(name)]
    larger = np.maximum.outer(sds, sds)
    return float((np.abs(np.subtract.outer(values, values)) / larger).max())


@lru_cache(maxsize=64)  # both coefficients are columns of the same refits
def _robust_sds(laws: tuple[PowerLawFit, ...], sigma: float) -> Array:
    """Standard deviations of the parameters (laws, 3) under noise of `sigma` times the loss."""
    return np.array(
        [
            robust_sd(law.refit(perturbed(law.loss, DRAWS, seed, sigma)))
            for seed, law in enumerate(laws)
        ]
    )


def joint_law(cells: Cells, setting: Setting, pair: str) -> JointLawFit:
    """Fit the joint law of a pair; `NotIdentified` where it is not."""
    fit = fit_joint_law(cells, n=setting.n, by=setting.by, errors=setting.errors)
    require(fit, f"joint law of {pair}")
    return fit


def per_weight_fit(evidence: Evidence, setting: Setting) -> Units:
    """A2: R² of Eq. 6 at each weight."""
    units: Units = {}
    by, errors = setting.by, setting.errors
    for pair, cells in evidence.grid(setting).items():
        laws = fit_per_weight_laws(cells, n=setting.n, by=by, errors=errors)
        for p, law in laws.items():
            require(law, f"law of {pair} at {by} = {p}")
        fits, losses = list(laws.values()), drawn(cells)
        own = [losses[:, cells[by] == p] for p in laws]
        units[pair] = {
            "r2_min": lowest_r2(fits, own),
            "r2_median": Measure(value=float(np.median([fit.r2 for fit in fits]))),
        }
    return units


def irreducible_loss_unchanged(evidence: Evidence, setting: Setting) -> Units:
    """A4: drift of L_inf, and its spread over weights in the paper's standard deviations."""
    units, noise = {}, setting.options["perturbation"]
    for pair, cells in evidence.grid(setting, weights=(0.05, 1)).items():
        laws = fit_per_weight_laws(cells, n=setting.n, errors=setting.errors)
        good = [law for law in laws.values() if law.identified and not law.active_bounds]
        fit = joint_law(cells, setting, pair)
        units[pair] = {
            "shift": shift(fit, "l_inf", drawn(cells)),
            "spread_of_alpha": Measure(value=spread_in_sd(good, "alpha", noise)),
            "spread_of_l_inf": Measure(value=spread_in_sd(good, "l_inf", noise)),
        }
    return units


def factor_rises(evidence: Evidence, setting: Setting) -> Units:
    """A5: order of beta over p, and log beta(0.05) / beta(1)."""
    units: Units = {}
    for pair, cells in evidence.grid(setting, weights=(0.05, 1)).items():
        fit = joint_law(cells, setting, pair)
        tau = stats.kendalltau(list(fit.beta), list(fit.beta.values())).statistic
        small, one = (2 + int(fit.law.index(p)[0]) for p in (0.05, 1.0))
        values = fit.refit(drawn(cells))
        units[pair] = {
            "kendall_tau": Measure(value=float(tau)),
            "log_ratio": measured(np.log(values[:, small] / values[:, one])),
        }
    return units


def joint_law_suffices(evidence: Evidence, setting: Setting) -> Units:
    """A6: error on a size left out, joint law over per-weight laws; R²."""
    units: Units = {}
    for pair, cells in evidence.grid(setting).items():
        fit = joint_law(cells, setting, pair)
        units[pair] = joint_against_separate(
            fit, cells, drawn(cells), setting.n, setting.by, setting.errors
        )
    return units
