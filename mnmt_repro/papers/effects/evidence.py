"""The rows that an effect reads: which setting, and one cell for each pair, weight and size.

An effect is a function of `Evidence` and `Setting`. It gives the measures of each pair, or under
``"all"`` those of all pairs together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ConfigDict

from mnmt_repro.disk_cache import text_digest
from mnmt_repro.laws.checks import Errors
from mnmt_repro.papers.cohorts import catalogue, settled
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.cells import Cells, cells_of, check_grid, in_regime
from mnmt_repro.papers.effects.noise import Measures, NoRowsYet, OutOfRegime
from mnmt_repro.papers.effects.variants import Variants

_NOWHERE = np.zeros(0, dtype=np.intp)
Units = dict[str, Measures]
"""What an effect returns: measures for each pair, or under ``"all"`` for pairs taken together."""


Kind = Literal["generated languages", "real text", "published numbers"]
"""What the rows of a setting are: the last are losses of runs of others."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where an effect is measured: which rows, and against which parameter count.

    `options` replace the claim's options of the same names.
    """

    name: str
    kind: Kind
    cohorts: tuple[str, ...]
    tier: str = "mini"
    test_set: str = "indomain"
    other_test_set: str = ""
    domain: str = "all"
    n: Literal["n_non_embedding", "n_total"] = "n_non_embedding"
    options: Mapping[str, Any] = field(default_factory=dict)
    __pydantic_config__ = ConfigDict(extra="forbid")  # a claims file has no other fields

    @property
    def by(self) -> str:
        """Column that stands in for the weight, such as ``mixture`` where that is no number."""
        return str(self.options.get("by", "p"))

    @property
    def errors(self) -> Errors:
        """Whose squares laws minimise."""
        return self.options.get("errors", "absolute")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Frames of the store.

    Attributes
    ----------
    frame, analyses
        `mnmt_repro.results.load` and `load_analyses`.
    """

    frame: pd.DataFrame
    analyses: pd.DataFrame = field(default_factory=pd.DataFrame)

    @cached_property
    def tiers(self) -> Mapping[str, Evidence]:
        """The evidence of each tier."""
        return {str(tier): self._of(tier) for tier in self.frame["tier"].unique()}

    def _of(self, tier: str) -> Evidence:
        frames = (self.frame, self.analyses)
        own = [frame if frame.empty else frame[frame["tier"] == tier] for frame in frames]
        return Evidence(frame=own[0], analyses=own[1])

    @cached_property
    def digest(self) -> str:
        """Hash of all columns and values, in their order."""
        frames = (self.frame, self.analyses)
        values = (pd.util.hash_pandas_object(frame, index=False).to_numpy() for frame in frames)
        columns = (" ".join(frame.columns) for frame in frames)
        return text_digest(*columns, *(each.tobytes() for each in values))

    @cached_property
    def _places(self) -> Mapping[str, NDArray[np.intp]]:
        """Positions of each cohort's rows; to compare all rows with its name takes long."""
        return dict(self.frame.groupby("cohort", sort=False).indices)  # type: ignore[arg-type]

    def rows(
        self, setting: Setting, cohorts: Sequence[str] | None = None, test_set: str = ""
    ) -> pd.DataFrame:
        """Rows of the setting's tier, cohorts, domain and test sets, zero-shot ones left out."""
        cohorts = setting.cohorts if cohorts is None else cohorts
        places = [self._places.get(cohort, _NOWHERE) for cohort in {*cohorts}]
        frame = self.frame.iloc[np.sort(np.concatenate([_NOWHERE, *places]))]  # few rows are left
        tests = [test_set] if test_set else [setting.test_set, setting.other_test_set]
        return frame[
            (frame["tier"] == setting.tier)
            & frame["test_set"].isin(tests)
            & (frame["domain"] == setting.domain)
            & (frame["p"] > 0)
        ]

    def missing(self, setting: Setting) -> str:
        """How many runs of its first incomplete cohort are missing; empty where none is.

        Only the tier `settled` asks for whole grids. Earlier grids are read as they are.
        """
        if setting.tier != settled.TIER:
            return ""
        there = set(self.rows(setting)["run_id"])
        for name in setting.cohorts:
            declared = {
                run.run_id
                for cohort in catalogue.declared(setting.tier)
                if (cohort.repeats or cohort.name) == name
                for run in cohort.runs()
            }
            if missing := declared - there:
                but = f"{len(missing)} of " * bool(declared & there)
                return f"{but}its {len(declared)} runs are still to be trained"
        return ""

    def variants(self, setting: Setting) -> Variants:
        """Named runs of the setting's first cohort; the others give the noise of the seed."""
        return Variants(
            rows=self.frame,
            cohorts=setting.cohorts,
            tier=setting.tier,
            test_set=setting.test_set,
            needs=setting.options["needs"],
            blocked=setting.options.get("blocked", False),
        )

    def commits(self, setting: Setting) -> set[str]:
        """Commits of all that a claim may read in the setting: its runs and their analyses."""
        commits = {*self.rows(setting)["commit"].unique()}
        if not self.analyses.empty:
            mine = self.analyses["cohort"].isin(list(setting.cohorts))
            mine &= self.analyses["tier"] == setting.tier
            commits |= {*self.analyses.loc[mine, "commit"].unique()}
        return commits

    def cells(
        self,
        setting: Setting,
        cohort: str,
        test_set: str = "",
        scored: str = "cross_entropy",
        *,
        apart: Sequence[str] = (),
    ) -> Cells:
        """Means over seeds of the setting's rows in one cohort and test set, from `cells_of`.

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
        rows = self.rows(setting, [cohort], test_set or setting.test_set)
        rows = rows[rows[scored].notna()] if scored in rows else rows.iloc[:0]
        if rows.empty and scored != "cross_entropy":
            raise NoRowsYet(f"{cohort}: no run has been decoded and scored with {scored}")
        if rows.empty:
            where = f"{cohort}, {test_set or setting.test_set}, tier {setting.tier}"
            raise NoRowsYet(f"no rows of {where}")
        return cells_of(rows, *apart)

    def grid(
        self,
        setting: Setting,
        cohort: str = "",
        test_set: str = "",
        weights: Sequence[float] = (),
        scored: str = "cross_entropy",
    ) -> dict[str, Cells]:
        """Cells of each pair of a cohort, once the grid is as full as the options ask.

        They are those in regime, where the options say what that is.

        The cohort is the setting's first unless named. `weights` are as for `check_grid`, and
        `scored` is as for `cells`.

        Raises
        ------
        NoRowsYet
            Saying what is missing.
        OutOfRegime
            When it is missing only among the cells in regime.
        """
        options, cohort = setting.options, cohort or setting.cohorts[0]
        by = setting.by
        cells = self.cells(setting, cohort, test_set, scored, apart=[] if by == "p" else [by])
        full = {}
        for pair, rows in cells.groupby("pair"):
            where = pair_name(str(pair))
            check_grid(rows, where, options["needs"], weights, by)
            kept = in_regime(rows.reset_index(drop=True), options, where)
            try:
                full[str(pair)] = check_grid(kept, where, options["needs"], weights, by)
            except NoRowsYet as few:
                raise OutOfRegime(f"too little text: {few}") from few
        return full
