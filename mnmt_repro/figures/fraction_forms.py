"""The linear fraction of Eq. 13 against Eq. 12: Appendix E."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.figures.capacity import fraction_fits, fractions, held_out_errors
from mnmt_repro.figures.names import pair_name
from mnmt_repro.figures.scaling import PairFits
from mnmt_repro.figures.theme import diagonal
from mnmt_repro.laws import FractionFit

NEARLY = 1.5  # the ratio of errors up to which claim A15 has the line do nearly as well
FORMS = {"eq12": "Eq. 12", "eq13": "Eq. 13"}


def both_forms(points: pd.DataFrame) -> dict[str, dict[str, FractionFit]]:
    """Eq. 11 with each form of the fraction, for each pair: form to pair to fit."""
    return {form: fraction_fits(points, form) for form in FORMS}


def form_table(points: pd.DataFrame, laws: Mapping[str, Mapping[str, FractionFit]]) -> pd.DataFrame:
    """How well each form describes the runs it is fitted to, and predicts those it is not.

    Parameters
    ----------
    points
        From `scaling.observed`.
    laws
        From `both_forms`.

    Returns
    -------
    DataFrame
        ``pair, form, parameters, c₁, R², error`` (root mean square relative error on all runs,
        which the fit has seen), ``held-out error, held-out worst`` (`capacity.held_out_errors`)
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
    table = pd.DataFrame(rows, columns=names).merge(_held_out(points), on=names[:2], how="left")
    ends = table.pop("at a bound")
    return table.assign(**{"at a bound": ends}).sort_values(names[:2], ignore_index=True)


def _bound(name: str) -> str:
    """A bound as a page writes it.

    >>> _bound("c1 <= 1"), _bound("l_inf >= 0")
    ('c₁ ≤ 1', 'L∞ ≥ 0')
    """
    signs = {"c1": "c₁", "c2": "c₂", "c3": "c₃", "l_inf": "L∞", "<=": "≤", ">=": "≥"}
    return " ".join(signs.get(part, part) for part in name.split(" "))


def _held_out(points: pd.DataFrame) -> pd.DataFrame:
    """`capacity.held_out_errors` of the pairs whose grid is full enough for it."""
    names = {"relative error": "held-out error", "worst": "held-out worst"}
    parts = [pd.DataFrame(columns=["pair", "form", *names.values()])]
    for _, group in points.groupby("pair"):
        with contextlib.suppress(InputError):
            found = held_out_errors(group).rename(columns=names)
            parts.append(found[["pair", "form", *names.values()]])
    return pd.concat(parts[1:] or parts, ignore_index=True)


def form_curves(laws: Mapping[str, Mapping[str, FractionFit]]) -> pd.DataFrame:
    """Fraction of each form over the weight: ``pair, form, p, f``."""
    grid = np.linspace(0.01, 1, 100)
    return pd.DataFrame(
        [
            {"pair": pair, "form": FORMS[form], "p": p, "f": f}
            for form, fits in laws.items()
            for pair, law in fits.items()
            if law.identified
            for p, f in zip(grid, law.fraction(grid), strict=True)
        ],
        columns=["pair", "form", "p", "f"],
    )


def form_chart(fits: PairFits, laws: Mapping[str, Mapping[str, FractionFit]]) -> alt.HConcatChart:
    """Figures 7 and 18, left: fractions of the joint law (dots, 95 %) and both forms of f̂.

    Dotted: f = p.
    """
    dots, curves = fractions(fits), form_curves(laws)
    panels = []
    for pair, group in curves.groupby("pair"):
        x = alt.X("p:Q", title="weight p", scale=alt.Scale(domain=[0, 1]))
        y = alt.Y("f:Q", title="effective fraction f")
        lines = (
            alt.Chart(group[["form", "p", "f"]])
            .mark_line()
            .encode(
                x,
                y,
                color=alt.Color("form:N", title="fraction"),
                strokeDash=alt.StrokeDash("form:N", title="fraction"),
            )
        )
        own = dots[dots["pair"] == pair]
        seen = alt.Chart(own[["p", "f", "f_low", "f_high"]])
        points = seen.mark_point(color="black").encode(
            x, y, tooltip=["p", alt.Tooltip("f", format=".3f")]
        )
        bars = seen.mark_rule(color="black", opacity=0.4).encode(x, y="f_low:Q", y2="f_high:Q")
        panel = (diagonal(x, y) + bars + lines + points).properties(width=230, height=240)
        panels.append(panel.properties(title=pair_name(str(pair))))
    return alt.hconcat(*panels)


def forms_in_words(table: pd.DataFrame) -> str:
    """What the linear form costs on runs it has not seen, as Markdown, a line a pair.

    Parameters
    ----------
    table
        From `form_table`.
    """
    lines = []
    for pair, group in table.groupby("pair"):
        rows = group.set_index("form")
        if not {"Eq. 12", "Eq. 13"} <= set(rows.index):
            lines.append(f"- {pair}: one of the two forms is not identified on these runs.")
            continue
        simple, flexible = rows.loc["Eq. 13"], rows.loc["Eq. 12"]
        ratio = simple["held-out error"] / flexible["held-out error"]
        told = (
            f"- {pair}: held out, Eq. 13 errs by {simple['held-out error']:.1%} and Eq. 12 by "
            f"{flexible['held-out error']:.1%}, a ratio of {ratio:.2f}: the line "
            f"errs {'less' if ratio < 1 else 'hardly more' if ratio <= NEARLY else 'more'}."
        )
        if "c₁ ≤ 1" in simple["at a bound"]:
            told += " Its one coefficient is at its bound of 1, which is f̂ = p."
        lines.append(told)
    return "\n".join(lines)
