"""Paper A's Figures 2, 4 and 5, and those of its Appendices B and C, of one grid on a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mnmt_repro.figures import scaling
from mnmt_repro.figures.grids import Grid
from mnmt_repro.figures.house import Figure, Table, show, show_table

Verdicts = Sequence[Mapping[str, Any]]
"""From `claims.read_stored`."""


def losses(grid: Grid, figure: int, verdicts: Verdicts, *, joint: bool = False) -> Figure:
    """Observed losses with a law for each weight (Eq. 6), or with the joint law (Eq. 7)."""
    curves = scaling.joint_curves if joint else scaling.per_weight_curves
    law = "the joint law (Eq. 7)" if joint else "a law for each weight (Eq. 6)"
    return show(
        scaling.loss_against_size(grid.points, curves(grid.points, grid.fits), n=grid.n),
        name=f"fig{figure}-{grid.cohort}",
        alt=f"Test loss against model size with {law}, {grid.name}: a panel a pair, a colour a "
        "weight. Losses fall with size; smaller weights lie higher.",
        data=grid.points,
        provenance=grid.runs,
        badge=grid.badges(verdicts, "A6" if joint else "A2"),
        caption=f"Figure {figure}, {grid.name}: {law}; {grid.coverage}.",
    )


def coefficients(grid: Grid, figure: int, verdicts: Verdicts, *, bands: bool = True) -> Figure:
    """Coefficients of Eq. 6 against the weight, those of Eq. 7 dashed."""
    table = scaling.coefficient_table(grid.fits)
    spread = "with bands of one standard deviation" if bands else "without bands"
    return show(
        scaling.coefficients_against_weight(table, bands=bands),
        name=f"fig{figure}-{grid.cohort}",
        alt=f"Exponent, factor and irreducible loss against weight, {grid.name}, {spread}; the "
        "joint law's coefficients are dashed.",
        data=table,
        provenance=grid.runs,
        badge=grid.badges(verdicts, "A3", "A4", "A5"),
        caption=f"Figure {figure}, {grid.name}: coefficients of Eq. 6 (hollow: at its bound), "
        f"{spread}; dashed, of Eq. 7, on which A5 is judged; {grid.coverage}.",
    )


def quality(grid: Grid, verdicts: Verdicts) -> Table:
    """How well each law does: `scaling.fit_quality`."""
    place = re.sub("[^a-z0-9]+", "-", grid.test_set)
    return show_table(
        scaling.fit_quality(grid.points),
        name=f"fit-quality-{place}-{grid.cohort}",
        provenance=grid.runs,
        badge=grid.badges(verdicts, "A2", "A6"),
        caption=f"Separate laws (Eq. 6) against the joint law (Eq. 7), {grid.name}; "
        f"{grid.coverage}.",
        formats={
            "R²": ".5f",
            "lowest R² of a weight": ".5f",
            scaling.HELD_OUT: ".1%",
            "AICc": ".1f",
        },
    )
