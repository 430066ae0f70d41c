"""Could a rule have come out otherwise? Simulated data, judged by the claim's own estimand.

An outcome says something about the paper only where another outcome was possible. For each claim
and scope, data are simulated in which the paper is right, and data in which a stated alternative
holds. Each data set goes through the claim's estimand and rule. The shares of the verdicts give

- `attainability`: P(reproduced | the paper is right),
- `false_fail`: P(not reproduced | the paper is right),
- `false_pass`: P(reproduced | the alternative), the largest over the alternatives.

A world says what is true of the simulated data; the `worlds` of a claim list them. Of comparisons
of variants (`VariantData`):

``{printed: 1.0}``
    Each variant is better than its control by what the paper's table prints, in per cent of the
    control's score, times the factor.
``{gains: {name: percent}}``
    The named variants are better than all others by so much; the others are alike.
``{closed: share}``
    Each upgrade closes this share of the gap between the early and the full baseline.

``{sides: {out: percent, into: percent}}``
    The upgraded models are better than their baseline by so much out of English and into it;
    ``{sides: printed}`` by the means of Table 8.

Of analyses of old weights (`AnalysisData`):

``{relief: 0.3, smallest: 2.0}``
    With scaling each direction loses that share less. The smallest direction loses so many times
    what the largest loses; in between the loss is a straight line in the log of the training text.
``{moved: {old: -0.2, new: 0.2}}``
    Scaling changes the log distance of these blocks from the old matrix by so much.

Of scores of decoded text (`MetricData`):

``{unexplained: 0.02}``
    The score is a straight line of the loss; scatter leaves this share of its variance unexplained.

Of under-trained models (`CorrectionData`):

``{closed: 1.0}``
    Read at the claim's multiple of the budget, each learning curve closes this share of the model's
    distance from the law of the other models.

Of grids of sizes and mixtures (`GridData`):

``{spread: 0.0}``
    The joint law that was fitted to the rows (Eq. 7) is exactly true. With another number the
    exponents spread evenly by that share to both sides, in the order of the weights, and all other
    things stay: each curve keeps its loss at the geometric mean of the sizes.
``{spread: 0.0, unexplained: 0.02}``
    The same, with scatter beside the noise that leaves this share of each curve's variance
    unexplained by any law.
``{seeds: 4}``, beside any of these
    The grid has so many times as many seeds of each cell: each row stands for the mean of these.
``{alpha: 0.2}``, ``{l_inf: 0.05}``
    The exponent, or the irreducible loss, changes with the weight along a straight line, by so much
    from p = 1 to p = 0.05: of itself, or of the smallest single-pair model's loss. Each curve keeps
    its loss at the geometric mean of the sizes.
``{slope: 0.1}``
    f changes as N to this power.
``{f: eq12}``, ``{f: 1}``
    f(p) follows Eq. 12 (or ``eq13``), or is this number at all weights below 1.
``{f_over_p: {0.05: 3.75}}``
    f(p) is so many times p at these weights; ``all`` stands for all weights below 1.
``{contrast: 0.4}``
    f of each further cohort is the first one's, times e to this power.
``{slope_of_similarity: 0.4}``
    The same, in equal steps from the first cohort to the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from mnmt_repro.analysis.drift import along
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.intervals import NoRowsYet
from mnmt_repro.analysis.noise import require
from mnmt_repro.analysis.published import comparisons, zoomed
from mnmt_repro.analysis.variants import left_by_means
from mnmt_repro.architecture import parameter_counts
from mnmt_repro.claims.estimands_law import errors_of
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.judging import ESTIMANDS, judge
from mnmt_repro.claims.schema import Claim, Options, Scope
from mnmt_repro.claims.simulators import AnalysisData, MetricData
from mnmt_repro.cohorts.catalogue import declared, find_cohort
from mnmt_repro.cohorts.languages25 import groups_of, old_model
from mnmt_repro.cohorts.variants import VariantCohort
from mnmt_repro.errors import InputError
from mnmt_repro.laws import JointLawFit, fit_fraction, fit_joint_law
from mnmt_repro.laws.checks import Array, Errors
from mnmt_repro.laws.convergence import declared_runs, extrapolate_curve
from mnmt_repro.laws.effective import log_fraction

WORLD_DRAWS = 400
"""Simulated data sets of each world."""

ADMITTED = {"attainability": 0.8, "false_fail": 0.05, "false_pass": 0.1}
"""A rule is registered only if its attainability is at least, and its errors at most, as large."""


@dataclass(frozen=True, kw_only=True)
class Attainability:
    """Shares of the verdicts in simulated data: where the paper is right, and where it is not."""

    right: Mapping[str, float]
    wrong: tuple[Mapping[str, float], ...]
    draws: int

    @property
    def attainability(self) -> float:
        """P(reproduced | the paper is right)."""
        return self.right.get("reproduced", 0.0)

    @property
    def false_fail(self) -> float:
        """P(not reproduced | the paper is right)."""
        return self.right.get("not reproduced", 0.0)

    @property
    def false_pass(self) -> float:
        """P(reproduced | an alternative), the largest over the alternatives."""
        return max(shares.get("reproduced", 0.0) for shares in self.wrong)

    def __str__(self) -> str:
        return (
            f"P(reproduced | right) {self.attainability:.2f}, P(not reproduced | right) "
            f"{self.false_fail:.2f}, P(reproduced | wrong) {self.false_pass:.2f}"
        )


def attainability(
    claim: Claim,
    scope: Scope,
    evidence: Evidence,
    *,
    draws: int = WORLD_DRAWS,
    besides: Mapping[str, Any] | None = None,
) -> Attainability:
    """Simulate a claim in one of its scopes; `besides` is added to each of its worlds.

    Raises
    ------
    InputError
        When the claim states no worlds, or its estimand has no simulator.
    NoRowsYet
        When there are no rows to take the noise and the shape of the data from.
    """
    worlds = claim.in_scope(scope).worlds
    if worlds is None or claim.function not in SIMULATORS:
        raise InputError(f"claim {claim.id}, {scope.name}: states no worlds to simulate")
    data = SIMULATORS[claim.function](claim, scope, evidence)
    light = _lighter(claim.in_scope(scope))

    def shares(world: Mapping[str, Any]) -> dict[str, float]:
        random = np.random.default_rng(0)
        drawn = (data.draw({**world, **(besides or {})}, random) for _ in range(draws))
        found = Counter(judge(light, scope, each).verdict for each in drawn)
        return {verdict: count / draws for verdict, count in sorted(found.items())}

    return Attainability(
        right=shares(worlds.right), wrong=tuple(map(shares, worlds.wrong)), draws=draws
    )


DRAWS_WITHIN = 100
"""Refits behind an interval within a simulated data set; a verdict takes 1,000."""


def _lighter(claim: Claim) -> Claim:
    """The claim (in a scope) with fewer refits, and without what it shows but does not judge.

    The verdict is the same but for the precision of an interval's ends. A rule that reads neither
    an interval nor power needs no refits; two keep the estimand whole.
    """
    asked = [test for step in claim.rule for test in step.when]
    if any(test.measure.startswith("cells_") for test in asked):
        return claim
    uncertain = any(test.of != "value" or test.measure == "power" for test in asked)
    draws = DRAWS_WITHIN if uncertain else 2
    given = {name: value for name, value in claim.options.items() if name != "table"}
    where = getattr(claim.options, "where", claim.id)
    return replace(
        claim,
        cells=() if "table" in claim.options else claim.cells,
        options=Options(given | {"draws": draws, "unjudged": False}, where),
    )


@dataclass(frozen=True, kw_only=True)
class VariantNoise:
    """Relative standard deviations of the losses of variants of software25.

    Attributes
    ----------
    run
        Of a run's mean loss, beside what its old model gives to all its upgrades.
    old
        Of what an old model gives to all its upgrades of a seed.
    cell
        Of a run's loss in one direction, beside its mean.
    """

    run: float
    old: float
    cell: float


FIRST_ROUND = VariantNoise(run=0.0015, old=0.01, cell=0.0045)
"""What the repeated runs of the first round show, rounded up (Tables 1 and 3, three seeds). Used
where a scope has no repeated runs of its own."""


class VariantData:
    """Simulated losses of the variants that a claim of Paper B compares.

    A variant's loss in a direction is a common loss of the direction, changed by the world's effect
    on its group of directions and by how this variant's runs deviate from that group's mean there
    (so that effects stay as uneven over directions as observed), times the noise of its old model,
    of its run and of the cell.
    """

    def __init__(self, claim: Claim, scope: Scope, evidence: Evidence) -> None:
        self._claim, self._scope, self._evidence = claim.in_scope(scope), scope, evidence
        frame = pd.concat([self._rows(cohort) for cohort in scope.cohorts], ignore_index=True)
        self._frame = frame
        self._noise = _variant_noise(scope, evidence)
        self._log_loss = np.log(frame["cross_entropy"].to_numpy(dtype=float))
        old = [
            "" if name.startswith("M2") or "random init all" in name else old_model(name) or "M20"
            for name in frame["variant"]
        ]
        self._has_old = np.array([bool(name) for name in old])
        self._old = _index(pd.Series(old, index=frame.index), frame["seed"])
        self._run = _index(frame["run_id"])
        if claim.function == "directions_learned":
            self._group = np.where(frame["pair"].str.startswith("eng-"), "out", "into")
        else:
            added = set(groups_of("Mt25")["added"])
            self._group = np.where(frame["pair"].isin(added), "added", "original")

    def _rows(self, cohort: str) -> pd.DataFrame:
        """Rows of a cohort; before it was trained, those of its first round under its own seeds."""
        scope = self._scope
        rows = self._evidence.rows(scope, [cohort], scope.test_set)
        declared = find_cohort(cohort, scope.tier)
        assert isinstance(declared, VariantCohort)
        wanted = {(v.name, round(v.updates_share, 6), v.spec.seed) for v in declared.variants}
        if not rows.empty and wanted <= set(
            zip(rows["variant"], rows["updates_share"].round(6), rows["seed"], strict=True)
        ):
            return rows
        first = self._evidence.rows(scope, [cohort.removesuffix("-fresh")], scope.test_set)
        first = first[first["seed"] == first["seed"].min()]
        parts = []
        for variant in declared.variants:
            mine = first[
                (first["variant"] == variant.name)
                & np.isclose(first["updates_share"].astype(float), variant.updates_share)
            ]
            if mine.empty:
                raise NoRowsYet(f"{cohort}: no rows of {variant.name} to simulate from")
            parts.append(
                mine.assign(cohort=cohort, seed=variant.spec.seed, run_id=variant.spec.run_id)
            )
        return pd.concat(parts)

    def draw(self, world: Mapping[str, Any], random: np.random.Generator) -> Evidence:
        """One data set in which a world is true."""
        noise, frame = self._noise, self._frame
        moved = self._truth(world)
        moved = moved + noise.old * self._has_old * _each(self._old, random)
        moved += noise.run * _each(self._run, random)
        moved += noise.cell * random.standard_normal(len(frame))
        return replace(self._evidence, frame=frame.assign(cross_entropy=np.exp(moved)))

    def _truth(self, world: Mapping[str, Any]) -> Array:
        """Log losses (rows,) without noise."""
        frame = self._frame
        where = frame["cohort"] == self._scope.cohorts[0]
        effects = self._effects(world)
        keys = [frame[name] for name in ("cohort", "variant", "updates_share")]
        logs = pd.Series(self._log_loss, index=frame.index)
        group = pd.Series(self._group, index=frame.index)
        by_pair = logs.groupby([*keys, frame["pair"]]).transform("mean")
        common = logs[where].groupby(frame["pair"]).mean().reindex(frame["pair"]).to_numpy()
        deviation = by_pair - common
        deviation -= deviation.groupby([*keys, group]).transform("mean")
        gains = [
            effects.get((name, round(share, 6)), effects.get((name, None), {})).get(of, 0.0)
            for name, share, of in zip(
                frame["variant"], frame["updates_share"], self._group, strict=True
            )
        ]
        changed = common + deviation + np.log1p(-np.array(gains) / 100)
        return np.where(where, changed, by_pair)

    def _effects(
        self, world: Mapping[str, Any]
    ) -> dict[tuple[str, float | None], dict[str, float]]:
        """Gains in per cent, by variant (and share of the updates) and group of languages."""
        if "printed" in world:
            table = world.get("table") or self._claim.options["table"]
            found: dict[tuple[str, float | None], dict[str, float]] = {}
            for cell in comparisons(table["number"], table["controls"], table.get("prefix", "")):
                gain = world["printed"] * cell.relative
                found.setdefault((cell.treated, None), {})[cell.group] = gain
            return found
        if "closed" in world:
            return self._closed(world["closed"])
        if "sides" in world:
            sides = _printed_sides() if world["sides"] == "printed" else world["sides"]
            return {(name, None): sides for name in self._claim.options["groupings"]}
        gains = world.get("gains", {})
        return {(name, None): {"original": x, "added": x} for name, x in gains.items()}

    def _closed(self, share: float) -> dict[tuple[str, float | None], dict[str, float]]:
        """Early baselines as far behind as observed, upgrades where `share` of it is closed."""
        frame, options = self._frame, self._claim.options
        mean = (
            frame[frame["cohort"] == self._scope.cohorts[0]]
            .assign(updates_share=frame["updates_share"].round(6))
            .groupby(["variant", "updates_share"])["cross_entropy"]
            .mean()
        )
        found: dict[tuple[str, float | None], dict[str, float]] = {}
        for upgraded, baseline in options["upgrades"].items():
            full = mean[baseline, 1.0]
            behind = 100 * (mean[baseline, options["early"]] / full - 1)
            left = (1 - share) * behind
            found[baseline, options["early"]] = {"original": -behind, "added": -behind}
            found[upgraded, options["share"]] = {"original": -left, "added": -left}
        return found


def _printed_sides() -> dict[str, float]:
    """Mean differences of Table 8 in per cent of the baseline, out of English and into it."""
    cells = pd.DataFrame({"group": cell.group, "relative": cell.relative} for cell in zoomed())
    side = np.where(cells["group"].str.startswith("eng-"), "out", "into")
    return {
        str(name): float(value) for name, value in cells.groupby(side)["relative"].mean().items()
    }


def _variant_noise(scope: Scope, evidence: Evidence) -> VariantNoise:
    """The noise that repeated runs of a scope show; `FIRST_ROUND` where they cannot show it."""
    variants = replace(evidence.variants(scope, {"needs": {}}), apart=True)
    study = variants.study(groups_of("Mt25")["all"])
    try:
        run, freedom = study.noise
    except NoRowsYet:
        return FIRST_ROUND
    try:
        old = study.noise_of_old_models[0]
    except NoRowsYet:
        old = FIRST_ROUND.old
    squares, cells = 0.0, 0
    for table in study.scores.values():
        whole = np.log(table.dropna(axis=1).to_numpy())
        if len(whole) > 1:
            left, spare = left_by_means(whole)
            squares, cells = squares + left, cells + spare
    if not freedom or not cells:
        return FIRST_ROUND
    return VariantNoise(run=run, old=old, cell=float(np.sqrt(squares / cells)))


_PILOT = ("steady", "conlang-pilot")
"""Tier and cohort of the runs from which a grid is planned before it has rows."""


class GridData:
    """Simulated losses of a grid of sizes and mixtures, around the joint law of each pair.

    Noise is relative to the loss, and estimated for each pair and model size by itself. Where seeds
    repeat cells it is that of the seeds. Where they do not, what the joint law leaves stands in for
    it, which is at least as large. A grid that lacks cells of its own is planned: its losses and
    its noise are those of the pilot's law and seeds, with a fraction that is a power of the weight.
    Further seeds and sizes that are declared beside it are not waited for: a verdict does not
    wait for them either, and must be simulated with the runs that it reads.
    """

    def __init__(self, claim: Claim, scope: Scope, evidence: Evidence) -> None:
        claim = claim.in_scope(scope)
        self._evidence, by = evidence, claim.options.get("by", "p")
        frame = evidence.rows(scope, test_set=scope.test_set)
        planned = not set(scope.cohorts) <= set(frame["cohort"])
        if planned or scope.tier == _PILOT[0]:
            plan = _planned(scope, evidence)
            own = plan[plan["own"]]
            planned = not set(_cells(own)) <= set(_cells(frame))
            frame = plan if planned else frame
        frame = frame.reset_index(drop=True)
        self._frame = frame = frame.assign(p=frame["p"].round(9))
        self._mixed, self._cohorts = by != "p", scope.cohorts
        self._laws: dict[tuple[str, str], JointLawFit] = {}
        rows = np.zeros((len(frame), 5))
        for cohort in scope.cohorts:
            for pair, mine in frame[frame["cohort"] == cohort].groupby("pair"):
                fit = self._law(cohort, str(pair), mine, scope.n, by, errors_of(claim))
                n = mine[scope.n].to_numpy(dtype=float)
                place = mine[by].map(mine.groupby(by)["p"].mean().rank(method="dense"))
                place = 2 * (place - 1) / max(place.max() - 1, 1) - 1  # -1 to 1 over the weights
                middle = np.exp(np.log(n).mean())
                beta = np.array(fit.values)[2:]
                group = fit.index(mine[by] if self._mixed else np.ones(len(n)))
                at_middle = beta[group] * middle**-fit.alpha
                rows[mine.index] = np.column_stack(
                    np.broadcast_arrays(fit.alpha, fit.l_inf, at_middle, n / middle, place)
                )
        self._alpha, self._l_inf, self._at_middle, self._size, self._place = rows.T
        self._noise = _pilot_noise(frame, evidence) if planned else self._noise_by_size(by)
        # What no law explains is the same for all seeds of a cell, whose mean would hide it.
        cell = frame.groupby(["cohort", "pair", by, "n_non_embedding"], sort=False)
        self._cell = cell.ngroup().to_numpy()
        curve = [frame[name] for name in ("cohort", "pair", by)]
        spread = pd.Series(self._mean({})).groupby(curve).transform("std")
        self._spread_of_curves = spread.fillna(0.0).to_numpy()

    def _law(
        self, cohort: str, pair: str, rows: pd.DataFrame, n: str, by: str, errors: Errors
    ) -> JointLawFit:
        """Law that a pair's losses follow: its own, or of a pair that is never alone the first."""
        if by == "p" and not (rows["p"] == 1).any():
            fit = next(iter(self._laws.values()))
        else:
            fit = fit_joint_law(rows, n=n, by=by, errors=errors)
            require(fit, f"joint law of {pair}")
        self._laws[cohort, pair] = fit
        return fit

    def _noise_by_size(self, by: str) -> Array:
        """Relative standard deviation of a loss (rows,)."""
        frame = self._frame
        cell = [frame[name] for name in ("cohort", "pair", by, "n_non_embedding")]
        size = frame["n_non_embedding"]
        log_loss = pd.Series(np.log(frame["cross_entropy"].to_numpy(dtype=float)))
        of_seeds = (log_loss - log_loss.groupby(cell).transform("mean")) ** 2
        of_law = (log_loss - np.log(self._mean({}))) ** 2
        own = [frame["cohort"], frame["pair"], size]  # pooled over weights, and over nothing else
        repeats = 1 - 1 / log_loss.groupby(cell).transform("size")
        freedom = repeats.groupby(own).transform("sum")
        pure = of_seeds.groupby(own).transform("sum") / freedom.where(freedom > 0)
        beside = of_law.groupby(own).transform("mean")
        return np.asarray(np.sqrt(pure.fillna(beside)), dtype=float)

    def _mean(self, world: Mapping[str, Any]) -> Array:
        """Losses without noise (rows,)."""
        alpha, l_inf, at_middle = self._alpha, self._l_inf, self._at_middle
        if not self._mixed:
            p = self._frame["p"].to_numpy(dtype=float)
            small = along(p)
            at_middle = at_middle * np.exp(-alpha * self._log_fractions(world))
            alpha = alpha * (1 + world.get("alpha", 0.0) * small)
            if "l_inf" in world:
                moved = world["l_inf"] * self._smallest() * small
                moved = np.maximum(moved, 1e-3 - l_inf)  # no constant lies below zero
                l_inf, at_middle = l_inf + moved, at_middle - moved
            alpha = np.where(p < 1, alpha * (1 + world.get("slope", 0.0)), alpha)
        exponent = alpha * (1 + world.get("spread", 0.0) * self._place)
        return np.asarray(l_inf + at_middle * self._size**-exponent)

    def _log_fractions(self, world: Mapping[str, Any]) -> Array:
        """Log f(p) (rows,) in a world; in the empty one that of the fitted laws."""
        found = np.zeros(len(self._frame))
        of_similarity = world.get("slope_of_similarity")
        for (cohort, pair), law in self._laws.items():
            mine = ((self._frame["cohort"] == cohort) & (self._frame["pair"] == pair)).to_numpy()
            p = self._frame.loc[mine, "p"].to_numpy(dtype=float)
            place, moved = self._cohorts.index(cohort), 0.0
            if place and ("contrast" in world or of_similarity is not None):
                law = self._first_like(cohort, pair)
                share = place / (len(self._cohorts) - 1)
                moved = world["contrast"] if of_similarity is None else of_similarity * share
            log_f = _log_fraction(law, p, world.get("f", "fitted"))
            for weight, times in world.get("f_over_p", {}).items():
                here = (p < 1) if weight == "all" else np.isclose(p, weight)
                log_f = np.where(here, np.log(times * p), log_f)
            found[mine] = np.where(p < 1, log_f + moved, 0.0)
        return found

    def _first_like(self, cohort: str, pair: str) -> JointLawFit:
        """Law of the first cohort's pair that stands where this one stands in sorted order."""

        def names(of: str) -> list[str]:
            return sorted(name for each, name in self._laws if each == of)

        first = names(self._cohorts[0])
        own = first[min(names(cohort).index(pair), len(first) - 1)]
        return self._laws[self._cohorts[0], own]

    def _smallest(self) -> Array:
        """Loss of the smallest single-pair model of each row's pair (rows,)."""
        found = np.zeros(len(self._frame))
        for (cohort, pair), fit in self._laws.items():
            mine = (self._frame["cohort"] == cohort) & (self._frame["pair"] == pair)
            found[mine] = float(np.asarray(fit.predict([1.0], [min(fit.n)]))[0])
        return found

    def draw(self, world: Mapping[str, Any], random: np.random.Generator) -> Evidence:
        """One data set in which a world is true."""
        sd = self._noise / np.sqrt(world.get("seeds", 1.0))
        losses = self._mean(world) * np.exp(sd * random.standard_normal(len(self._frame)))
        if "unexplained" in world:
            sd = np.sqrt(world["unexplained"]) * self._spread_of_curves
            losses += sd * random.standard_normal(len(self._frame))[self._cell]
        return replace(self._evidence, frame=self._frame.assign(cross_entropy=losses))


class CorrectionData(GridData):
    """A grid whose largest models at small weights lie as far above the law as observed.

    Each of their learning curves keeps its exponent and its noise. Its constant is such that it
    leads to where the world says.
    """

    def __init__(self, claim: Claim, scope: Scope, evidence: Evidence) -> None:
        self._options = claim.options
        super().__init__(claim, scope, evidence)
        frame = self._frame
        cell = [frame[name] for name in ("pair", "p", "n_non_embedding")]
        far = (frame["cross_entropy"] / self._mean({}) - 1).where(self._corrected(frame), 0.0)
        self._distance = far.groupby(cell).transform("mean").to_numpy(dtype=float)
        of_run = dict(zip(frame["run_id"] + frame["pair"], self._distance, strict=True))
        self._curves = []
        found = evidence.curves
        found = found[(found["tier"] == scope.tier) & found["cohort"].isin(list(scope.cohorts))]
        for (run, pair), points in found.groupby(["run_id", "pair"]):
            if of_run.get(f"{run}{pair}"):
                law = extrapolate_curve(points["step"], points["cross_entropy"]).law
                noise = law.residual_sd / points["cross_entropy"].to_numpy(dtype=float)
                self._curves.append((points, of_run[f"{run}{pair}"], law.alpha, noise))

    def _corrected(self, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Which rows (of one pair or more, whose sizes are the same) are corrected."""
        most, largest = self._options["max_weight"], self._options["largest_sizes"]
        return declared_runs(rows, most_weight=most, largest=largest)

    def _law(
        self, cohort: str, pair: str, rows: pd.DataFrame, n: str, by: str, errors: Errors
    ) -> JointLawFit:
        return super()._law(cohort, pair, rows[~self._corrected(rows)], n, by, errors)

    def draw(self, world: Mapping[str, Any], random: np.random.Generator) -> Evidence:
        """One data set in which a world is true."""
        drawn = super().draw({}, random)
        losses = drawn.frame["cross_entropy"] * (1 + self._distance)
        curves = []
        for points, distance, alpha, noise in self._curves:
            falls = world["closed"] * distance / (1 + distance)
            time = points["step"].to_numpy(dtype=float) / points["step"].max()
            share = falls / (1 - self._options["multiple"] ** -alpha)
            end = points["cross_entropy"].iloc[-1]
            line = end * (1 - share + share * time**-alpha)
            line *= np.exp(noise * random.standard_normal(len(line)))
            curves.append(points.assign(cross_entropy=line))
        return replace(
            drawn, frame=drawn.frame.assign(cross_entropy=losses), curves=pd.concat(curves)
        )


def _log_fraction(fit: JointLawFit, p: Array, form: str | float) -> Array:
    """Log f (m,) at weights `p` (m,): of the joint law itself, of a form fitted to it, or given."""
    if not isinstance(form, str):
        return np.full(len(p), np.log(form))
    log_f = log_fraction(np.array(fit.values)[None], int(fit.index(1.0)[0]))[0]
    known = np.array(fit.p)
    if form == "fitted" and np.isin(p, known).all():
        return np.asarray(log_f[np.searchsorted(known, p)])
    cells = [(weight, size) for weight in fit.p for size in sorted(set(fit.n))]
    table = pd.DataFrame(cells, columns=["p", "n"])
    table["loss"] = np.asarray(fit.predict(table["p"], table["n"]))
    law = fit_fraction(table, form="eq13" if form == "eq13" else "eq12", n="n", loss="loss")
    return np.asarray(np.log(law.fraction(p)))


@framed()
def _planned(scope: Scope, evidence: Evidence) -> Rows:
    """Rows (with `p`) that a scope's declared cohorts will have, by the law of the pilot.

    `own` tells the runs of a cohort from those declared beside it: further seeds, further sizes.
    """
    fit, known = _pilot(evidence)
    half = float(np.exp(_log_fraction(fit, np.array([0.5]), "fitted"))[0])
    for name in scope.cohorts:
        again = [c for c in declared(scope.tier) if name in (c.name, getattr(c, "repeats", ""))]
        for each, run in ((c, run) for c in again for run in c.runs()):
            n = parameter_counts(run.model)
            for pair, p in run.mixture.items:
                if p <= 0:
                    continue
                f = p ** (np.log(half) / np.log(0.5))
                loss = fit.predict([1.0], [f * n["non_embedding"]])
                yield {
                    "own": each.name == name,
                    "cohort": name,
                    "tier": scope.tier,
                    "test_set": scope.test_set,
                    "domain": scope.domain,
                    "pair": pair,
                    "p": p,
                    "seed": run.seed,
                    "run_id": run.run_id,
                    "mixture": str(run.mixture.items),
                    "n_non_embedding": n["non_embedding"],
                    "n_total": n["total"],
                    "cross_entropy": float(np.asarray(loss)[0]),
                }


def _cells(frame: pd.DataFrame) -> Iterable[tuple[str, str, float, int]]:
    """Cohort, pair, weight and size of each row."""
    keys = ["cohort", "pair", "p", "n_non_embedding"]
    return frame.assign(p=frame["p"].round(9))[keys].itertuples(index=False, name=None)


def _pilot(evidence: Evidence) -> tuple[JointLawFit, pd.DataFrame]:
    tier, cohort = _PILOT
    frame = evidence.frame
    rows = frame[(frame["tier"] == tier) & (frame["cohort"] == cohort) & (frame["p"] > 0)]
    if rows.empty:
        raise NoRowsYet(f"no rows of {cohort}, from which a grid without rows is planned")
    rows = rows[rows["pair"] == rows["pair"].min()]
    fit = fit_joint_law(rows, errors="relative")
    require(fit, "joint law of the pilot")
    return fit, rows


def _pilot_noise(frame: pd.DataFrame, evidence: Evidence) -> Array:
    """Noise (rows,) of a plan: a power of the size, the likeliest one for the pilot's seeds.

    What a law leaves is no measure of noise, because a law that does not fit leaves more. Each size
    has few seeds, so a single size says little of its noise.
    """
    _, rows = _pilot(evidence)
    log_loss = rows["cross_entropy"].astype(float).map(np.log)
    cells = log_loss.groupby([rows["p"].round(9), rows["n_non_embedding"]])
    freedom = cells.size() - 1
    freedom = freedom[freedom > 0]
    if len(freedom) < 2:
        raise NoRowsYet("the pilot has no seeds at two sizes, from which noise is planned")
    variance = np.maximum(cells.var()[freedom.index].to_numpy(), 1e-18)
    log_n = np.log(freedom.index.get_level_values(1).to_numpy(dtype=float))
    middle = log_n.mean()

    def misfit(line: Array) -> float:
        """Minus the log likelihood of Gaussian noise whose log variance is a line in log N."""
        log_variance = line[0] + line[1] * (log_n - middle)
        terms = freedom.to_numpy() * (log_variance + variance / np.exp(log_variance))
        return float(terms.sum())

    level, slope = minimize(misfit, [np.log(variance.mean()), 0.0]).x
    size = np.log(frame["n_non_embedding"].to_numpy(dtype=float))
    return np.asarray(np.exp((level + slope * (size - middle)) / 2))


def _index(*columns: pd.Series) -> NDArray[np.intp]:
    """Number of the group that each row belongs to."""
    return np.asarray(pd.factorize(pd.Series(list(zip(*columns, strict=True))))[0])


def _each(index: NDArray[np.intp], random: np.random.Generator) -> Array:
    """A standard normal number for each group, at each of its rows."""
    return random.standard_normal(int(index.max()) + 1)[index]


_NOT_SIMULATED = ("parameter_counts_agree", "metric_frontier", "halves_apart")
SIMULATORS: dict[str, type[GridData | VariantData | AnalysisData | MetricData]] = {
    **{name: GridData for name in ESTIMANDS if name not in _NOT_SIMULATED},
    "ablation": VariantData,
    "directions_learned": VariantData,
    "upgrade_against_scratch": VariantData,
    "blocks_moved": AnalysisData,
    "embeddings_substituted": AnalysisData,
    "metric_linear": MetricData,
    "convergence_correction": CorrectionData,
}
"""How the data of each estimand are simulated, by its name: as a grid unless said otherwise."""
