"""Estimands of tables and single techniques: claims B4 to B11, B15 to B19 and B22 of Paper B.

Each function is pure: evidence, claim and scope in; under ``"all"`` the measures of the claim, and
for a table under the name of each published cell those of the cell. What they read is told in
``data/claims/paper_b.yml``.
"""

from __future__ import annotations

from mnmt_repro.analysis import variants
from mnmt_repro.analysis.intervals import Measure
from mnmt_repro.analysis.published import comparisons, zoomed
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.cohorts.languages25 import LANGUAGES, directions, directions_of


def ablation(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B4 to B10, B15 to B19, B22: variants of a cohort against each other, and a table's cells."""
    chosen, options = Chosen(evidence, claim, scope), claim.options
    contrasts, table = options.get("contrasts", {}), options.get("table", {})
    cells = (
        comparisons(table["number"], table["controls"], table.get("prefix", "")) if table else ()
    )
    for cell in cells:  # so that a missing run is told before missing seeds
        chosen.require(cell.group, cell.treated, cell.control)
    pairs = {
        name: chosen.samples(asked["group"], asked["treated"], asked["control"])
        for name, asked in contrasts.items()
    }
    whole = {name: variants.gain(*pair) for name, pair in pairs.items()}
    if best := options.get("best"):
        first, *others = chosen.samples(best["group"], best["variant"], *best["among"])
        whole["lead"] = variants.lead(first, others)
    if several := options.get("any_of"):
        control, *others = chosen.samples(several["group"], several["control"], *several["among"])
        whole["best_gain"] = variants.best_gain(control, others)
    if spread := options.get("spread"):
        whole["spread"] = variants.largest_change(
            (pairs[name][0], pairs[name][1]) for name in spread
        )
    if claim.alternative and claim.alternative.measure in whole:
        effect = claim.alternative.effect
        powers = [
            variants.gain_power(*pairs[name], effect=effect)
            for name in spread or [claim.alternative.measure]
        ]
        whole["power"] = min(powers, key=lambda power: power.value)
    return {
        "all": whole,
        **{
            cell.name: variants.beside_printed(
                cell,
                *chosen.samples(cell.group, cell.treated, cell.control),
                effect=table["effect"],
            )
            for cell in cells
        },
    }


def directions_learned(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B11: the gain over the baseline out of English, less that into English."""
    chosen, options = Chosen(evidence, claim, scope), claim.options
    cells = {
        cell: variants.beside_printed(
            cell, *chosen.samples(cell.group, cell.treated, cell.control), effect=options["effect"]
        )
        for cell in zoomed()
    }
    out, into = (
        [found["gain"].value for cell, found in cells.items() if cell.group.startswith("eng-") == x]
        for x in (True, False)
    )

    def difference(languages: tuple[str, ...]) -> Measure:
        names = (options["baseline"], *options["groupings"])
        return variants.gain_out_less_into(
            *(chosen.over(directions(languages)[side::2], *names) for side in (0, 1))
        )

    four = tuple(dict.fromkeys(cell.group[4:] for cell in cells if cell.group.startswith("eng-")))
    return {
        "all": {
            "difference": difference(four),
            "difference_all": difference(tuple(LANGUAGES)),
            "out_share": Measure(value=sum(x >= 0 for x in out) / len(out)),
            "into_share": Measure(value=sum(x >= 0 for x in into) / len(into)),
        },
        **{cell.name: found for cell, found in cells.items()},
    }


class Chosen:
    """Variants of the scope's first cohort, each at the share of the updates that a claim names.

    That is its own of the `shares`, else the `share` of all; the `baseline` is read at its end.
    """

    def __init__(self, evidence: Evidence, claim: Claim, scope: Scope) -> None:
        self._variants, self._options = evidence.variants(scope, claim.options), claim.options

    def require(self, group: str, *names: str) -> None:
        """`NoRowsYet` unless all variants have rows of the group's directions."""
        for name in names:
            self._variants.study(directions_of(group)).table(self._variant(name))

    def samples(self, group: str, *names: str) -> list[variants.Sample]:
        """Scores over a group of directions."""
        return self.over(directions_of(group), *names)

    def over(self, pairs: tuple[str, ...], *names: str) -> list[variants.Sample]:
        """Scores over some directions."""
        return self._variants.samples(pairs, *map(self._variant, names))

    def _variant(self, name: str) -> variants.VariantAt:
        options = self._options
        share = options.get("shares", {}).get(name)
        if name == options.get("baseline"):
            share = 1.0
        return self._variants.variant(name, share or options["share"])
