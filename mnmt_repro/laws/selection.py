"""Which law to believe: errors held out of the fit, and the information criterion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import fit_fraction
from mnmt_repro.laws.joint_law import Reading, columns_of, fit_joint_law, pair_rows

LawName = Literal["joint", "eq12", "eq13"]


def leave_one_size_out(frame: pd.DataFrame, law: LawName, **of: Unpack[Reading]) -> pd.DataFrame:
    """Predict every size from fits that never saw it.

    Parameters
    ----------
    frame : rows of one pair, as for `fit_joint_law`
    law : ``"joint"`` (Eq. 7), ``"eq12"`` or ``"eq13"`` (Eq. 11)
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
    named = of | {"n": "n", "loss": "loss"}
    for value in np.unique(table[column]):
        out = table[column] == value
        if out.all():
            continue
        if law == "joint":
            joint = fit_joint_law(table[~out], **named)
            out &= table["p"].isin(joint.law.p)
            fit: LawFit[Any] = joint
        else:
            fit = fit_fraction(table[~out], form=law, **named)
        if out.any():
            table.loc[out, "predicted"] = fit.predict(*table.loc[out, ["p", "n"]].to_numpy().T)
    table["error"] = table["predicted"] - table["loss"]
    table["extrapolated"] = table[column].isin([table[column].min(), table[column].max()])
    return table
