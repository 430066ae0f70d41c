"""Paper A's grids at the tiers beyond mini: declared, not run. No torch is needed here.

`gpu`, for one large GPU: mini's cohorts with its i-th size become the i-th of eight from N = 0.3M
to 64M, more pieces, and 44M to 1B target tokens. Real text is passed over some fifteen times, so
that the best weights by validation loss are kept, and the learning curve shows where it overfits.

`paper`: Paper A's own cohorts with its sizes, pieces, batches and steps. Its text, 600M sentences a
pair, is not published, and webtech has less than a thousandth of it; `mnmt-repro train --preset
paper-a` puts the same settings to text of one's own.
"""

from __future__ import annotations

from dataclasses import replace

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.cohorts import grids
from mnmt_repro.runs.grid import Size
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.published import PUBLISHED

LARGE, LARGE_STEPS = 500_000_000, 1_000_000
"""Models of so many parameters or more train longer; whether embeddings count is not said, and here
they do not."""


PAPER_SIZES = tuple(
    Size(
        d_model=row.config.d_model,
        layers=row.config.encoder_layers,
        heads=row.config.heads,
        steps=LARGE_STEPS if parameter_counts(row.config)["non_embedding"] >= LARGE else None,
    )
    for row in PAPER_A
)
"""Appendix A."""

GPU_SIZES = (
    Size(d_model=64, layers=2, heads=2),  # N = 0.3M
    Size(d_model=96, layers=2, heads=2),  # 0.7M
    Size(d_model=128, layers=2, heads=2),  # 1.2M
    Size(d_model=192, layers=2, heads=3),  # 2.7M
    Size(d_model=256, layers=2, heads=4),  # 4.7M
    Size(d_model=384, layers=2, heads=6),  # 11M
    *PAPER_SIZES[:2],  # 19M, 64M
)
GPU_PIECES = 16_000
GPU_CONCEPTS, GPU_SYLLABLES = 16_384, 256
GPU_TOKENS = {4_000_000: 50_000_000, 3_500_000: 44_000_000, 6_000_000: 1_000_000_000}
"""Target tokens of mini's runs to those of this tier's. Cohorts of other budgets, which ask what is
due to mini's short training, have no counterpart."""
GPU_TRAINING = TrainingConfig(
    learning_rate=0.05,  # not tuned: from step 400 on it is Adafactor's own cap
    warmup_steps=400,
    batch_tokens=16_384,
    target_tokens=50_000_000,
    precision="bfloat16",
)


def _gpu_corpus(corpus: grids.Corpus) -> grids.Corpus:
    assert corpus.training.target_tokens is not None
    training = replace(GPU_TRAINING, target_tokens=GPU_TOKENS[corpus.training.target_tokens])
    if corpus.conlang is not None:
        larger = replace(corpus.conlang, concepts=GPU_CONCEPTS, syllables=GPU_SYLLABLES)
        return replace(corpus, training=training, conlang=larger)
    assert corpus.vocabulary is not None
    return replace(
        corpus,
        training=replace(training, keep="best"),
        vocabulary=replace(corpus.vocabulary, pieces=GPU_PIECES),
    )


def _at(
    tier: str, cohort: grids.Cohort, sizes: tuple[Size, ...], corpus: grids.Corpus
) -> grids.Cohort:
    """The grid of mini's `cohort` at another tier: its i-th size becomes that of `sizes`."""
    chosen = tuple(sizes[grids.MINI_SIZES.index(size)] for size in cohort.sizes)
    return replace(cohort, tier=tier, sizes=chosen, corpus=corpus)


GPU_GRIDS = tuple(
    _at("gpu", cohort, GPU_SIZES, _gpu_corpus(cohort.corpus))
    for cohort in grids.GRIDS
    if cohort.corpus.training.target_tokens in GPU_TOKENS
)

_PAPER_CORPUS = replace(
    grids.WEBTECH,
    training=PUBLISHED["paper-a"].training,
    vocabulary=replace(grids.WEBTECH_VOCABULARY, pieces=PUBLISHED["paper-a"].model.vocab_size),
)
PAPER_GRIDS = tuple(
    _at("paper", cohort, PAPER_SIZES, _PAPER_CORPUS)
    for cohort in grids.GRIDS
    if cohort.corpus == grids.WEBTECH and not cohort.repeats
)
