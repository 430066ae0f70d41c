"""What a page reads of a cohort: its rows, the points that laws are fitted to, and the fits.

Runs arrive over days. A cohort that has none yet, or too few for any law, has no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from mnmt_repro import results
from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import Errors
from mnmt_repro.papers.cohorts.names import cohort_name, setting_label
from mnmt_repro.papers.effects.scaling import SIZE_TITLES, PairFits, fit_pairs, observed

_MIN_SIZES = 4  # of a weight: one more than the parameters of its law
_MIN_WEIGHTS = 2  # of a pair, p = 1 among them
TABS = {
    "conlang-steady": "conlang, with decay",
    "webtech-steady": "En→{De,Fr} with decay",
    "webtech-en-dezh": "En→{De,Zh}",
    "webtech-en-defr": "En→{De,Fr}",
    "webtech-dezh-en": "{De,Zh}→En",
    "conlang-sim0": "conlang, unrelated",
    "conlang-sim1": "conlang, related",
    "conlang-many2one": "conlang, many-to-one",
}
"""Grids of Paper A's figures and of generated languages, and what a tab calls them. Runs of the
first two end with a decay of the rate, those of the others stopped early."""
NEWS = {"eng-deu": "newstest21", "eng-zho": "newstest21", "eng-fra": "newstest22-pivot"}
"""Pair to its test set out of domain; French from English has no newstest21."""


@dataclass(frozen=True, kw_only=True)
class LossGrid:
    """The rows of one cohort and test set that laws can be fitted to.

    Attributes
    ----------
    cohort, test_set : str
    n : str
        Which parameter count is the size.
    rows
        As `results.load` gives them, of the pairs and weights kept.
    """

    cohort: str
    test_set: str
    n: str
    rows: pd.DataFrame = field(repr=False)

    @cached_property
    def points(self) -> pd.DataFrame:
        """Mean loss at each pair, weight and size; see `scaling.observed`."""
        return observed(self.rows, self.n)

    @property
    def errors(self) -> Errors:
        """Whose squares its laws minimise: as the rules for its tier say."""
        decayed = self.rows.get("tier", pd.Series(dtype=str)).isin(["steady", "settled"]).any()
        return "relative" if decayed else "absolute"

    @cached_property
    def fits(self) -> PairFits:
        """Laws of each pair; see `scaling.fit_pairs`."""
        return fit_pairs(self.points, self.errors)

    @property
    def name(self) -> str:
        """The cohort's name on pages, with the test set where it is not in-domain."""
        place = "" if self.test_set == "indomain" else f", {self.test_set}"
        return cohort_name(self.cohort) + place

    def row_label(self, pair: str) -> str:
        """Name a row of a chart that is of one pair of the grid."""
        return setting_label(TABS.get(self.cohort, cohort_name(self.cohort)), pair)


def choose(store: str, cohort: str, tier: str) -> tuple[str, str]:
    """Cohort and tier that a page reads; a folder of a user's own results becomes the store.

    Without a folder, or where it holds runs of that cohort and tier, both stay as they are. Else
    they are those of most of its rows: the cohort of runs that no declared cohort holds is ``""``.

    Raises
    ------
    InputError
        When there is no such folder, or it holds no rows.
    """
    if not store:
        return cohort, tier
    results.use(store)
    rows = results.load(domain="all")
    if rows.empty:
        raise InputError(f"{store}: no results are stored here")
    known = rows[["cohort", "tier"]].value_counts().index.tolist()
    return (cohort, tier) if (cohort, tier) in known else known[0]


def load_rows(**wanted: Any) -> pd.DataFrame:
    """Rows that a page cannot do without.

    Parameters
    ----------
    wanted
        Filters of `results.load`, the broadest first.

    Raises
    ------
    InputError
        When there are none; the message says which filter leaves none, and the values that leave
        some.
    """
    rows = results.load(**wanted)
    if not rows.empty:
        return rows
    rows = results.load()
    before: list[str] = []
    for name, value in wanted.items():
        several = list(value) if isinstance(value, list | tuple | set) else [value]
        kept = rows[rows[name].isin(several)]
        if kept.empty:
            known = ", ".join(sorted(map(str, rows[name].unique()))) or "none"
            among = f" among those with {', '.join(before)}" if before else ""
            raise InputError(
                f"{name} = {value!r}: no such rows are stored{among}; values there are: {known}"
            )
        rows = kept
        before.append(f"{name} = {value!r}")
    return rows


def read_grid(
    stored: pd.DataFrame,
    cohort: str,
    test_set: str | Mapping[str, str] = "indomain",
    *,
    n: str = "n_non_embedding",
) -> LossGrid | None:
    """Pick the grid of one cohort and test set out of stored rows.

    Weights with fewer than four sizes are left out, and pairs without p = 1 and a second weight.

    Parameters
    ----------
    stored
        From `results.load`, of one tier and domain; any cohorts and test sets.
    cohort
        Its name; one that holds no rows gives None.
    test_set
        One name, or a name for each pair where no test set covers all of them: pairs that are
        not named are left out.
    n
        Which parameter count is the size.

    Raises
    ------
    InputError
        When there is no such count of parameters.
    """
    if n not in SIZE_TITLES:
        raise InputError(f"n = {n!r}: what counts as size is {' or '.join(SIZE_TITLES)}")
    rows = stored[(stored["cohort"] == cohort) & (stored["p"] > 0)]
    if isinstance(test_set, str):
        rows, name = rows[rows["test_set"] == test_set], test_set
    else:
        rows = rows[rows["test_set"] == rows["pair"].map(dict(test_set))]
        name = " and ".join(sorted(set(rows["test_set"])))
        rows = rows.assign(test_set=name)
    sizes = rows.groupby(["pair", "p"])[n].transform("nunique")
    rows = rows[sizes >= _MIN_SIZES]
    weights = rows.groupby("pair")["p"].transform("nunique")
    single = (rows["p"] == 1).groupby(rows["pair"]).transform("any")
    rows = rows[(weights >= _MIN_WEIGHTS) & single].reset_index(drop=True)
    return None if rows.empty else LossGrid(cohort=cohort, test_set=name, n=n, rows=rows)


def read_all(
    stored: pd.DataFrame, first: str, tier: str, *, n: str = "n_non_embedding"
) -> dict[str, LossGrid]:
    """Grids of one cohort and of all `TABS`, then those out of domain; name to grid.

    Rows of `first` are those of `tier`. Cohorts without enough stored runs are left out, but for
    `first`.

    Raises
    ------
    InputError
        When `first` has too few stored runs.
    """
    tiers = sorted(stored.loc[stored["cohort"] == first, "tier"].unique())
    if tiers and tier not in tiers:
        raise InputError(f"{first}: no runs of tier {tier!r}; set tier to {' or '.join(tiers)}")
    grid = read_grid(stored[stored["tier"] == tier], first, n=n)
    if grid is None:
        raise InputError(
            f"{first}: too few runs are stored to fit laws to; a pair needs {_MIN_SIZES} sizes at "
            "p = 1 and at one more weight, scored on this test set"
        )
    grids = {first: grid}
    for cohort in (name for name in TABS if name != first):
        if grid := read_grid(stored, cohort, n=n):
            grids[cohort] = grid
    for cohort in ("webtech-en-dezh", "webtech-en-defr"):
        if grid := read_grid(stored, cohort, NEWS, n=n):
            grids[f"{cohort}-news"] = grid
    return grids
