"""How a model is trained. No torch is needed here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mnmt_repro.choices import check_choices
from mnmt_repro.errors import InputError

LAST, BEST, LOG = "last.safetensors", "best.safetensors", "log.jsonl"
"""Files of a run's folder."""

BUDGET = ("target_tokens", "steps")
"""Settings that say how long a run is, and nothing of what it does until then."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Every choice that decides the weights a run ends with, given its model, data and seed.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.
    """

    learning_rate: float  # peak of the schedule
    warmup_steps: int  # linear rise to the peak, then a fall with 1 / sqrt(step)
    batch_tokens: int  # target tokens a step, end-of-sentence included, padding not counted
    target_tokens: int | None = None  # budget in target tokens over all pairs, or
    steps: int | None = None  # budget in steps: exactly one of the two
    max_length: int = 64  # sentence pairs with a longer side are left out of training
    optimiser: Literal["adafactor", "adamw"] = "adafactor"
    weight_decay: float = 0.0
    beta1: float = 0.9  # AdamW only
    beta2: float = 0.98  # AdamW only
    clip_norm: float | None = None  # on the gradient of the mean loss per token
    label_smoothing: float = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"  # bfloat16: autocast
    curve_points: int = 12  # validations, spaced evenly in log(target tokens), the end included
    keep: Literal["last", "best"] = "last"  # which weights are the result; best by validation loss

    def __post_init__(self) -> None:
        if (self.target_tokens is None) == (self.steps is None):
            raise InputError("give the budget either as target_tokens or as steps, not both")
        positive = ("learning_rate", "batch_tokens", "target_tokens", "steps", "max_length")
        for field in (*positive, "clip_norm", "curve_points"):
            value = getattr(self, field)
            if value is not None and not value > 0:
                raise InputError(f"training {field} must be above 0, got {value}")
        for field in ("warmup_steps", "weight_decay"):
            if getattr(self, field) < 0:
                raise InputError(f"training {field} must be at least 0, got {getattr(self, field)}")
        for field in ("label_smoothing", "beta1", "beta2"):
            if not 0 <= getattr(self, field) < 1:
                raise InputError(f"training {field} must lie in [0, 1), got {getattr(self, field)}")
        check_choices(self, "training")

    @property
    def planned_tokens(self) -> int:
        """The budget in target tokens (steps times tokens a step, where it is given in steps)."""
        return self.target_tokens or self.steps * self.batch_tokens  # type: ignore[operator]

    def is_spent(self, step: int, target_tokens: int) -> bool:
        """Whether a run that stands here has had its budget."""
        if self.steps is not None:
            return step >= self.steps
        return target_tokens >= self.planned_tokens

    def rate(self, step: int) -> float:
        """Learning rate of `step` (1, 2, ...): warm-up, then inverse square root.

        >>> config = TrainingConfig(learning_rate=1.0, warmup_steps=4, batch_tokens=1, steps=16)
        >>> [config.rate(step) for step in (1, 4, 16)]
        [0.25, 1.0, 0.5]
        """
        warmup = max(self.warmup_steps, 1)
        return self.learning_rate * min(step / warmup, math.sqrt(warmup / step))

    def curve_tokens(self) -> list[int]:
        """Target tokens at which validation loss is taken: log-spaced from 1/64 of the budget."""
        if self.curve_points == 1:
            return [self.planned_tokens]
        last = self.curve_points - 1
        return [
            round(self.planned_tokens * 64.0 ** (i / last - 1)) for i in range(self.curve_points)
        ]
