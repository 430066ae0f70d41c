"""Simulated analyses and scores, for the attainability of claims A16, B12 and B14.

`mnmt_repro.claims.attainability` says what a simulation is for, and what each world means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.analysis.forgetting import analysed
from mnmt_repro.analysis.intervals import NoRowsYet
from mnmt_repro.analysis.variants import VariantAt
from mnmt_repro.claims.estimands_forgetting import resources
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.laws.checks import Array


class AnalysisData:
    """Simulated analyses of runs with and without learning-rate scaling.

    A value is that of its direction or layer, changed by the world's effect, plus noise of the run
    and noise of the value within the run. Both kinds of noise are those of the seeds. Distances are
    taken as logarithms. The loss that a direction gains is not, since it can be below zero.
    """

    def __init__(self, claim: Claim, scope: Scope, evidence: Evidence) -> None:
        options = claim.options
        self._evidence, self._name = evidence, "substituted" if "models" in options else "moved"
        prefixes = [f"{model}, " for model in options["models"]] if "models" in options else [""]
        parts = []
        for prefix in prefixes:
            for kind in ("scaled", "unscaled"):
                variant = VariantAt(scope.cohorts[0], prefix + options[kind], options["share"])
                rows = analysed(evidence.analyses, scope.tier, variant, self._name)
                parts.append(rows.assign(of=prefix, scaled=kind == "scaled"))
        rows = pd.concat(parts).reset_index(drop=True)
        rows["unit"] = rows["pair"] + rows["layer"] + rows["block"]
        value = rows["value"].astype(float)
        rows["y"] = value if self._name == "substituted" else np.log(value)
        self._rows = rows
        self._run_sd, self._value_sd = _noise(rows)
        if self._name == "substituted":
            old = VariantAt(options["old_cohort"], options["old_model"], 1.0)
            weight = np.log(resources(evidence, scope, old))
            self._place = (weight.max() - weight) / np.ptp(weight)  # 0 the largest, 1 the smallest

    def draw(self, world: Mapping[str, Any], random: np.random.Generator) -> Evidence:
        """One data set in which a world is true."""
        rows = self._rows
        truth = self._drops(world, random) if self._name == "substituted" else self._moves(world)
        run = pd.factorize(rows["run_id"])[0]
        noise = self._run_sd * random.standard_normal(run.max() + 1)[run]
        noise += self._value_sd * random.standard_normal(len(rows))
        y = truth + noise
        drawn = rows.assign(value=y if self._name == "substituted" else np.exp(y))
        return replace(self._evidence, analyses=drawn[self._evidence.analyses.columns])

    def _drops(self, world: Mapping[str, Any], random: np.random.Generator) -> Array:
        """The loss that each direction gains (rows,)."""
        rows = self._rows
        found = np.zeros(len(rows))
        for _, mine in rows.groupby("of"):
            unscaled = mine[~mine["scaled"]].groupby("pair")["y"].mean()
            place = self._place[unscaled.index].to_numpy()
            line = np.polynomial.Polynomial.fit(place, unscaled.to_numpy(), 1)
            scatter = random.permutation(unscaled.to_numpy() - line(place))
            trend = 1 + (world["smallest"] - 1) * place
            truth = pd.Series(unscaled.mean() * trend / trend.mean() + scatter, unscaled.index)
            left = np.where(mine["scaled"], 1 - world["relief"], 1.0)
            found[mine.index] = truth[mine["pair"]].to_numpy() * left
        return found

    def _moves(self, world: Mapping[str, Any]) -> Array:
        """Log distances (rows,); the effect is as uneven over layers as observed."""
        rows = self._rows
        mean = rows.groupby(["scaled", "unit"])["y"].mean()
        block = rows.drop_duplicates("unit").set_index("unit")["block"]
        effect = mean[True] - mean[False]
        uneven = effect - effect.groupby(block).transform("mean")
        changed = uneven + block.reindex(effect.index).map(world["moved"]).fillna(0.0)
        truth = mean[False][rows["unit"]].to_numpy()
        return truth + np.where(rows["scaled"], changed[rows["unit"]].to_numpy(), 0.0)


def _noise(rows: pd.DataFrame) -> tuple[float, float]:
    """Standard deviations over seeds of a value: common to a run, and within it."""
    left = rows["y"] - rows.groupby(["of", "scaled", "unit"])["y"].transform("mean")
    seeds = rows.groupby(["of", "scaled"])["seed"].transform("nunique")
    many = rows[seeds > 1].assign(left=left * np.sqrt(seeds / (seeds - 1)))
    of_run = many.groupby("run_id")["left"].transform("mean")
    return float(of_run.std(ddof=0)), float((many["left"] - of_run).std(ddof=0))


class MetricData:
    """Simulated scores: a straight line of the observed losses, and scatter around it."""

    def __init__(self, claim: Claim, scope: Scope, evidence: Evidence) -> None:
        self._evidence, self._metric = evidence, claim.options["metric"]
        rows = evidence.rows(scope, scope.cohorts[:1], scope.test_set)
        self._rows = rows[rows[self._metric].notna()]
        if self._rows.empty:
            raise NoRowsYet(f"{scope.cohorts[0]}: no run is scored with {self._metric}")

    def draw(self, world: Mapping[str, Any], random: np.random.Generator) -> Evidence:
        """One data set in which a world is true."""
        frame = self._evidence.frame.copy()
        for _, mine in self._rows.groupby("pair"):
            loss = mine["cross_entropy"].to_numpy(dtype=float)
            line = np.polynomial.Polynomial.fit(loss, mine[self._metric].to_numpy(dtype=float), 1)
            share = world["unexplained"]
            sd = np.sqrt(share / (1 - share)) * line(loss).std()
            scores = line(loss) + sd * random.standard_normal(len(loss))
            frame.loc[mine.index, self._metric] = scores
        return replace(self._evidence, frame=frame)
