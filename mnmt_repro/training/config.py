"""How a model is trained. No torch is needed here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from mnmt_repro.choices import check_choices
from mnmt_repro.errors import InputError

LAST, BEST, LOG = "last.safetensors", "best.safetensors", "log.jsonl"
"""Files of a run's folder."""

STEM = "stem.safetensors"
"""The checkpoint at which a run's final decay began. A longer run of the same settings starts from
it, because up to this step the two runs are the same."""

BUDGET = ("target_tokens", "steps")
"""Settings that say how long a run is, and nothing of what it does until then."""

LATER = ("decay_share",)
"""Fields that are newer than the first stored runs; see `TrainingConfig.settings`."""


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
    decay_share: float = 0.0  # last share of the budget, over which the rate falls linearly to zero

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
        for field in ("label_smoothing", "beta1", "beta2", "decay_share"):
            if not 0 <= getattr(self, field) < 1:
                raise InputError(f"training {field} must lie in [0, 1), got {getattr(self, field)}")
        check_choices(self, "training")

    @property
    def planned_tokens(self) -> int:
        """The budget in target tokens (steps times tokens a step, where it is given in steps)."""
        return self.target_tokens or self.steps * self.batch_tokens  # type: ignore[operator]

    @property
    def trunk_tokens(self) -> float:
        """Target tokens before the decay; until then, runs of other budgets are the same run."""
        return self.planned_tokens * (1 - self.decay_share)

    def settings(self) -> dict[str, Any]:
        """All fields by name, as hashes and files hold them.

        Fields of `LATER` are left out at their defaults, so that runs stored before these fields
        existed keep their hash.
        """
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in LATER or value != defaults[name]
        }

    def is_spent(self, step: int, target_tokens: int) -> bool:
        """Whether a run at this step and number of target tokens has used its budget."""
        return self.share_spent(step, target_tokens) >= 1

    def share_spent(self, step: int, target_tokens: int) -> float:
        """Share of the budget that a run has used, in steps or in target tokens."""
        return target_tokens / self.planned_tokens if self.steps is None else step / self.steps

    def decays(self, step: int, target_tokens: int) -> bool:
        """Whether the decay has begun for the step that follows."""
        return self.decay(self.share_spent(step, target_tokens)) < 1

    def decay(self, spent: float) -> float:
        """Factor of the learning rate for the step that follows once `spent` of the budget is used.

        It is 1 up to the last `decay_share` of the budget, and then falls linearly to zero.

        >>> config = TrainingConfig(
        ...     learning_rate=1.0, warmup_steps=4, batch_tokens=1, steps=16, decay_share=0.25
        ... )
        >>> [config.decay(step / 16) for step in (0, 12, 13, 15)]
        [1.0, 1.0, 0.75, 0.25]
        """
        if not self.decay_share:
            return 1.0
        return min(1.0, (1.0 - spent) / self.decay_share)

    def rate(self, step: int) -> float:
        """Learning rate of `step` (1, 2, ...) before the decay: warm-up, then inverse square root.

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
