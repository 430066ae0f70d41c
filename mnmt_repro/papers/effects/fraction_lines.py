"""The lines of Figure 6: fractions over domains, language similarity and direction, two estimators.

`compare_lines` reads what is to be compared as tidy lines. `capacity_ratios` tabulates f / p, of
which section 3.3 prints 3 and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_repro.papers.cohorts.names import beside_hub, language
from mnmt_repro.papers.effects.cells import common_cells
from mnmt_repro.papers.effects.fractions import direct_fractions, fractions
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.grids import LossGrid, read_grid

ESTIMATORS = {"eq10": "joint law (Eq. 10)", "eq8": "directly (Eq. 8)"}
_RUN = ("panel", "line", "test_set", "language")
_COLUMNS = (*_RUN, "estimator", "p", "w", "f", "f_low", "f_high", "sizes")


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one line of a panel shows.

    Attributes
    ----------
    panel, label : str
        Title of the panel, and what sets the line apart from the others in it.
    cohort, test_set : str
        The grid that it reads.
    pairs : collection of str
        Which pairs of the cohort; default all.
    """

    panel: str
    label: str
    cohort: str
    test_set: str = "indomain"
    pairs: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """The lines that the stored rows give.

    Attributes
    ----------
    lines
        From `fraction_lines`, one below the other.
    rows
        The rows behind them, for their provenance.
    """

    lines: pd.DataFrame
    rows: pd.DataFrame


def compare_lines(stored: pd.DataFrame, wanted: Sequence[Line]) -> _Comparison:
    """Read the lines of a figure out of stored rows; those without enough rows are left out.

    The lines of a panel are fitted to the weights and sizes that all of them have, so that they
    differ in nothing but what is compared.

    Parameters
    ----------
    stored
        From `results.load`, of one tier and domain.
    wanted
        Lines in the order of the legend.
    """
    lines = [pd.DataFrame(columns=list(_COLUMNS))]
    rows = [stored.iloc[:0]]
    panels: dict[str, list[tuple[Line, pd.DataFrame]]] = {}
    for line in wanted:
        if grid := read_grid(stored, line.cohort, line.test_set):
            own = grid.rows[grid.rows["pair"].isin(list(line.pairs))] if line.pairs else grid.rows
            panels.setdefault(line.panel, []).append((line, own))
    for panel in panels.values():
        common = common_cells([own for _, own in panel])
        for (line, _), kept in zip(panel, common, strict=True):
            shared = read_grid(kept, line.cohort, line.test_set)
            if shared is None:  # too few weights and sizes in common with the others
                continue
            found = fraction_lines(shared, panel=line.panel, line=line.label)
            lines = [*lines, found] if len(found) else lines
            rows.append(shared.rows)
    return _Comparison(
        lines=pd.concat(lines[1:] or lines, ignore_index=True),
        rows=pd.concat(rows[1:] or rows, ignore_index=True),
    )


def fraction_lines(grid: LossGrid, *, panel: str, line: str) -> pd.DataFrame:
    """Effective fraction of the pairs of a grid at each weight, by both estimators.

    *Eq. 10* is read off the joint law; its band is the 95 % interval. *Eq. 8* is solved at each
    size on the single-pair law, where the loss lies among those that law was fitted to; given is
    the median over sizes, and from the least to the greatest of them.

    Parameters
    ----------
    panel
        Title of the panel that it is drawn in.
    line
        What sets the grid apart from the others of its panel: ``"in-domain"``.

    Returns
    -------
    DataFrame
        ``panel, line, test_set, language, estimator, p, w, f, f_low, f_high, sizes``; `w` is the
        share of target tokens that the weight comes to (NaN where the rows do not say). A law that
        the rows do not identify leaves its rows out.
    """
    fits = grid.fits
    joint = fractions({pair: fit for pair, fit in fits.items() if fit[1].identified})
    solved = direct_fractions(grid.points, fits).groupby(["pair", "p"], as_index=False)
    names = {"median": "f", "min": "f_low", "max": "f_high", "size": "sizes"}
    direct = solved["f"].agg(list(names)).rename(columns=names)
    sizes = grid.points.groupby(["pair", "p"], as_index=False)["n"].agg(sizes="nunique")
    both = pd.concat(
        [
            joint.merge(sizes, on=["pair", "p"]).assign(estimator=ESTIMATORS["eq10"]),
            direct.assign(estimator=ESTIMATORS["eq8"]),
        ],
        ignore_index=True,
    )
    shares = grid.rows[["pair"]].assign(
        p=grid.rows["p"].round(9), w=grid.rows.get("token_share", float("nan"))
    )
    realised = shares.groupby(["pair", "p"], as_index=False).agg(w=("w", "mean"))
    both = both.assign(p=both["p"].round(9)).merge(realised, on=["pair", "p"], how="left")
    both = both.assign(
        panel=panel,
        line=line,
        test_set=grid.test_set,
        language=[language(beside_hub(pair)) for pair in both["pair"]],
    )
    return both[list(_COLUMNS)]


SIMILARITY_COHORTS = {
    tier: {0.0: none, 0.25: f"{of}025", 0.5: f"{of}05", 0.75: f"{of}075", 1.0: f"{of}1"}
    for tier, none, of in (
        ("mini", "conlang-sim0", "conlang-sim"),
        ("steady", "conlang-steady", "conlang-steady-sim"),
    )
}
"""Tier and similarity of generated languages to the cohort that has it. Those of a tier differ in
nothing else that a model is trained on."""
_VALUES = ("f", "f_low", "f_high")
CAPACITIES = {
    "eq10": ("f / p", "low", "high"),
    "eq8": ("f / p directly", "least", "greatest"),
}
"""Estimator to its columns in `capacity_ratios`: the ratio, and the ends of its range."""


def capacity_ratios(lines: pd.DataFrame, weight: float = 0.05) -> pd.DataFrame:
    """Relative effective capacity f / p at one weight, by both estimators side by side.

    Parameters
    ----------
    lines
        From `fraction_lines`; the same runs under several labels give one row, which names all.

    Returns
    -------
    DataFrame
        ``what, test set, language, p, w, f, f / p, low, high, f / w, f / p directly, least,
        greatest, sizes``: the 95 % interval of the first estimator, the range over so many sizes of
        the second; w is the share of target tokens that the weight p comes to. A quantity that the
        rows do not give is NaN; without any row at `weight` the frame is empty.
    """
    chosen = lines[lines["p"].round(9) == round(weight, 9)]
    same = chosen.groupby(["test_set", "language", "p", "estimator", "f"])["line"]
    chosen = chosen.assign(line=same.transform(lambda names: ", ".join(dict.fromkeys(names))))
    keys = ["line", "test_set", "language", "p"]
    values = chosen.assign(**{name: chosen[name] / chosen["p"] for name in _VALUES})
    joint, direct = (
        values[values["estimator"] == ESTIMATORS[key]]
        .drop_duplicates(keys)
        .rename(columns=dict(zip(_VALUES, names, strict=True)))
        for key, names in CAPACITIES.items()
    )
    table = joint[[*keys, "w", *CAPACITIES["eq10"]]].merge(
        direct[[*keys, *CAPACITIES["eq8"], "sizes"]], on=keys, how="outer"
    )
    order = {line: i for i, line in enumerate(dict.fromkeys(chosen["line"]))}
    table = table.sort_values(
        "line", key=lambda line: line.map(order), kind="stable", ignore_index=True
    )
    table["sizes"] = table["sizes"].fillna(0).astype(int)
    table.insert(5, "f", table["f / p"] * table["p"])
    table.insert(9, "f / w", table["f"] / table["w"])
    return table.rename(columns={"line": "what", "test_set": "test set"})


@framed("panel", "language", "line", "against", "weights", "ratio of f", "ratio of f / w")
def line_ratios(lines: pd.DataFrame) -> Rows:
    """Ratio of f, and of f / w, between the two lines of a panel, for each language.

    By the joint law, and as the geometric mean over the weights below one that both lines have.
    Where the ratio of f / w is nearer one, the line ahead was shown more text at the same weight.

    Parameters
    ----------
    lines
        From `fraction_lines`; panels of one line or of more than two have no row.

    Returns
    -------
    DataFrame
        ``panel, language, line, against, weights, ratio of f, ratio of f / w``.
    """
    between = lines[(lines["estimator"] == ESTIMATORS["eq10"]) & (lines["p"] < 1)]
    for (panel, name), group in between.groupby(["panel", "language"], sort=False):
        names = list(dict.fromkeys(group["line"]))
        if len(names) != 2:
            continue
        base, other = (group[group["line"] == each].set_index("p") for each in names)
        both = pd.merge(other[["f", "w"]], base[["f", "w"]], on="p", suffixes=("", " of base"))
        logs = np.log(both.astype(float))
        f, w = (logs[column] - logs[f"{column} of base"] for column in ("f", "w"))
        yield {
            "panel": panel,
            "language": name,
            "line": names[1],
            "against": names[0],
            "weights": len(both),
            "ratio of f": np.exp(f.mean()),
            "ratio of f / w": np.exp((f - w).mean()),
        }


SIMILARITY_LABELS = {f"similarity {value:g}": value for value in SIMILARITY_COHORTS["mini"]}
"""What a line of Figure 6 is called to the similarity of its languages."""


def by_similarity(lines: pd.DataFrame) -> pd.DataFrame:
    """Fractions of the weights below one against similarity; empty for fewer than two of them.

    Parameters
    ----------
    lines
        From `compare_lines`, whose labels are those of `SIMILARITY_LABELS`.

    Returns
    -------
    DataFrame
        ``language, p, similarity, estimator, f, f_low, f_high, sizes``.
    """
    found = lines[lines["line"].isin(list(SIMILARITY_LABELS)) & (lines["p"] < 1)]
    found = found.assign(similarity=found["line"].map(SIMILARITY_LABELS))
    if found["similarity"].nunique() < 2:
        found = found.iloc[:0]
    columns = ["language", "p", "similarity", "estimator", "f", "f_low", "f_high", "sizes"]
    return found.sort_values(["estimator", *columns[:3]], ignore_index=True)[columns]
