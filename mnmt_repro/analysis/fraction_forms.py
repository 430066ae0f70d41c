"""The linear fraction of Eq. 13 against Eq. 12: Appendix E."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_repro.analysis.fractions import fraction_fits, held_out_errors
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit
from mnmt_repro.laws.checks import Errors
from mnmt_repro.laws.fraction import Form

FORMS: dict[Form, str] = {"eq12": "Eq. 12", "eq13": "Eq. 13"}


def both_forms(
    points: pd.DataFrame, errors: Errors = "absolute"
) -> dict[Form, dict[str, FractionFit]]:
    """Eq. 11 with each form of the fraction, for each pair: form to pair to fit.

    `errors` as of `laws.fit_fraction`.
    """
    return {form: fraction_fits(points, form, errors=errors) for form in FORMS}


def form_table(
    points: pd.DataFrame,
    laws: Mapping[Form, Mapping[str, FractionFit]],
    errors: Errors = "absolute",
) -> pd.DataFrame:
    """How well each form describes the runs it is fitted to, and predicts those it is not.

    Parameters
    ----------
    points
        From `scaling.observed`.
    laws, errors
        From `both_forms`, and its option.

    Returns
    -------
    DataFrame
        ``pair, form, parameters, c₁, R², error`` (root mean square relative error on all runs,
        which the fit has seen), ``held-out error, held-out worst`` (`fractions.held_out_errors`)
        and ``at a bound``, the coefficients that stopped at the end of their range. Fits that are
        not identified have no row.
    """
    rows = []
    for form, fits in laws.items():
        for pair, law in fits.items():
            if not law.identified:
                continue
            own = points[(points["pair"] == pair) & (points["p"] > 0)]
            error = law.predict(own["p"], own["n"]) / own["loss"].to_numpy() - 1
            rows.append(
                {
                    "pair": pair_name(pair),
                    "form": FORMS[form],
                    "parameters": len(law.names),
                    "c₁": law.params["c1"],
                    "R²": law.r2,
                    "error": float(np.sqrt(np.mean(error**2))),
                    "at a bound": ", ".join(map(_bound, law.active_bounds)) or "none",
                }
            )
    names = ["pair", "form", "parameters", "c₁", "R²", "error", "at a bound"]
    table = pd.DataFrame(rows, columns=names).merge(
        _held_out(points, errors), on=names[:2], how="left"
    )
    ends = table.pop("at a bound")
    return table.assign(**{"at a bound": ends}).sort_values(names[:2], ignore_index=True)


def _bound(name: str) -> str:
    """A bound as a page writes it.

    >>> _bound("c1 <= 1"), _bound("l_inf >= 0")
    ('c₁ ≤ 1', 'L∞ ≥ 0')
    """
    signs = {"c1": "c₁", "c2": "c₂", "c3": "c₃", "l_inf": "L∞", "<=": "≤", ">=": "≥"}
    return " ".join(signs.get(part, part) for part in name.split(" "))


def _held_out(points: pd.DataFrame, errors: Errors) -> pd.DataFrame:
    """`fractions.held_out_errors` of the pairs whose grid is full enough for it."""
    names = {"relative error": "held-out error", "worst": "held-out worst"}
    parts = [pd.DataFrame(columns=["pair", "form", *names.values()])]
    for _, group in points.groupby("pair"):
        with contextlib.suppress(InputError):
            found = held_out_errors(group, errors=errors).rename(columns=names)
            parts.append(found[["pair", "form", *names.values()]])
    return pd.concat(parts[1:] or parts, ignore_index=True)


@framed("pair", "form", "p", "f")
def form_curves(laws: Mapping[Form, Mapping[str, FractionFit]]) -> Rows:
    """Fraction of each form over the weight: ``pair, form, p, f``."""
    grid = np.linspace(0.01, 1, 100)
    for form, fits in laws.items():
        for pair, law in fits.items():
            if law.identified:
                curve = {"pair": pair, "form": FORMS[form], "p": grid, "f": law.fraction(grid)}
                yield pd.DataFrame(curve)
