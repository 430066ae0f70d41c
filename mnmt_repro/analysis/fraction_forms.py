"""The linear fraction of Eq. 13 against Eq. 12: Appendix E."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_repro.analysis.fractions import fraction_fits
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.held_out import fit_eq11, held_out, predict_unseen
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.errors import InputError
from mnmt_repro.laws import FractionFit
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.fraction import Form

FORMS: dict[Form, str] = {"eq12": "Eq. 12", "eq13": "Eq. 13"}


def both_forms(
    points: pd.DataFrame, errors: Errors = "absolute"
) -> dict[Form, dict[str, FractionFit]]:
    """Eq. 11 with each form of the fraction, for each pair: form to pair to fit.

    `errors` as of `laws.fit_fraction`.
    """
    return {form: fraction_fits(points, form, errors=errors) for form in FORMS}


@framed(
    *("pair", "form", "parameters", "c₁", "R²", "error", "held-out error", "held-out worst"),
    "at a bound",
    by=["pair", "form"],
)
def form_table(
    points: pd.DataFrame,
    laws: Mapping[Form, Mapping[str, FractionFit]],
    errors: Errors = "absolute",
) -> Rows:
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
        which the fit has seen), ``held-out error, held-out worst`` (on the weights and sizes that
        claims A14 and A15 hold out; NaN where the grid is not full enough for it) and ``at a
        bound``, the coefficients that stopped at the end of their range. Fits that are not
        identified have no row.
    """
    for form, fits in laws.items():
        for pair, law in fits.items():
            if not law.identified:
                continue
            own = points[points["pair"] == pair]
            seen = law.predict(own["p"], own["n"]) / own["loss"].to_numpy() - 1
            unseen = _held_out(own, form, errors)
            yield {
                "pair": pair_name(pair),
                "form": FORMS[form],
                "parameters": len(law.names),
                "c₁": law.params["c1"],
                "R²": law.r2,
                "error": float(np.sqrt(np.mean(seen**2))),
                "held-out error": float(np.sqrt(np.mean(unseen**2))),
                "held-out worst": float(np.abs(unseen).max()),
                "at a bound": ", ".join(map(_bound, law.active_bounds)) or "none",
            }


def _bound(name: str) -> str:
    """A bound as a page writes it.

    >>> _bound("c1 <= 1"), _bound("l_inf >= 0")
    ('c₁ ≤ 1', 'L∞ ≥ 0')
    """
    signs = {"c1": "c₁", "c2": "c₂", "c3": "c₃", "l_inf": "L∞", "<=": "≤", ">=": "≥"}
    return " ".join(signs.get(part, part) for part in name.split(" "))


def _held_out(points: pd.DataFrame, form: Form, errors: Errors) -> Array:
    """Relative errors on the cells of one pair that are held out."""
    unseen = held_out(points)
    try:
        law = fit_eq11(points[~unseen], form, errors=errors)
    except InputError:
        return np.array([np.nan])
    by_law, _ = predict_unseen(points, unseen, law)
    return by_law.relative


@framed("pair", "form", "p", "f")
def form_curves(laws: Mapping[Form, Mapping[str, FractionFit]]) -> Rows:
    """Fraction of each form over the weight: ``pair, form, p, f``."""
    grid = np.linspace(0.01, 1, 100)
    for form, fits in laws.items():
        for pair, law in fits.items():
            if law.identified:
                curve = {"pair": pair, "form": FORMS[form], "p": grid, "f": law.fraction(grid)}
                yield pd.DataFrame(curve)
