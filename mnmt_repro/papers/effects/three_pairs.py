"""Models of three pairs and more, predicted by laws of two: Figure 20, Appendix H, claim A20.

Cells are the mean losses over seeds of each pair in each mixture at each size: ``mixture, pair, p,
n, loss``. Points are the same of two-pair cohorts, where pair, weight and size name a cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws import (
    FractionFit,
    fit_fraction,
    fit_joint_law,
    fit_mixture_law,
    leave_one_mixture_out,
)
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.papers.effects.cells import Cells, Rows, framed, in_regime, mean_losses
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    Measure,
    Measures,
    NoRowsYet,
    between_seeds,
    centred,
    centred_r2,
    drawn,
    measured,
    root_mean_square,
    root_mean_squares,
)
from mnmt_repro.papers.effects.prediction import (
    FORMS,
    identified_law,
    in_own_intervals,
    neighbours_seen,
)

Laws = dict[str, list[FractionFit]]
"""Pair to its laws, one from each two-pair cohort that has it; a law's label is its cohort."""
Refits = tuple[FractionFit, Array]
"""A law, and its parameters (1 + B, P) refitted to drawn losses."""
_Law = TypeVar("_Law")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Models of many pairs predicted by laws of two.

    Attributes
    ----------
    points : dict of cohort to DataFrame
        Of the two-pair cohorts.
    laws : Laws
    cells, errors : DataFrame
        From `mixture_cells` and `predict`; ``interpolated`` is the relative error of lines between
        the two-pair models (`prediction.neighbours_seen`), without a law.
    """

    points: Mapping[str, pd.DataFrame]
    laws: Laws
    cells: pd.DataFrame
    errors: pd.DataFrame

    @property
    def miss(self) -> Measure:
        """Relative error of the laws on the models of many pairs."""
        return root_mean_square(self.errors["relative_error"])

    @property
    def plain_miss(self) -> Measure:
        """Relative error of lines between the two-pair models."""
        return root_mean_square(self.errors["interpolated"])

    def in_own_intervals(self) -> Array:
        """Shares of the losses in the laws' own 95 % intervals: of the curve, and of a new loss."""
        inside = [
            in_own_intervals(self.laws[str(pair)], own) for pair, own in self.errors.groupby("pair")
        ]
        return np.asarray(np.hstack(inside).mean(axis=1))


def from_two(
    rows: pd.DataFrame,
    cohort: str,
    known: Sequence[str],
    *,
    alike: bool = False,
    errors: Errors = "absolute",
) -> Prediction:
    """Predict a cohort of many pairs from cohorts of two.

    Parameters
    ----------
    rows
        From `results.load`, of all these cohorts, one test set and domain.
    known
        The two-pair cohorts.
    alike
        Whether every pair takes all laws; see `for_all_alike`.
    errors
        Of the laws, as for `fit_fraction`.

    Raises
    ------
    InputError
        When a two-pair cohort has no rows, or no cell can be predicted.
    """
    mine = rows[rows["cohort"] == cohort]
    points = {name: mean_losses(rows[rows["cohort"] == name], "pair", "p") for name in known}
    fitted = pair_laws(points, errors)
    pairs = sorted(mine.loc[mine["p"] > 0, "pair"].unique())
    laws = for_all_alike(fitted, pairs) if alike else fitted
    cells = mixture_cells(mine, pairs=len(pairs))
    if not set(laws) & set(cells["pair"]):
        raise InputError(f"{cohort}: no stored run can be predicted from {', '.join(known)}")
    errors_of = predict(laws, cells)
    for pair, own in errors_of.groupby("pair"):
        read = [
            np.exp(neighbours_seen(alone, own) @ np.log(alone["loss"]))
            for table in points.values()
            for name, alone in table.groupby("pair")
            if alike or name == pair
        ]
        errors_of.loc[own.index, "interpolated"] = np.mean(read, axis=0) / own["loss"] - 1
    return Prediction(points=points, laws=laws, cells=cells, errors=errors_of)


def pair_laws(points: Mapping[str, pd.DataFrame], errors: Errors = "absolute") -> Laws:
    """Eq. 11 with Eq. 12 for each pair of each two-pair cohort.

    Parameters
    ----------
    points
        Cohort to its points.

    Returns
    -------
    dict
        Pairs with at least one law. A cohort whose rows do not determine a law gives none.
    """
    laws: Laws = {}
    for cohort, frame in points.items():
        for pair, group in frame.groupby("pair"):
            law = fit_fraction(group, n="n", loss="loss", label=cohort, errors=errors)
            if law.identified:
                laws.setdefault(str(pair), []).append(law)
    return laws


def for_all_alike(
    laws: Mapping[str, Sequence[_Law]], pairs: Sequence[str]
) -> dict[str, list[_Law]]:
    """Give every pair all laws: for generated languages, which differ only by chance.

    Unrelated languages of a conlang are random draws from one distribution. So a law fitted to one
    of them describes another up to chance, even one that no two-pair model has read.
    """
    every = [law for own in laws.values() for law in own]
    return {pair: list(every) for pair in pairs}


def mixture_cells(rows: pd.DataFrame, *, pairs: int = 3) -> pd.DataFrame:
    """Cells of the mixtures of at least this many pairs.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain.
    """
    many = rows["mixture"].str.count(",") + 1 >= pairs
    return mean_losses(rows[many], "mixture", "pair", "p")


def predict(laws: Laws, cells: pd.DataFrame) -> pd.DataFrame:
    """Predict each cell's loss from its own share and size alone.

    Returns
    -------
    DataFrame
        `cells` with ``predicted, error, relative_error`` (predicted less observed). Pairs without a
        law are left out.
    """
    known = cells[cells["pair"].isin(list(laws))].reset_index(drop=True)
    predicted = [
        float(np.mean([law.predict(p, n)[0] for law in laws[pair]]))
        for pair, p, n in known[["pair", "p", "n"]].itertuples(index=False)
    ]
    error = predicted - known["loss"]
    return known.assign(predicted=predicted, error=error, relative_error=error / known["loss"])


def prediction_measures(laws: Mapping[str, Sequence[Refits]], cells: Cells, n: str) -> Measures:
    """Error on the cells, variance explained within pairs, and bias, as in A20."""
    losses = drawn(cells)
    losses = losses[: min(len(values) for own in laws.values() for _, values in own)]
    predicted, centre = np.empty_like(losses), np.empty_like(losses)
    for pair, rows in cells.groupby("pair").indices.items():
        p, size = (cells[column].to_numpy()[rows] for column in ("p", n))
        predicted[:, rows] = np.mean(
            [
                law.law.curve(values[: len(losses)], law.law.rows_at(p, size))
                for law, values in laws[str(pair)]
            ],
            axis=0,
        )
        centre[:, rows] = losses[:, rows].mean(1, keepdims=True)
    r2 = 1 - ((losses - predicted) ** 2).sum(1) / ((losses - centre) ** 2).sum(1)
    return {
        "error": centred(root_mean_squares(predicted / losses - 1)),
        "r2": centred_r2(r2),
        "bias": measured((losses / predicted - 1).mean(1)),
    }


def three_pairs_from_two(evidence: Evidence, setting: Setting) -> Units:
    """A20: the last cohort's losses from the laws of the others."""
    options = setting.options
    *known, wanted = setting.cohorts
    laws: dict[str, list[Refits]] = {}
    for k, cohort in enumerate(known, 1):
        for pair, cells in evidence.grid(setting, cohort).items():
            law = identified_law(cells, setting, pair, options["form"])
            laws.setdefault(pair, []).append((law, law.refit(drawn(cells, seed=k))))
    cells = in_regime(evidence.cells(setting, wanted, apart=["mixture"]), options, wanted)
    if options.get("alike"):
        laws = for_all_alike(laws, sorted(cells["pair"].unique()))
    cells = cells[cells["pair"].isin(list(laws)) & cells["p"].between(0.05, 1, inclusive="left")]
    needs = options["needs_predicted"]
    for name, rows in cells.groupby("pair"):
        sizes, weights = rows["n_non_embedding"].nunique(), rows["p"].nunique()
        if sizes < needs["sizes"] or weights < needs["mixtures"]:
            raise NoRowsYet(f"{wanted}, {name}: {weights} weights and {sizes} sizes so far")
    if cells["pair"].nunique() < len(laws):
        raise NoRowsYet(f"{wanted}: not all of {', '.join(sorted(laws))} are there yet")
    return {"all": prediction_measures(laws, cells, setting.n)}


@framed("pair", "p", "n", "loss")
def law_lines(laws: Laws, cells: pd.DataFrame) -> Rows:
    """The mean of a pair's laws over the range of sizes, at the weights of `cells`.

    Returns
    -------
    DataFrame
        ``pair, p, n, loss``.
    """
    grid = np.geomspace(cells["n"].min(), cells["n"].max(), 50)
    shares = cells[["pair", "p"]].drop_duplicates().sort_values(["pair", "p"])
    for pair, p in shares[shares["pair"].isin(list(laws))].itertuples(index=False):
        loss = np.mean([law.predict(p, grid) for law in laws[pair]], axis=0)
        yield pd.DataFrame({"pair": pair, "p": p, "n": grid, "loss": loss})


# --- without any law ---------------------------------------------------------------------------


@framed("mixture", "pair", "p", "n", "beside", "partner", "added", "ratio")
def same_share(cells: pd.DataFrame, two: Mapping[str, pd.DataFrame]) -> Rows:
    """Runs against runs: the same share of the same pair beside one other pair and beside two.

    Parameters
    ----------
    two
        Two-pair cohort to its points.

    Returns
    -------
    DataFrame
        ``mixture, pair, p, n, beside`` (the two-pair cohort), ``partner`` (the pair's companion
        there), ``added`` (the pair that only the mixture has) and ``ratio``, the three-pair loss
        over the two-pair loss, for each cell that has such a run.
    """
    for cohort, points in two.items():
        left = cells.assign(share=cells["p"].round(9), beside=cohort)
        right = points.assign(share=points["p"].round(9))[["pair", "share", "n", "loss"]]
        both = left.merge(right, on=["pair", "share", "n"], suffixes=("", "_two"))
        pairs = set(points["pair"])
        both["partner"] = [next(iter(pairs - {pair})) for pair in both["pair"]]
        listed = both["mixture"].map(lambda mixture: re.findall(r"([\w-]+):", mixture))
        both["added"] = [next(pair for pair in each if pair not in pairs) for each in listed]
        yield both.assign(ratio=both["loss"] / both["loss_two"])


def left_out_mixtures(rows: pd.DataFrame) -> pd.DataFrame:
    """Relative errors on each mixture, predicted from the other mixtures of the same pairs.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain, without zero-shot rows.

    Returns
    -------
    DataFrame
        A row a loss. ``law of mixtures`` reads the weights of all pairs. ``Eq. 12`` and ``Eq. 13``
        read a pair's own weight, as Paper A does; so does ``Eq. 7``, whose factor is of one weight,
        so it is NaN where no other mixture has that weight. ``mean`` is of the other mixtures.
    """
    weights = rows.pivot_table("p", "run_id", "pair", fill_value=0.0)
    table = []
    for pair, own in rows.groupby("pair"):
        of_law = own.join(weights, on="run_id")
        law = fit_mixture_law(of_law, str(pair), [*map(str, weights)], errors="relative")
        left = leave_one_mixture_out(law).rename(
            columns={"predicted": "law of mixtures", "naive": "mean"}
        )
        cells = own[["pair", "n_non_embedding", "cross_entropy"]].assign(p=own["p"].round(9))
        cells = cells.rename(columns={"n_non_embedding": "n", "cross_entropy": "loss"})
        for name in own["mixture"].unique():
            out = (own["mixture"] == name).to_numpy()
            seen, held = cells[~out], cells[out]
            size, p = held["n"].to_numpy(), held["p"].to_numpy()
            for form, title in FORMS.items():
                fraction = fit_fraction(seen, form=form, n="n", loss="loss", errors="relative")
                left.loc[out, title] = fraction.predict(p, size)
            if p[0] in seen["p"].to_numpy():
                joint = fit_joint_law(seen, n="n", loss="loss", errors="relative")
                left.loc[out, "Eq. 7"] = joint.predict(p, size)
        table.append(left)
    every = pd.concat(table, ignore_index=True)
    return (
        every[["law of mixtures", *FORMS.values(), "Eq. 7", "mean"]].div(every["loss"], axis=0) - 1
    )


def seed_distance(rows: pd.DataFrame) -> float:
    """Mean relative distance of the losses of two runs that differ in their seed alone.

    It is the pooled standard deviation of log loss over seeds, times 2 / sqrt(pi): the mean
    distance of two draws from a Gaussian. NaN where no cell has two seeds.

    Parameters
    ----------
    rows
        From `results.load`, of any cohorts of one test set and domain.
    """
    own = rows[rows["p"] > 0].drop_duplicates(["run_id", "pair"])
    sd, _ = between_seeds(own, "mixture", "pair", "n_non_embedding")
    return float(2 / np.sqrt(np.pi) * sd)
