"""Which law to believe: errors held out of the fit, and the information criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Array, error_weights, vector
from mnmt_repro.laws.fit_result import LawFit, r_squared
from mnmt_repro.laws.fraction import fit_fraction
from mnmt_repro.laws.joint_law import (
    Reading,
    columns_of,
    fit_joint_law,
    fit_per_weight_laws,
    pair_rows,
)

LawName = Literal["per_weight", "joint", "eq12", "eq13"]


Predictor = Callable[[Array, Array], Array]


def leave_one_size_out(frame: pd.DataFrame, law: LawName, **of: Unpack[Reading]) -> pd.DataFrame:
    """Predict every size from fits that never saw it.

    Parameters
    ----------
    frame : rows of one pair, as for `fit_joint_law`
    law : ``"per_weight"`` (Eq. 6), ``"joint"`` (Eq. 7), ``"eq12"`` or ``"eq13"`` (Eq. 11)
    n, loss, direction, ceiling, errors : as in `fit_joint_law`

    Returns
    -------
    DataFrame
        ``p, n, loss, predicted, error, extrapolated``; `predicted` is NaN where the rest does not
        identify the law, `extrapolated` marks the smallest and the largest size.
    """
    return _leave_out(frame, law, "n", of)


def leave_one_weight_out(
    frame: pd.DataFrame, law: Literal["eq12", "eq13"], **of: Unpack[Reading]
) -> pd.DataFrame:
    """Predict every weight from fits that never saw it; `extrapolated` marks the end weights.

    Parameters and columns as `leave_one_size_out`. Only the laws with a fraction function can
    predict an unseen weight.
    """
    if law not in ("eq12", "eq13"):
        raise InputError(f'law: {law!r} cannot predict an unseen weight; use "eq12" or "eq13"')
    return _leave_out(frame, law, "p", of)


def error_summary(held_out: pd.DataFrame) -> dict[str, float]:
    """Summarise held-out errors: root mean square, mean relative, and rows.

    Rows without a prediction are counted in ``missing`` and left out of the means; so an error
    over few rows is seen for what it is.
    """
    known = held_out[held_out["predicted"].notna()]
    return {
        "rmse": float(np.sqrt((known["error"] ** 2).mean())),
        "mean_relative": float((known["error"] / known["loss"]).abs().mean()),
        "rows": float(len(known)),
        "missing": float(len(held_out) - len(known)),
    }


def compare_per_weight_joint(frame: pd.DataFrame, **of: Unpack[Reading]) -> pd.DataFrame:
    """Set Eq. 6 at every weight (3 W parameters) against Eq. 7 (W + 2) on the same rows.

    Returns
    -------
    DataFrame
        Index ``per_weight, joint``; columns ``parameters, rss, r2, aicc, delta_aicc``,
        ``rmse_size_out`` from `leave_one_size_out` and the ``rows_size_out`` that it is over: those
        that both laws predict. `parameters` counts all; `pooled_aicc` leaves out those that a bound
        holds. With relative errors, rows are weighted in ``rss`` and ``r2`` as in the fit. NaN when
        a law is not identified or has too few rows.
    """
    n, loss = columns_of(of)
    rows, _ = pair_rows(frame, n, loss)
    laws: dict[LawName, list[LawFit]] = {
        "per_weight": list(fit_per_weight_laws(rows, **of).values()),
        "joint": [fit_joint_law(rows, **of)],
    }
    held_out = {law: leave_one_size_out(rows, law, **of) for law in laws}
    known = np.all([table["predicted"].notna() for table in held_out.values()], axis=0)
    y = vector(loss, rows[loss])
    weights = error_weights(of.get("errors", "absolute"), y)
    table = []
    for law, fits in laws.items():
        rss = float(sum(fit.rss for fit in fits))
        table.append(
            {
                "law": law,
                "parameters": sum(len(fit.names) for fit in fits),
                "rss": rss,
                "r2": r_squared(y, rss, weights),
                "aicc": pooled_aicc(fits),
                "rmse_size_out": error_summary(held_out[law][known])["rmse"],
                "rows_size_out": int(known.sum()),
            }
        )
    result = pd.DataFrame(table).set_index("law")
    result.insert(4, "delta_aicc", result["aicc"] - result["aicc"].min(skipna=False))
    return result


def pooled_aicc(fits: Sequence[LawFit[Any]]) -> float:
    """Akaike's criterion, corrected for few rows, of laws that share the rows of one data set.

    ``rows * log(rss / rows) + 2 k + 2 k (k + 1) / (rows - k - 1)``. Gaussian noise of one variance,
    itself counted among the k parameters; a parameter that a bound holds is not. NaN when a law is
    not identified, or rows are too few.

    Parameters
    ----------
    fits
        One law of all rows, such as the joint one, or one law for the rows of each weight.
    """
    rss, rows = sum(fit.rss for fit in fits), sum(fit.observations for fit in fits)
    k = sum(fit.free_parameters for fit in fits) + 1
    if rows - k < 2 or not rss > 0:
        return float("nan")
    return float(rows * np.log(rss / rows) + 2 * k + 2 * k * (k + 1) / (rows - k - 1))


def _leave_out(
    frame: pd.DataFrame,
    law: LawName,
    column: Literal["n", "p"],
    of: Reading,
) -> pd.DataFrame:
    n, loss = columns_of(of)
    rows, p = pair_rows(frame, n, loss)
    table = pd.DataFrame({"p": p, "n": rows[n].to_numpy(float), "loss": rows[loss].to_numpy(float)})
    table["predicted"] = np.nan
    for value in np.unique(table[column]):
        out = table[column] == value
        if out.all():
            continue
        predict = _fit(table[~out], law, of | {"n": "n", "loss": "loss"})
        table.loc[out, "predicted"] = predict(*table.loc[out, ["p", "n"]].to_numpy().T)
    table["error"] = table["predicted"] - table["loss"]
    table["extrapolated"] = table[column].isin([table[column].min(), table[column].max()])
    return table


def _fit(rows: pd.DataFrame, law: LawName, of: Reading) -> Predictor:
    if law in ("eq12", "eq13"):
        return fit_fraction(rows, form=law, **of).predict
    if law == "per_weight":
        predictors = {p: fit.predict for p, fit in fit_per_weight_laws(rows, **of).items()}
    elif law == "joint":
        joint = fit_joint_law(rows, **of)
        predictors = {p: partial(joint.predict, p) for p in joint.law.p}
    else:
        raise InputError(f"law: {law!r}; use per_weight, joint, eq12 or eq13")
    return lambda p, n: np.array(
        [predictors[w](s)[0] if w in predictors else np.nan for w, s in zip(p, n, strict=True)]
    )
