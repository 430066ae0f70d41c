"""The rows that a claim reads, as one cell for each pair, weight and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
from pandas.util import hash_pandas_object

from mnmt_repro.analysis.cells import Cells, cells_of, check_grid
from mnmt_repro.analysis.intervals import Measures, NoRowsYet
from mnmt_repro.analysis.variants import Variants
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.disk_cache import text_digest

Units = dict[str, Measures]
"""What an estimand returns: measures for each pair, or under ``"all"`` for pairs taken together."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Frames of the store.

    Attributes
    ----------
    frame, curves, analyses
        `mnmt_repro.results.load`, `load_curves` and `load_analyses`.
    """

    frame: pd.DataFrame
    curves: pd.DataFrame = field(default_factory=pd.DataFrame)
    analyses: pd.DataFrame = field(default_factory=pd.DataFrame)

    @cached_property
    def tiers(self) -> Mapping[str, Evidence]:
        """The evidence of each tier."""
        return {str(tier): self._of(tier) for tier in self.frame["tier"].unique()}

    def _of(self, tier: str) -> Evidence:
        frames = (self.frame, self.curves, self.analyses)
        own = [frame if frame.empty else frame[frame["tier"] == tier] for frame in frames]
        return Evidence(frame=own[0], curves=own[1], analyses=own[2])

    @cached_property
    def digest(self) -> str:
        """Hash of all values, in their order."""
        frames = (self.frame, self.curves, self.analyses)
        values = [hash_pandas_object(frame, index=False).to_numpy() for frame in frames]
        return text_digest(
            *(" ".join(frame.columns) for frame in frames), *(v.tobytes() for v in values)
        )

    def rows(
        self, scope: Scope, cohorts: Sequence[str] | None = None, test_set: str = ""
    ) -> pd.DataFrame:
        """Rows of the scope's tier, cohorts, domain and test sets, zero-shot ones left out."""
        cohorts = scope.cohorts if cohorts is None else cohorts
        frame = self.frame[self.frame["cohort"].isin(list(cohorts))]  # few rows are left
        tests = [test_set] if test_set else [scope.test_set, scope.other_test_set]
        return frame[
            (frame["tier"] == scope.tier)
            & frame["test_set"].isin(tests)
            & (frame["domain"] == scope.domain)
            & (frame["p"] > 0)
        ]

    def with_seeds_of(self, these: Sequence[str], cohorts: Sequence[str]) -> Evidence:
        """The evidence without rows of `cohorts` whose seeds the cohorts `these` do not have."""
        seeds = set(self.frame.loc[self.frame["cohort"].isin(list(these)), "seed"])
        more = self.frame["cohort"].isin(list(cohorts)) & ~self.frame["seed"].isin(seeds)
        return replace(self, frame=self.frame[~more]) if more.any() else self

    def variants(self, scope: Scope, options: Mapping[str, Any]) -> Variants:
        """Named runs of the scope's first cohort; the others tell the noise of the seed."""
        return Variants(
            rows=self.frame,
            cohorts=scope.cohorts,
            tier=scope.tier,
            test_set=scope.test_set,
            needs=options["needs"],
            blocked=options.get("blocked", False),
        )

    def commits(self, scope: Scope) -> set[str]:
        """Commits of all that a claim may read in the scope: its runs and their analyses."""
        found = set(self.rows(scope)["commit"])
        if not self.analyses.empty:
            mine = self.analyses["cohort"].isin(list(scope.cohorts))
            found |= set(self.analyses.loc[mine & (self.analyses["tier"] == scope.tier), "commit"])
        return found

    def cells(
        self,
        scope: Scope,
        cohort: str,
        test_set: str = "",
        scored: str = "cross_entropy",
        *,
        apart: Sequence[str] = (),
    ) -> Cells:
        """Means over seeds of the scope's rows in one cohort and test set, from `cells_of`.

        Parameters
        ----------
        apart
            Columns that tell cells apart beside pair, weight and size: where a pair has one weight
            in several mixtures, ``mixture``.
        scored
            Read are rows that have this score, so that all means of a cell are of the same runs.

        Raises
        ------
        NoRowsYet
            When there are none.
        """
        rows = self.rows(scope, [cohort], test_set or scope.test_set)
        rows = rows[rows[scored].notna()] if scored in rows else rows.iloc[:0]
        if rows.empty and scored != "cross_entropy":
            raise NoRowsYet(f"{cohort}: no run has been decoded and scored with {scored}")
        if rows.empty:
            where = f"{cohort}, {test_set or scope.test_set}, tier {scope.tier}"
            raise NoRowsYet(f"no rows of {where}")
        return cells_of(rows, *apart)

    def grid(
        self,
        claim: Claim,
        scope: Scope,
        cohort: str = "",
        test_set: str = "",
        weights: Sequence[float] = (),
        scored: str = "cross_entropy",
    ) -> dict[str, Cells]:
        """Cells of each pair of a cohort, once the grid is as full as the claim needs it.

        The cohort is the scope's first unless named. `weights` are as for `check_grid`, and
        `scored` is as for `cells`.

        Raises
        ------
        NoRowsYet
            Saying what is missing.
        """
        cohort, by = cohort or scope.cohorts[0], claim.options.get("by", "p")
        cells = self.cells(scope, cohort, test_set, scored, apart=[] if by == "p" else [by])
        return {
            str(pair): check_grid(
                rows.reset_index(drop=True),
                f"{cohort}, {pair}",
                claim.options["needs"],
                weights,
                by,
            )
            for pair, rows in cells.groupby("pair")
        }
