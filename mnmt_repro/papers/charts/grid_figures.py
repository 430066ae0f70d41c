"""Paper A's Figures 2 to 5, and those of its Appendices B and C, of one grid on a page."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from mnmt_repro.corpora.conlang import irreducible_entropy
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.papers.charts.display import Figure, show
from mnmt_repro.papers.charts.lines import lines
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.charts.theme import plain
from mnmt_repro.papers.cohorts.catalogue import conlang_of
from mnmt_repro.papers.cohorts.names import beside_hub, cohort_name, language, pair_name
from mnmt_repro.papers.effects import scaling
from mnmt_repro.papers.effects.grids import TABS, LossGrid

NUMBERS: dict[tuple[str, str], dict[str, int]] = {
    ("webtech-en-dezh", "indomain"): {"separate": 2, "reducible": 3, "coefficients": 4, "joint": 5},
    ("webtech-en-dezh", "news"): {"separate": 9, "coefficients": 10, "joint": 15},
    ("webtech-en-defr", "indomain"): {"separate": 11, "coefficients": 12, "joint": 16},
    ("webtech-en-defr", "news"): {"separate": 9, "coefficients": 10},
    ("webtech-dezh-en", "indomain"): {"separate": 13, "coefficients": 14, "joint": 17},
}
"""Cohort and place to the paper's figures; captions of 9 and 10 name French, whose text has not."""


def label(grid: LossGrid, kind: str) -> str:
    """Name a tab: the models, and the number of the paper's figure where there is one."""
    news = grid.test_set != "indomain"
    number = NUMBERS.get((grid.cohort, "news" if news else "indomain"), {}).get(kind)
    models = TABS.get(grid.cohort, cohort_name(grid.cohort)) + ", news" * news
    return plain(f"Figure {number}: {models}" if number else models)


def unjudged(grid: LossGrid) -> str:
    """Why no verdict is about a grid, which is one of real text or without a decay."""
    if grid.rows["tier"].eq("mini").any():
        return " Not judged: these runs stopped early."
    few = " Not judged: too few weights have enough text at five sizes."
    return few * grid.cohort.startswith("webtech")


def law_figure(grid: LossGrid, kind: Literal["joint", "separate"], folded: bool = True) -> Figure:
    """Losses of a grid with one law for all weights (Eq. 7), or a law for each weight (Eq. 6)."""
    curves = {"joint": scaling.joint_curves, "separate": scaling.per_weight_curves}[kind]
    titles = {"n": scaling.SIZE_TITLES[grid.n], "loss": "test loss (nats per token)"}
    if kind == "joint":
        joint = [one for _, one in grid.fits.values()]
        law, r2 = "one law for all weights", min(map(scaling.lowest_of_weights, joint))
    else:
        alone = [fit.r2 for each, _ in grid.fits.values() for fit in each.values()]
        law, r2 = "a law for each weight", min(alone)
    drawn = curves(grid.points, grid.fits)
    meant = " Below zero, the law is further off than the mean of that weight's losses." * (r2 < 0)
    return show(
        lines(drawn, "n", "loss", by="p", panel="pair", dots=grid.points, log=["n"], titles=titles),
        name=f"{kind}-{_key(grid)}",
        alt=f"Test loss against model size with {law}, {grid.name}: a panel a pair, a colour a "
        "weight. Losses fall with size; smaller weights lie higher.",
        data=grid.points,
        provenance=Provenance.of(grid.rows),
        caption=f"{label(grid, kind)}. With {law}, the lowest in-sample R² of a weight is {r2:.3f}."
        f"{meant}{unjudged(grid)}",
        folded=folded,
    )


def reported(law: LawFit, name: str) -> str:
    """A coefficient of a law with its 95 % interval; of one at a bound, how far it may be away.

    >>> from mnmt_repro.laws import fit_power_law
    >>> reported(fit_power_law([1e4, 1e5, 1e6, 1e7], [4, 2.5, 1.76, 1.375]), "alpha")
    'α = 0.30 (0.25 to 0.37)'
    """
    sign = {"alpha": "α", "l_inf": "L∞"}[name]
    value, (low, high) = law.params[name], law.interval()[name]
    if name in law.held:
        return f"{sign} at its bound of {value:g} (up to {high:.2f})"
    return f"{sign} = {value:.2f} ({low:.2f} to {high:.2f})"


PARAMETERS = {"alpha": "exponent α", "beta": "factor β", "l_inf": "irreducible loss L∞"}


def coefficient_figure(grid: LossGrid, *, finding: str = "", folded: bool = False) -> Figure:
    """Paper A's Figure 4 and its like: coefficients of Eq. 6 against p, those of Eq. 7 dashed.

    Bands are one standard deviation of refits under 1 % noise (footnote 5). The caption begins with
    `finding`.
    """
    table = scaling.coefficient_table(grid.fits)
    short = {p: pair_name(p) if "src" in p else language(beside_hub(p)) for p in grid.fits}
    alone = table.assign(law=table["pair"].map(short))  # long labels would leave no room for panels
    joint = alone.assign(law=alone["law"] + ", one law", value=alone["joint"], low=None, high=None)
    both = pd.concat([alone, joint.astype({"low": float, "high": float})], ignore_index=True)
    known = ""
    if generator := conlang_of(grid.cohort):
        exact = irreducible_entropy(generator, generator.pairs[0])  # that of all its pairs
        ends = pd.DataFrame({"p": [both["p"].min(), both["p"].max()]})
        both = pd.concat([both, ends.assign(parameter="l_inf", law="exact", value=exact)])
        known = f" The exact L∞ is {exact:.3f} at every weight."
    chart = lines(
        both.assign(parameter=both["parameter"].map(PARAMETERS)), "p", "value", by="law",
        panel="parameter", interval=("low", "high"), dashed=set(joint["law"]), shared=False,
        titles={"p": "weight p", "value": ""}, columns=3, height=260,
    )  # fmt: skip
    return show(
        chart,
        name=f"coefficients-{_key(grid)}",
        alt=f"Exponent, factor and irreducible loss against weight, {grid.name}, with bands of one "
        "standard deviation; the joint law's coefficients are dashed.",
        data=table,
        provenance=Provenance.of(grid.rows),
        caption=f"{finding}Solid: each weight alone. Its band is one standard deviation under 1 % "
        "noise of the loss, as in the paper. Dashed: one law, in which only β moves "
        f"({label(grid, 'coefficients')}).{known}{unjudged(grid)}",
        folded=folded,
    )


def _key(grid: LossGrid) -> str:
    return (grid.cohort or "own") + "-news" * (grid.test_set != "indomain")
