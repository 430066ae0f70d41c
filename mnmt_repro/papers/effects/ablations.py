"""Techniques and groupings compared: Paper B's Tables 3 to 8 and 11 (right), and its remarks.

A cell is a variant on a group of directions: the printed score with its difference from the control
and mark, and our loss with its gain over the same control. Claims B5 to B11 and B15 to B19 read the
same gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mnmt_repro.papers.cohorts.catalogue import find_cohort
from mnmt_repro.papers.cohorts.languages25 import LANGUAGES, LEVELS, directions, directions_of
from mnmt_repro.papers.cohorts.software25 import OURS
from mnmt_repro.papers.cohorts.software25_runs import CORPUS
from mnmt_repro.papers.cohorts.variants import VariantCohort
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import Measure, NoRowsYet
from mnmt_repro.papers.effects.published import (
    GROUPS,
    NOTICEABLE,
    PARTS,
    UPGRADES,
    comparisons,
    printed_table,
)
from mnmt_repro.papers.effects.variants import (
    GAIN,
    NO_GAIN,
    TABLE3,
    Sample,
    VariantAt,
    Variants,
    best_gain,
    gain,
    gain_out_less_into,
    largest_change,
    latest_variants,
    lead,
    variants_of,
)
from mnmt_repro.repository import ROOT

SHARE = 0.3  # of the baselines' updates: all ablations are scored after 30k


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """A table of the paper, or a remark without one, in which variants meet their controls."""

    where: str
    name: str  # of the cohort, behind the corpus, such as ``table3``
    controls: tuple[str, ...]  # one for each model
    groups: tuple[str, ...] = GROUPS
    control_is_choice: bool = False  # a control is what the recipe has, unlike the others

    @property
    def cohort(self) -> str:
        """Name of the cohort."""
        return f"{CORPUS}-{self.name}"

    @property
    def number(self) -> int:
        """Of the printed table; 0: the paper prints no numbers."""
        return int(self.name.removeprefix("table")) if "table" in self.name else 0

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the runs, in the order of the table; some are ours alone."""
        cohort = find_cohort(self.cohort)
        assert isinstance(cohort, VariantCohort)
        return tuple(dict.fromkeys(v.name for v in cohort.variants if v.updates_share == SHARE))

    def control_of(self, variant: str) -> str:
        """The control of a variant: that of its model, where there are several.

        >>> ABLATIONS[0].control_of("Mt25-wide, no up-sampling")
        'Mt25-wide, full recipe'
        """
        if len(self.controls) == 1:
            return self.controls[0]
        (control,) = (c for c in self.controls if c.split(",")[0] == variant.split(",")[0])
        return control

    def find(self, name: str, variants: Variants) -> VariantAt:
        """A run of the cohort; a control that the cohort lacks is one of Table 3."""
        return VariantAt(variants.cohort if name in self.variants else TABLE3, name, SHARE)


_FULL = tuple(f"{model}, full recipe" for model in UPGRADES)
# Table 4 has neither learning-rate scaling nor up-sampling of related languages (footnote 9), Table
# 5 no learning-rate scaling, and Table 6 no up-sampling of related languages. The control of Table
# 11 is taken to be in Table 3, which the paper does not say.
_OF_TABLE4 = (
    "Mt25, new embeddings from unk",
    "Mt25-wide, concatenation",
    "Mt25-deep, average layer",
)
_BOTTOM_TOP = ("encoder bottom, decoder top",)
ABLATIONS = (
    Ablation(where="Table 3", name="table3", controls=_FULL, groups=PARTS, control_is_choice=True),
    Ablation(where="Table 4", name="table4", controls=_OF_TABLE4, control_is_choice=True),
    Ablation(where="Table 5", name="table5", controls=("alpha 1",), groups=PARTS),
    Ablation(where="Table 6", name="table6", controls=("old 1, new 1",)),
    Ablation(where="Table 11, right", name="table11", controls=("full recipe",)),
    Ablation(where="Footnote 7", name="schedule", controls=("not reset",), control_is_choice=True),
    Ablation(where="§4.2", name="insertion", controls=_BOTTOM_TOP, control_is_choice=True),
    Ablation(where="Footnote 10", name="noise", controls=("no noise",)),
    Ablation(where="Not said", name="unsaid", controls=_FULL, control_is_choice=True),
)


@framed()
def cells(ablation: Ablation, variants: Variants) -> Rows:
    """A table of the paper beside ours, a row a cell.

    Returns
    -------
    DataFrame
        ``variant, against, group``; ``paper``, ``difference`` and ``mark``: the printed spBLEU,
        less that of its control, and whether this is significantly another (in brackets
        where the table prints no marks and the difference counts as clear); our ``loss``, the
        columns `variants.GAIN` and ``seeds``. Controls have no differences, and variants that only
        we ran no printed numbers.
    """
    printed = _printed(ablation)
    for variant in ablation.variants:
        other = ablation.control_of(variant)
        mine, base = ablation.find(variant, variants), ablation.find(other, variants)
        for group in ablation.groups:
            directions = directions_of(group)
            yield {
                "variant": variant,
                "against": other,
                "group": group,
                **printed.get((variant, group), _NOT_PRINTED),
                "loss": variants.mean(mine, directions),
                **(NO_GAIN if variant == other else variants.gain(mine, base, directions)),
                "seeds": variants.seeds(directions, mine, base),
            }


def as_gains(ablation: Ablation, table: pd.DataFrame) -> pd.DataFrame:
    """Cells by the base of the claims: how much lower the loss is with a part than without it.

    The loss without the part is 100 %. Where the control is the recipe's choice, the gains of the
    controls over the variants take the place of the other way round: a variant whose loss is a
    quarter above the control's has a gain of -25 %, and the control has one of 20 % over it.

    Parameters
    ----------
    table
        From `cells`.

    Returns
    -------
    DataFrame
        The same columns; where gains are turned, a printed ``difference`` changes its sign.

    Examples
    --------
    >>> cell = {"difference": -3.6, "gain, %": -25.0, "low": -100.0, "high": 20.0}
    >>> as_gains(ABLATIONS[0], pd.DataFrame([cell])).iloc[0].tolist()
    [3.6, 20.0, -25.0, 50.0]
    """
    return _turned(table) if ablation.control_is_choice else table


def _turned(table: pd.DataFrame) -> pd.DataFrame:
    """The gains of the other way round."""
    value, low, high = (
        -100 * table[name] / (100 - table[name]) for name in ("gain, %", "high", "low")
    )
    return table.assign(
        **{"gain, %": value, "low": low, "high": high}, difference=0 - table["difference"]
    )


CHOICES = ROOT / "data" / "choices.csv"
"""One way and the others, run against each other. A row with a ``choice`` is advice on the recipe's
page; one with a ``part`` is drawn among the ablations."""


@framed()
def choices(rows: pd.DataFrame, *, tier: str = "mini", test_set: str = "indomain") -> Rows:
    """How much lower the loss is one way than the other, or than the best of several others.

    Parameters
    ----------
    rows
        From `results.load`, of all cohorts and of those that tell the noise of the seed.

    Returns
    -------
    DataFrame
        The columns of `CHOICES`, with the cohort that is read; the printed ``difference`` in spBLEU
        and its ``mark`` where there is one other; ``gain, %, low, high``, NaN where a run is not
        stored; ``seeds``.
    """
    printed = {each.cohort: _printed(each) for each in ABLATIONS}
    for row in pd.read_csv(CHOICES, keep_default_na=False).to_dict("records"):
        cohort, pairs = f"{CORPUS}-{row['cohort']}", directions_of(row["on"])
        names = [row["variant"], *row["against"].split(";")]
        find = variants_of if {*names} & {*OURS} else latest_variants  # ours alone: first seeds
        bench = find(rows, cohort, tier=tier, test_set=test_set)
        runs = [bench.variant(name, SHARE) for name in names]
        scores = [printed.get(cohort, {}).get((name, row["on"]), _NOT_PRINTED) for name in names]
        one, other = scores if len(scores) == 2 else [_NOT_PRINTED] * 2
        try:
            first, *others = bench.samples(pairs, *runs)
            worth = lead(first, others) if others[1:] else gain(first, others[0])
        except NoRowsYet:
            worth = Measure(value=math.nan)
        yield {
            **row,
            "cohort": bench.cohort,
            "difference": one["paper"] - other["paper"],
            "mark": one["mark"] or other["mark"],  # a control has none
            **dict(zip(GAIN, (worth.value, worth.low, worth.high), strict=False)),
            "seeds": bench.seeds(pairs, *runs),
        }


def better_first(table: pd.DataFrame) -> pd.DataFrame:
    """`choices` in which the other way stands first where it is clear that it is better."""
    worse = (table["high"] < 0) & ~table["against"].str.contains(";")
    turned = _turned(table).rename(columns={"one": "other", "other": "one"})
    return table.mask(worse, turned[table.columns])


_NOT_PRINTED: Mapping[Any, Any] = {"paper": math.nan, "difference": math.nan, "mark": ""}


def _printed(ablation: Ablation) -> Mapping[Any, Mapping[Any, Any]]:
    """Printed score, difference and mark by variant and group; empty without a table."""
    if not ablation.number:
        return {}
    cells = comparisons(ablation.number, ablation.controls).rename(columns={"value": "paper"})
    return cells.set_index(["variant", "group"]).to_dict("index")


TABLE7 = Ablation(where="Table 7", name="table7", controls=("Mt25",), groups=("all", *LEVELS))


@framed()
def table8(variants: Variants) -> Rows:
    """Table 8: chosen directions of wide upgraded models, against the wide model from scratch.

    Ours is after 30 % of the updates, against all of the baseline's.

    Returns
    -------
    DataFrame
        ``pair, grouping, up-sampled``; the printed ``difference`` and its ``mark``, as in
        `ablations.cells`; our ``loss`` and that ``from scratch``, the columns `variants.GAIN` and
        ``seeds``.
    """
    for cell in printed_table(8).to_dict("records"):
        pairs = directions_of(cell["pair"])
        mine, base = variants.variant(cell["grouping"], SHARE), variants.variant("M25-wide", 1.0)
        yield {
            "pair": cell["pair"],
            "grouping": cell["grouping"],
            "up-sampled": cell["upsampled"],
            "difference": cell["value"],
            "mark": "(*)" if abs(cell["value"]) >= NOTICEABLE else "",
            "loss": variants.mean(mine, pairs),
            "from scratch": variants.mean(base, pairs),
            **variants.gain(mine, base, pairs),
            "seeds": variants.seeds(pairs, mine, base),
        }


def ablation(evidence: Evidence, setting: Setting) -> Units:
    """B5 to B10, B15 to B19: variants of a cohort against each other."""
    samples, options = chosen(evidence, setting), setting.options
    pairs = {
        name: samples(directions_of(asked["group"]), asked["treated"], asked["control"])
        for name, asked in options.get("contrasts", {}).items()
    }
    whole = {name: gain(*pair) for name, pair in pairs.items()}
    if best := options.get("best"):
        first, *others = samples(directions_of(best["group"]), best["variant"], *best["among"])
        whole["lead"] = lead(first, others)
    if any_of := options.get("any_of"):
        group = directions_of(any_of["group"])
        control, *others = samples(group, any_of["control"], *any_of["among"])
        whole["best_gain"] = best_gain(control, others)
    if spread := options.get("spread"):
        whole["spread"] = largest_change((pairs[name][0], pairs[name][1]) for name in spread)
    return {"all": whole}


def directions_learned(evidence: Evidence, setting: Setting) -> Units:
    """B11: the gain over the baseline out of English, less that into English."""
    samples, options = chosen(evidence, setting), setting.options
    names = (options["baseline"], *options["groupings"])

    def difference(languages: tuple[str, ...]) -> Measure:
        sides = (directions(languages)[side::2] for side in (0, 1))
        return gain_out_less_into(*(samples(side, *names) for side in sides))

    printed = printed_table(8)["pair"].str.removeprefix("eng-")
    four = tuple(dict.fromkeys(name for name in printed if "-" not in name))
    return {"all": {"difference": difference(four), "difference_all": difference(tuple(LANGUAGES))}}


def chosen(evidence: Evidence, setting: Setting) -> Callable[..., list[Sample]]:
    """Scores, over some directions, of variants of the setting's first cohort by their names.

    Each is read at the share of the updates that a claim names: its own of the `shares`, else the
    `share` of all; the `baseline` is read at its end.
    """
    variants, options = evidence.variants(setting), setting.options
    shares = options.get("shares", {}) | {options.get("baseline"): 1.0}

    def samples(pairs: tuple[str, ...], *names: str) -> list[Sample]:
        at = (variants.variant(n, shares.get(n) or options["share"]) for n in names)
        return variants.samples(pairs, *at)

    return samples


WAYS = {
    "up-sample new languages × 5": ("table5", "alpha 5", "alpha 1"),
    "up-sample new languages × 10": ("table5", "alpha 10", "alpha 1"),
    "up-sample new languages and old relatives × 5": ("table5", "alpha 5, related", "alpha 1"),
    "half the rate for old weights": ("table6", "old 0.5, new 1", "old 1, new 1"),
    "a new warm-up": ("schedule", "reset", "not reset"),
}
"""What is done, to its table and the runs with it and without it."""
PAYERS = {"new": "added", "old, related": "related", "other old": "other original"}
"""Who may pay: what pages call a group of languages, and its name in `directions_of`."""
PAID_IN = tuple(f"{CORPUS}-{table}-fresh" for table in ("table5", "table6", "schedule"))
"""Cohorts that `who_pays` reads."""


@framed()
def who_pays(rows: pd.DataFrame) -> Rows:
    """How each choice changes the loss of new languages, of their old relatives, and of others.

    Parameters
    ----------
    rows
        Of the cohorts `PAID_IN`, from `results.load`.

    Returns
    -------
    DataFrame
        ``way, languages``; ``change, low, high``: by how many per cent the loss is higher than
        without, with a 95 % interval; ``seeds``. Upgrades of the same size.
    """
    for way, (table, treated, control) in WAYS.items():
        bench = latest_variants(rows, f"{CORPUS}-{table}")
        one, other = (bench.variant(name, SHARE) for name in (treated, control))
        for languages, group in PAYERS.items():
            pairs = directions_of(group)
            less = bench.gain(one, other, pairs)
            yield {
                "way": way, "languages": languages, "seeds": bench.seeds(pairs, one, other),
                "change": -less["gain, %"], "low": -less["high"], "high": -less["low"],
            }  # fmt: skip
