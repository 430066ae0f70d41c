"""The papers' published settings, for declared cohorts and for text of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mnmt_repro.architecture import PAPER_A, ModelConfig
from mnmt_repro.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A model, its vocabulary and its training."""

    arch: Literal["t5", "fairseq"]
    model: ModelConfig  # whose `vocab_size` is the number of pieces
    vocabulary_temperature: float
    tags: str  # of languages, as `train --tags`
    training: TrainingConfig


PUBLISHED = {
    "paper-a": Settings(
        arch="t5",
        model=PAPER_A[0].config,
        vocabulary_temperature=1.0,
        tags="auto",
        training=TrainingConfig(
            learning_rate=0.01,  # neither it nor warm-up are said; these are T5's, and from step
            warmup_steps=10_000,  # 10,000 on the rate is Adafactor's own cap, 1 / sqrt(step)
            batch_tokens=500_000,
            steps=500_000,  # Section 3.1: of the models below 500M parameters
            precision="bfloat16",  # not said
        ),
    ),
    "paper-b": Settings(
        arch="fairseq",
        # Dropout other than in attention is not printed, and zero here.
        model=ModelConfig.fairseq(
            vocab_size=64_000,
            d_model=1024,
            layers=12,
            heads=16,
            d_ff=4096,
            attention_dropout=0.1,
        ),
        vocabulary_temperature=2.0,
        tags="both",
        training=TrainingConfig(
            learning_rate=0.003,
            warmup_steps=8_000,
            batch_tokens=444_000,
            steps=100_000,
            optimiser="adamw",  # not said; fairseq's Adam
            label_smoothing=0.1,
            keep="best",
            precision="bfloat16",
        ),
    ),
}
"""Paper A's first size, and Paper B's baseline."""
