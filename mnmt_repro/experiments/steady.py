"""The *steady* tier: Paper A's grids on generated languages, trained until their losses settle.

It differs from *mini* in three things. The learning rate falls to zero over the last 30 % of the
budget, and is tuned for each size. All sizes have one layer. The task is another: three concepts in
a sentence and 8,192 in all, so that what a model lacks is capacity, not luck at learning to attend.

`PILOT` cohorts chose rates and setting; they have another conlang seed, and no claim reads them.
No torch is needed here.
"""

from __future__ import annotations

from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.experiments.cohorts import Cohort, Corpus, Size, two_pair_mixtures
from mnmt_repro.training.config import TrainingConfig

TIER = "steady"
TRAINING = TrainingConfig(
    learning_rate=0.2,
    warmup_steps=100,
    batch_tokens=1024,
    target_tokens=6_000_000,
    decay_share=0.3,
)
BUDGETS = {
    6: 6_000_000,
    8: 6_000_000,
    10: 6_000_000,
    12: 6_000_000,
    16: 6_000_000,
    20: 12_000_000,
    26: 12_000_000,
    32: 12_000_000,
}
"""Target tokens by width: large models need more before their losses settle."""
TRIALS = {
    6: (0.2, 0.4, 0.8, 1.6),
    8: (0.2, 0.4, 0.8),
    10: (0.2, 0.4, 0.8),
    12: (0.1, 0.2, 0.4),
    16: (0.1, 0.2, 0.4, 0.8),
    20: (0.1, 0.2, 0.4),
    26: (0.05, 0.1, 0.2, 0.4),
    32: (0.05, 0.1, 0.2, 0.4),
}
"""Learning rates tried, by width, at p = 0.5 and the whole budget. From 0.1 on the rate before the
decay is Adafactor's own cap, so that a larger one only holds the cap for longer."""


def languages(seed: int, names: tuple[str, ...] = ("src", "aaa", "bbb")) -> ConlangConfig:
    """The task of this tier."""
    return ConlangConfig(
        languages=names,
        concepts=8192,
        syllables=160,
        min_concepts=3,
        max_concepts=3,
        seed=seed,
    )


def size(width: int, rate: float, share: float = 1.0) -> Size:
    """One layer of that width, trained at `rate` for a share of its budget."""
    tokens = int(BUDGETS[width] * share)
    return Size(d_model=width, layers=1, heads=2, target_tokens=tokens, learning_rate=rate)


PILOT = Corpus(name="conlang-pilot", conlang=languages(seed=0), training=TRAINING)

PILOTS = (
    Cohort(
        name="conlang-pilot-rates",
        about="learning rates of the steady tier, tried at each size; enters no verdict",
        tier=TIER,
        corpus=PILOT,
        pairs=("src-aaa", "src-bbb"),
        mixtures=two_pair_mixtures("src-aaa", "src-bbb", (0.5,)),
        tags="source",
        sizes=tuple(size(width, rate) for width, rates in TRIALS.items() for rate in rates),
    ),
)

GRIDS = PILOTS
