"""Training runs of a second or two on generated text, shared by several tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.encoding import ConlangSentences, first_syllable
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.model import Transformer
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.loop import TrainingData, train

# Four words of two syllables: a model learns them by heart in some hundred steps.
EASY = ConlangConfig(concepts=4, syllables=4, min_concepts=1, max_concepts=1)
# Sentences of several lengths, for batches with padding.
VARIED = ConlangConfig(concepts=64, syllables=24, min_concepts=3, max_concepts=8)
PAIRS = ("src-aaa", "src-bbb")
STEPS = 80  # of `resumable_run`
LATER = 1 << 20  # number of a training sentence far beyond those trained on


def sentences(config: ConlangConfig, pair: str, count: int, start: int = LATER) -> EncodedPair:
    stream = ConlangSentences(Conlang(config), pair, "source", start=start)
    return EncodedPair(*stream.take(np.arange(count)))


def small_data(config: ConlangConfig = VARIED, finite: int = 0) -> TrainingData:
    """Endless text of both pairs; the second has but `finite` sentences, where that is not 0."""
    conlang = Conlang(config)
    text = {pair: ConlangSentences(conlang, pair, "source") for pair in PAIRS}
    if finite:
        text[PAIRS[1]] = sentences(config, PAIRS[1], finite, start=0)
    return TrainingData(
        sentences=text, validation={pair: sentences(config, pair, 40) for pair in PAIRS}
    )


def t5(config: ConlangConfig = VARIED, d_model: int = 16, **options) -> ModelConfig:
    vocab = first_syllable(config) + len(config.languages) * config.syllables
    return ModelConfig.t5(vocab_size=vocab, d_model=d_model, layers=1, heads=2, **options)


def fairseq(config: ConlangConfig = VARIED, **options) -> ModelConfig:
    vocab = first_syllable(config) + len(config.languages) * config.syllables
    return ModelConfig.fairseq(vocab_size=vocab, d_model=16, layers=1, heads=2, **options)


def adamw(**options) -> TrainingConfig:
    settings = {
        "learning_rate": 0.02, "warmup_steps": 10, "batch_tokens": 128, "optimiser": "adamw",
    }  # fmt: skip
    return TrainingConfig(**{**settings, **options})


EVEN = Mixture.two(*PAIRS, 0.5)


def resumable_run(folder: str, checkpoint_seconds: float) -> None:
    """The run that tests kill: dropout, both kinds of text, best weights kept, one thread.

    Its loss has weights of its own, and its text is drawn otherwise for the first half.
    """
    torch.set_num_threads(1)
    ways = {
        "loss_weights": dict(zip(PAIRS, (0.6, 0.4), strict=True)),
        "first_weights": EVEN.weights,
    }
    train(
        t5(dropout=0.1),
        adamw(steps=STEPS, keep="best", label_smoothing=0.1, clip_norm=1.0, **ways),
        small_data(finite=150),
        Mixture.two(*PAIRS, 0.3),
        Path(folder),
        seed=5,
        identity="resumable",
        checkpoint_seconds=checkpoint_seconds,
        progress_bar=False,
    )


def same_weights(a: Transformer, b: Transformer) -> bool:
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
