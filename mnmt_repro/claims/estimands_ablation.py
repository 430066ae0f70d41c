"""Estimands of tables and single techniques: claims B4 to B11, B15 to B19 and B22 of Paper B.

Each function is pure: evidence, claim and scope in; under ``"all"`` the measures of the claim, and
for a table under the name of each published cell those of the cell. What they read is told in
``data/claims/paper_b.yml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mnmt_repro.claims.evidence import Evidence, Measure, Measures, Units
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.claims.paired import (
    Sample,
    Study,
    Variant,
    deviations,
    functional,
    gain,
    gain_power,
    largest,
    lower_by,
    p_value,
    study_of,
)
from mnmt_repro.claims.published import Cell, comparisons, zoomed
from mnmt_repro.cohorts.languages25 import LANGUAGES, directions, directions_of
from mnmt_repro.laws.checks import Array


def ablation(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B4 to B10, B15 to B19, B22: variants of a cohort against each other, and a table's cells."""
    bench = _Bench(evidence, claim, scope)
    contrasts = claim.options.get("contrasts", {})
    table = claim.options.get("table", {})
    cells = (
        comparisons(table["number"], table["controls"], table.get("prefix", "")) if table else ()
    )
    for cell in cells:  # so that a missing run is told before missing seeds
        bench.require(cell.group, cell.treated, cell.control)
    whole = {name: gain(*bench.pair(**asked)) for name, asked in contrasts.items()}
    if "best" in claim.options:
        whole["lead"] = bench.lead(**claim.options["best"])
    if "any_of" in claim.options:
        whole["best_gain"] = bench.best_gain(**claim.options["any_of"])
    if "spread" in claim.options:
        whole["spread"] = bench.spread([contrasts[name] for name in claim.options["spread"]])
    if claim.alternative and claim.alternative.measure in whole:
        names = claim.options.get("spread", [claim.alternative.measure])
        whole["power"] = bench.power([contrasts[name] for name in names])
    return {"all": whole, **{cell.name: bench.cell(cell, table["effect"]) for cell in cells}}


def directions_learned(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B11: the gain over the baseline out of English, less that into English."""
    bench = _Bench(evidence, claim, scope)
    cells = {cell.name: bench.cell(cell, claim.options["effect"]) for cell in zoomed()}
    gains: dict[bool, list[float]] = {True: [], False: []}  # out of English, into English
    for cell in zoomed():
        gains[cell.group.startswith("eng-")].append(cells[cell.name]["gain"].value)
    four = tuple(dict.fromkeys(cell.group[4:] for cell in zoomed() if cell.group[:4] == "eng-"))
    return {
        "all": {
            "difference": bench.difference(four),
            "difference_all": bench.difference(tuple(LANGUAGES)),
            "out_share": Measure(value=float(np.mean(np.array(gains[True]) >= 0))),
            "into_share": Measure(value=float(np.mean(np.array(gains[False]) >= 0))),
        },
        **cells,
    }


class _Bench:
    """Variants of the scope's first cohort by group of directions.

    Each at its own of the `shares` of the updates, else at the `share` of all.
    """

    def __init__(self, evidence: Evidence, claim: Claim, scope: Scope) -> None:
        self._evidence, self._scope, self._options = evidence, scope, claim.options
        self._effect = claim.alternative.effect if claim.alternative else math.nan
        self._studies: dict[str, Study] = {}

    def require(self, group: str, *names: str) -> None:
        """`NoRowsYet` unless all variants have rows of the group's directions."""
        for name in names:
            self._study(group, directions_of(group)).table(self._variant(name))

    def pair(self, treated: str, control: str, group: str) -> tuple[Sample, Sample]:
        first, second = self._samples(group, treated, control)
        return first, second

    def lead(self, variant: str, among: list[str], group: str) -> Measure:
        """Gain over the best of the others, in per cent: the least over any of them."""
        chosen, *others = self._samples(group, variant, *among)
        least = largest([_signed(-1, chosen, other) for other in others])
        return _turned(least)

    def best_gain(self, among: list[str], control: str, group: str) -> Measure:
        """Gain of the best of several over their control, in per cent."""
        base, *others = self._samples(group, control, *among)
        return largest([_signed(1, other, base) for other in others])

    def spread(self, contrasts: list[Mapping[str, str]]) -> Measure:
        """The largest size of the contrasts' gains of either sign, in per cent."""
        pairs = [self.pair(**contrast) for contrast in contrasts]
        return largest([_signed(sign, *pair) for pair in pairs for sign in (1, -1)])

    def power(self, contrasts: list[Mapping[str, str]]) -> Measure:
        """Least power of the contrasts to see the claim's alternative."""
        pairs = [self.pair(**contrast) for contrast in contrasts]
        found = [gain_power(treated, control, self._effect) for treated, control in pairs]
        return min(found, key=lambda power: power.value)

    def difference(self, languages: tuple[str, ...]) -> Measure:
        """Gain over the baseline out of English less that into English, mean over groupings.

        Languages are resampled, both directions of each together.
        """
        baseline = self._variant(self._options["baseline"], share=1.0)
        upgraded = [self._variant(name) for name in self._options["groupings"]]
        out, into = (
            self._study(f"{side} {languages}", directions(languages)[k::2]).samples(
                baseline, *upgraded
            )
            for k, side in enumerate(("out", "into"))
        )

        def apart(out: Any, into: Any, *rest: Any) -> Any:
            half = len(rest) // 2
            gains = [lower_by(out, loss) for loss in rest[:half]]
            return sum(gains) / half - sum(lower_by(into, loss) for loss in rest[half:]) / half

        return functional(apart, out[0], into[0], *out[1:], *into[1:])

    def cell(self, cell: Cell, effect: float) -> Measures:
        """Our measure of a published comparison; `along` and `share` are in its direction.

        `effect` in per cent is what `power` is about.
        """
        treated, control = self._samples(cell.group, cell.treated, cell.control)
        found = gain(treated, control)
        along = _along(found, cell.difference)
        size = abs(cell.relative) or math.nan
        return {
            "gain": found,
            "along": along,
            "share": Measure(
                value=along.value / size, low=along.low / size, high=along.high / size
            ),
            "p_value": p_value(treated, control),
            "power": gain_power(treated, control, effect),
            "published": Measure(value=cell.difference),
            "marked": Measure(value=float(cell.marked)),
        }

    def _samples(self, group: str, *names: str) -> list[Sample]:
        variants = [
            self._variant(name, 1.0 if name == self._options.get("baseline") else None)
            for name in names
        ]
        return self._study(group, directions_of(group)).samples(*variants)

    def _variant(self, name: str, share: float | None = None) -> Variant:
        if share is None:
            share = self._options.get("shares", {}).get(name) or self._options["share"]
        return Variant(self._scope.cohorts[0], name, share)

    def _study(self, name: str, pairs: tuple[str, ...]) -> Study:
        if name not in self._studies:
            self._studies[name] = study_of(self._evidence, self._scope, self._options, pairs)
        return self._studies[name]


def _signed(sign: int, treated: Sample, control: Sample) -> tuple[float, Array]:
    """A gain times `sign`, with its deviations (B,)."""
    found = lower_by(control.value, treated.value)
    return sign * found, sign * deviations(lower_by, control, treated)


def _turned(found: Measure) -> Measure:
    return Measure(value=-found.value, low=-found.high, high=-found.low)


def _along(found: Measure, published: float) -> Measure:
    """A gain in the published direction; where the paper prints no difference, less its size."""
    if published > 0:
        return found
    if published < 0:
        return _turned(found)
    least = max(found.low, -found.high, 0.0)
    most = max(abs(found.low), abs(found.high))
    return Measure(value=-abs(found.value), low=-most, high=-least)
