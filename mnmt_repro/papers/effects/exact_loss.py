"""Fitted laws against the exact irreducible loss, by the squares of absolute or relative errors.

Least squares of plain errors takes all losses to err alike. The paper's own noise is a share of the
loss (footnote 5). Where losses fall to a tenth, it matters which of the two a law is fitted by.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_repro.corpora.conlang import ConlangConfig, irreducible_entropy
from mnmt_repro.laws import JointLawFit, PowerLawFit
from mnmt_repro.laws.checks import Errors
from mnmt_repro.papers.cohorts.catalogue import RUN_TIERS, declared
from mnmt_repro.papers.cohorts.grids import Cohort
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.fractions import direct_fractions, fractions
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.scaling import fit_pairs

_KINDS: tuple[Errors, ...] = ("absolute", "relative")


@framed(
    *("cohort", "pair", "law", "errors", "lowest loss", "fitted L∞", "low", "high", "exact"),
    "covered",
    by=["cohort", "pair", "law"],
)
def against_truth(points: Mapping[str, pd.DataFrame]) -> Rows:
    """Fitted irreducible losses beside the exact one, for cohorts of generated languages.

    Parameters
    ----------
    points
        Cohort to its points; see `scaling.observed`.

    Returns
    -------
    DataFrame
        ``cohort, pair, law, errors, lowest loss`` (of all runs that the law is fitted to), ``fitted
        L∞, low, high, exact, covered``: of the single pair's own law and of the joint law, with
        the fit's 95 % interval, by residual bootstrap where L∞ sits at its bound.
    """
    for cohort, frame in points.items():
        if (config := _languages(cohort)) is None:
            continue
        for errors in _KINDS:
            for pair, (alone, joint) in fit_pairs(frame, errors).items():
                laws: dict[str, PowerLawFit | JointLawFit] = {"joint (Eq. 7)": joint}
                if 1.0 in alone:
                    laws["p = 1 alone (Eq. 6)"] = alone[1.0]
                for name, law in laws.items():
                    exact = irreducible_entropy(config, pair)
                    low, high = law.interval()["l_inf"]
                    yield {
                        "cohort": cohort_name(cohort),
                        "pair": pair_name(pair),
                        "law": name,
                        "errors": errors,
                        "lowest loss": min(law.loss),
                        "fitted L∞": law.l_inf,
                        "low": low,
                        "high": high,
                        "exact": exact,
                        "covered": bool(low <= exact <= high),
                    }


@framed("pair", "p", "alpha", by=["pair", "p"])
def exact_exponents(cohort: str, points: pd.DataFrame) -> Rows:
    """Exponents of laws whose irreducible loss is the exact one, of generated languages.

    Returns
    -------
    DataFrame
        ``pair, p, alpha``: of a law for each weight, by least squares of the log of the loss above
        the exact one. Of real text, whose irreducible loss is unknown, there are no rows.
    """
    if (config := _languages(cohort)) is not None:
        for (pair, p), rows in points.groupby(["pair", "p"]):
            above = rows["loss"] - irreducible_entropy(config, str(pair))
            slope, _ = np.polyfit(np.log(rows["n"]), np.log(above), 1)
            yield {"pair": pair, "p": p, "alpha": -slope}


def _languages(cohort: str) -> ConlangConfig | None:
    """The generated languages of a declared grid."""
    known = (each for tier in RUN_TIERS for each in declared(tier))
    grid = next((each for each in known if each.name == cohort), None)
    return grid.corpus.conlang if isinstance(grid, Cohort) else None


@framed(by=["cohort", "pair"])
def absolute_and_relative(points: Mapping[str, pd.DataFrame]) -> Rows:
    """Laws by the least squares of errors, and of their share of the loss.

    Parameters
    ----------
    points
        As of `against_truth`.

    Returns
    -------
    DataFrame
        A row a cohort, pair and kind of ``errors``: ``α alone`` and ``α, least weight`` of the
        single pair's own law and of the smallest weight's (Eq. 6); the effective fraction at that
        weight by the joint law (``f, joint``, Eq. 10) and directly (``f, direct``, Eq. 8, the
        median over ``sizes`` that need no extrapolation).
    """
    for cohort, frame in points.items():
        for errors in _KINDS:
            fits = fit_pairs(frame, errors)
            joint, direct = fractions(fits), direct_fractions(frame, fits)
            for pair, (alone, _) in fits.items():
                least = min(alone)
                by_joint = joint[(joint["pair"] == pair) & (joint["p"] == least)]["f"]
                by_size = direct[(direct["pair"] == pair) & (direct["p"] == least)]["f"]
                yield {
                    "cohort": cohort_name(cohort),
                    "pair": pair_name(pair),
                    "errors": errors,
                    "α alone": alone[1.0].alpha,
                    "α, least weight": alone[least].alpha,
                    "p": least,
                    "f, joint": by_joint.mean(),
                    "f, direct": by_size.median(),
                    "sizes": len(by_size),
                }
