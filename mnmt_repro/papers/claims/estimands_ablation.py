"""Effects of single techniques: claims B5 to B11 and B15 to B19 of Paper B.

Each function is pure: evidence, claim and setting in; under ``"all"`` the claim's measures out.
"""

from __future__ import annotations

from mnmt_repro.papers.claims.evidence import Evidence, Units
from mnmt_repro.papers.claims.schema import Claim, Setting
from mnmt_repro.papers.cohorts.languages25 import LANGUAGES, directions, directions_of
from mnmt_repro.papers.effects import variants
from mnmt_repro.papers.effects.intervals import Measure
from mnmt_repro.papers.effects.published import zoomed


def ablation(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B5 to B10, B15 to B19: variants of a cohort against each other."""
    chosen, options = Chosen(evidence, claim, setting), claim.options
    pairs = {
        name: chosen.samples(asked["group"], asked["treated"], asked["control"])
        for name, asked in options.get("contrasts", {}).items()
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
    return {"all": whole}


def directions_learned(evidence: Evidence, claim: Claim, setting: Setting) -> Units:
    """B11: the gain over the baseline out of English, less that into English."""
    chosen, options = Chosen(evidence, claim, setting), claim.options

    def difference(languages: tuple[str, ...]) -> Measure:
        names = (options["baseline"], *options["groupings"])
        return variants.gain_out_less_into(
            *(chosen.over(directions(languages)[side::2], *names) for side in (0, 1))
        )

    printed = (cell.group.removeprefix("eng-") for cell in zoomed())
    four = tuple(dict.fromkeys(name for name in printed if "-" not in name))
    return {"all": {"difference": difference(four), "difference_all": difference(tuple(LANGUAGES))}}


class Chosen:
    """Variants of the setting's first cohort, each at the share of the updates that a claim names.

    That is its own of the `shares`, else the `share` of all; the `baseline` is read at its end.
    """

    def __init__(self, evidence: Evidence, claim: Claim, setting: Setting) -> None:
        self._variants, self._options = evidence.variants(setting, claim.options), claim.options

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
