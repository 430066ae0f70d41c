"""The *steady* tier: Paper A's grids, trained until their losses settle. Most text is generated.

It differs from *mini* in three things. The learning rate falls to zero over the last 30 % of the
budget, and each size has its own. All sizes have one layer. The task is another: three concepts in
a sentence and 8,192 in all, so that what a model lacks is capacity, not luck at learning to attend.

A pilot chose rates and setting, with another conlang seed. Its rows stay in the store, in no
cohort, and no claim reads them: those of the corpora `conlang-pilot` and `conlang-settled-pilot`,
and trials of rates on webtech, whose task is its own.
No torch is needed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.papers.cohorts.grids import (
    FEW_WEIGHTS,
    WEBTECH,
    Cohort,
    Corpus,
    one_to_many,
    two_pair_mixtures,
    two_pairs,
)
from mnmt_repro.runs.grid import Size
from mnmt_repro.training.config import TrainingConfig

TIER = "steady"
_TRAINING = TrainingConfig(
    learning_rate=0.2,
    warmup_steps=100,
    batch_tokens=1024,
    target_tokens=6_000_000,
    decay_share=0.3,
)
BUDGETS = {
    **dict.fromkeys((4, 6, 8, 10, 12), 6_000_000),
    16: 7_600_000,
    20: 9_500_000,
    26: 12_300_000,
    32: 15_100_000,
}
"""Target tokens by width. From width 12 they grow with the square root of N, because large models
need more before their losses settle. Below it they are constant. Two other plans bent the curves:
12M beyond width 16 (a step of 3 to 5 %), and the square root of N down to width 6, where models of
width 10 had not learnt to attend yet."""
RATES = {4: 0.8, 6: 0.8, 8: 0.4, 10: 0.2, 12: 0.1, 16: 0.2, 20: 0.1, 26: 0.1, 32: 0.1}
"""Learning rate by width: the best of three to five trials at p = 0.5 and these budgets, or an
inner rate whose loss is within the spread of seeds (width 6), or whose seeds spread less (width
10). Width 4 takes the rate of width 6. From 0.1 on the rate before the decay is Adafactor's own
cap, so that a larger one only holds the cap for longer."""


def _languages(names: tuple[str, ...] = ("src", "aaa", "bbb")) -> ConlangConfig:
    """The task of this tier."""
    return ConlangConfig(
        languages=names,
        concepts=8192,
        syllables=160,
        min_concepts=3,
        max_concepts=3,
        seed=1,
    )


def size(width: int, rate: float, tokens: int = 0) -> Size:
    """One layer of that width, trained at `rate` for its budget, or for `tokens`."""
    tokens = tokens or BUDGETS[width]
    return Size(d_model=width, layers=1, heads=2, target_tokens=tokens, learning_rate=rate)


def sizes(widths: Sequence[int]) -> tuple[Size, ...]:
    """Sizes at their tuned rates."""
    return tuple(size(width, RATES[width]) for width in widths)


def with_half(cohort: Cohort, whole: tuple[Size, ...]) -> tuple[Cohort, Cohort]:
    """A cohort of these sizes, and its first seed at half the budget.

    The half comes first, because the whole budget goes on from where the half begins to decay.
    """
    half = replace(
        cohort,
        name=f"{cohort.name}-half",
        about=f"{cohort.about}; at half the budget",
        sizes=tuple(replace(each, target_tokens=(each.target_tokens or 0) // 2) for each in whole),
        seeds=cohort.seeds[:1],
        repeats=f"{cohort.repeats}-half" if cohort.repeats else "",
    )
    return half, replace(cohort, sizes=whole)


STEADY = Corpus(name="conlang-steady", conlang=_languages(), training=_TRAINING)
_PAIRS = ("src-aaa", "src-bbb")
_REAL_PAIRS = ("eng-deu", "eng-fra")
WIDTHS = (6, 8, 10, 12, 16, 20, 26, 32)
"""Eight sizes at about equal steps of log N, over a factor of 25."""
SMALL_WIDTHS = (6, 8, 10)
"""Sizes that scatter most between seeds. They train in a minute, so they get more seeds."""
MIDDLE_WIDTHS = (12, 16, 20)
FOUR_WIDTHS = (6, 10, 16, 32)
REAL_WIDTHS = (8, 12, 20, 30, 44)
"""Five sizes on real text at about equal steps of log N, over a factor of more than 25."""
REAL_RATE = 0.1
"""The best of three rates for German at every width, on half of the budget. Chinese is no
measure of capacity: at width 30 and this rate, two seeds have a loss of 3.07 and 3.71, because one
model has learnt to attend to the source and one has not. So the grid takes French."""
REAL_TOKENS = 8_000_000
REAL = replace(WEBTECH, training=_TRAINING)


def similar(similarity: float) -> tuple[Cohort, Cohort]:
    """One language to two that share so much of their lexicon."""
    name = f"conlang-steady-sim{similarity:g}".replace(".", "")
    config = replace(_languages(), similarity=similarity)
    about = f"one language to two that share {similarity:.0%} of their lexicon"
    corpus = replace(STEADY, name=name, conlang=config)
    few = two_pairs(name, about, corpus, _PAIRS, weights=FEW_WEIGHTS, tier=TIER, seeds=(1, 2))
    return with_half(few, sizes(FOUR_WIDTHS))


def many(name: str, targets: tuple[str, ...], ahead: tuple[float, ...]) -> tuple[Cohort, Cohort]:
    """One language to several unrelated ones, and half the budget."""
    corpus = replace(STEADY, name=name, conlang=_languages(("src", *targets)))
    pairs = tuple(f"src-{target}" for target in targets)
    return with_half(one_to_many(name, corpus, pairs, ahead, tier=TIER), sizes(FOUR_WIDTHS))


_REAL_GRID = two_pairs(
    "webtech-steady",
    "En→{De, Fr} on real text with a final decay, at few weights: Figures 2 to 5",
    REAL,
    _REAL_PAIRS,
    weights=(0.0, 0.05, 0.5, 0.95, 1.0),
    tier=TIER,
)
_REAL_SIZES = tuple(size(width, REAL_RATE, tokens=REAL_TOKENS) for width in REAL_WIDTHS)
_ONE_TO_MANY = two_pairs(
    "conlang-steady",
    "one language to two unrelated ones: Figures 2 to 7, with the truth known",
    STEADY,
    _PAIRS,
    tier=TIER,
    seeds=(1, 2, 3),
)
_MANY_TO_ONE = two_pairs(
    "conlang-steady-many2one",
    "two unrelated languages to one: Figure 6 right, with the truth known",
    STEADY,
    ("aaa-src", "bbb-src"),
    "none",
    tier=TIER,
)


def _alone(cohort: Cohort) -> tuple[Cohort, Cohort]:
    """Smaller models of each pair alone, so that small fractions are not extrapolated."""
    return with_half(
        replace(
            cohort,
            name=f"{cohort.name}-alone",
            about="each pair alone in a smaller model, to which small fractions are compared",
            mixtures=two_pair_mixtures(cohort.pairs[0], cohort.pairs[1], (0.0, 1.0)),
            seeds=(1, 2, 3, 4, 5, 6),
            repeats=cohort.name,
        ),
        sizes((4,)),
    )


_THREE = many("conlang-steady-three", ("aaa", "bbb", "ccc"), (0.5, 0.8, 0.9))
_FIVE = many("conlang-steady-five", ("aaa", "bbb", "ccc", "ddd", "eee"), (0.6, 0.8))


def _again(cohort: Cohort, seeds: tuple[int, ...]) -> Cohort:
    """The models of several pairs with further seeds."""
    return replace(
        cohort,
        name=f"{cohort.name}-seeds",
        about=f"{cohort.about}; with further seeds",
        mixtures=cohort.mixtures[1:],
        seeds=seeds,
        repeats=cohort.name,
    )


STEADY_GRIDS: tuple[Cohort, ...] = (
    *with_half(_ONE_TO_MANY, sizes(WIDTHS)),
    *_alone(_ONE_TO_MANY),
    *(
        replace(
            _ONE_TO_MANY,
            name=f"conlang-steady-{name}",
            about=f"conlang-steady at the widths {', '.join(map(str, widths))} with further seeds",
            sizes=sizes(widths),
            seeds=seeds,
            repeats=_ONE_TO_MANY.name,
        )
        for name, widths, seeds in (
            ("small", SMALL_WIDTHS, (4, 5, 6)),
            ("more", SMALL_WIDTHS, (7, 8, 9)),
            ("middle", MIDDLE_WIDTHS, (4, 5, 6)),
        )
    ),
    *with_half(_MANY_TO_ONE, sizes(WIDTHS)),
    *_alone(_MANY_TO_ONE),
    replace(
        _MANY_TO_ONE,
        name="conlang-steady-many2one-seeds",
        about="two unrelated languages to one, with other seeds at three weights",
        mixtures=two_pair_mixtures("aaa-src", "bbb-src", (0.05, 0.5, 1.0)),
        sizes=sizes(WIDTHS),
        seeds=(2, 3),
        repeats=_MANY_TO_ONE.name,
    ),
    *(cohort for similarity in (0.25, 0.5, 0.75, 1.0) for cohort in similar(similarity)),
    *with_half(_REAL_GRID, _REAL_SIZES),
    replace(
        _REAL_GRID,
        name="webtech-steady-seeds",
        about="En→{De, Fr} at equal weights with other seeds",
        mixtures=two_pair_mixtures(*_REAL_PAIRS, (0.5,)),
        sizes=_REAL_SIZES,
        seeds=(2, 3),
        repeats=_REAL_GRID.name,
    ),
    *_THREE,
    _again(_THREE[1], (2, 3, 4)),
    *_FIVE,
    _again(_FIVE[1], (2, 3, 4)),
)
"""Cohorts of this tier, in the order in which they are worth running."""
