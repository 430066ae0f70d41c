"""How a model is trained. No torch is needed here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import (
    Amount,
    Count,
    Few,
    Natural,
    Part,
    Positive,
    check,
    defaults,
    required,
    setting,
)

LAST, BEST, LOG = "last.safetensors", "best.safetensors", "log.jsonl"
"""Files of a run's folder."""

STEM = "stem.safetensors"
"""The checkpoint at which a run's final decay began. A longer run of the same settings starts from
it, because up to this step the two runs are the same."""


BUDGET = ("target_tokens", "steps")
"""Settings that say how long a run is, and nothing of what it does until then."""

PEAK = {"adafactor": 0.3, "adamw": 0.005}
"""Learning rate where none is given. That of Adafactor is relative to each parameter's size."""
USUAL = {"warmup_steps": 100, "batch_tokens": 512}
"""Settings of a user's run where she gives none."""
FIRST_BUDGET = 600_000  # target tokens, where neither they nor steps are given

COMPILE_PAYS = {16: 12_000_000, 40: 8_000_000, 128: 4_500_000, 256: 2_500_000}
"""The largest width of a model, and target tokens from which compiling saves more than the minute
that it takes, on one processor thread (`data/benchmarks/peers.json`, and a margin of a third)."""

LATER = (
    "decay_share", "accumulate", "compile", "loss_weights", "first_weights", "first_share",
    "stop_after",
)  # fmt: skip
"""Fields that are newer than the first stored runs; see `TrainingConfig.settings`."""


def pair_weights(text: str) -> dict[str, float]:
    """Weights of language pairs as an option gives them.

    >>> pair_weights("eng-deu=0.05,eng-fra=0.95")
    {'eng-deu': 0.05, 'eng-fra': 0.95}
    """
    parts = [part.partition("=") for part in text.split(",")]
    weights = {pair.strip(): float(weight) for pair, _, weight in parts}
    if len(weights) < len(parts):
        raise ValueError(text)  # a pair is there twice
    return weights


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Every choice that decides the weights a run ends with, given its model, data and seed.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.
    """

    learning_rate: Positive = required(
        "peak of the schedule (default: "
        f"{', '.join(f'{peak:g} for {optimiser}' for optimiser, peak in PEAK.items())})"
    )
    warmup_steps: Natural = required("linear rise to the peak; then it falls with 1 / sqrt(step)")
    # Ends of sentences count as tokens, padding does not.
    batch_tokens: Count = required("target tokens a step")
    # The budget is given in one of the two.
    target_tokens: Count | None = setting(
        f"budget in target tokens over all pairs (default: {FIRST_BUDGET:,})"
    )
    steps: Count | None = setting("budget in steps, in place of --target-tokens")
    max_length: Count = setting("leave out sentence pairs with a side of more tokens", 64)
    optimiser: Literal["adafactor", "adamw"] = setting(
        "how weights are updated (default: adafactor)", "adafactor"
    )
    weight_decay: Amount = setting(
        "share of each weight that a step takes off, times the learning rate", 0.0
    )
    beta1: Part = setting("AdamW: decay of the first moment", 0.9)
    beta2: Part = setting("AdamW: decay of the second moment", 0.98)
    # The gradient is that of the mean loss per token.
    clip_norm: Positive | None = setting("clip the gradient to this norm (default: never)")
    label_smoothing: Part = setting("share of probability spread evenly over all pieces", 0.0)
    precision: Literal["float32", "bfloat16"] = setting(
        "bfloat16: less precise; faster on GPUs and, compiled, on CPUs with AVX512-BF16 or AMX "
        "(default: bfloat16 where training is compiled by default on such a CPU, else float32)",
        "float32",
    )
    curve_points: Few = setting("number of validations, spaced evenly in log(target tokens)", 12)
    keep: Literal["last", "best"] = setting(
        "which weights are the result: last, or best on validation", "last"
    )
    stop_after: Few | None = setting(
        "end after so many validations in a row without a lower mean loss over pairs; goes with "
        "--keep best and more --curve-points (default: at the budget)",
    )
    decay_share: Part = setting(
        "share of the budget, at its end, over which the learning rate falls linearly to zero; "
        "0.3 is a good choice (default: no decay)",
        0.0,
    )
    accumulate: Few = setting(
        "compute a batch in so many parts, which needs memory for one part only",
        1,
    )
    compile: bool = setting(
        "compile the training step with a C++ compiler, in a minute or two: it is then up to twice "
        "as fast, and rounded otherwise (default: where a table of widths and budgets says that it "
        "pays, on one thread)",
        False,
    )
    # Weights by pair. Sentences are drawn by the mixture; these change the objective, or the draws.
    loss_weights: dict[str, float] | None = setting(
        "weight the loss in place of the text: the loss of each target token is multiplied by its "
        "pair's weight here over its weight in the mixture (Paper A, Eq. 4). Weights sum to one",
        type=pair_weights,
        metavar="PAIR=WEIGHT,...",
    )
    first_weights: dict[str, float] | None = setting(
        "draw sentences by these weights at first, and by the mixture after --first-share of the "
        "budget",
        type=pair_weights,
        metavar="PAIR=WEIGHT,...",
    )
    first_share: Part = setting("share of the budget for which --first-weights hold", 0.5)

    def __post_init__(self) -> None:
        check(self, "training")
        if (self.target_tokens is None) == (self.steps is None):
            raise InputError("give the budget either as target_tokens or as steps, not both")
        if self.first_weights is None and self.first_share != 0.5:
            raise InputError("training first_share goes with first_weights")
        if self.stop_after is not None and self.keep != "best":
            raise InputError("training stop_after goes with keep best, as later weights are worse")

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
        return {
            name: value
            for name, default in defaults(type(self)).items()
            if (value := getattr(self, name)) != default or name not in LATER
        }

    def is_spent(
        self, step: int, target_tokens: int, curve: Iterable[Mapping[str, Any]] = ()
    ) -> bool:
        """Whether a run at this step and number of target tokens has ended.

        Its budget is used, or, of its learning curve, as many validations as `stop_after` came
        since the one with the lowest mean loss over pairs.

        >>> config = TrainingConfig(
        ...     learning_rate=1, warmup_steps=1, batch_tokens=1, steps=9, stop_after=2, keep="best"
        ... )
        >>> curve = [
        ...     {"step": k, "cross_entropy": loss}
        ...     for k, losses in enumerate([(3, 3), (2, 3), (2, 4), (3, 3)])
        ...     for loss in losses
        ... ]
        >>> config.is_spent(3, 3, curve[:6]), config.is_spent(4, 4, curve)
        (False, True)
        """
        losses: dict[int, list[float]] = {}
        for point in curve if self.stop_after is not None else ():
            losses.setdefault(point["step"], []).append(point["cross_entropy"])
        means = [fmean(each) for each in losses.values()]
        stale = len(means) - 1 - means.index(min(means)) if means else 0
        return self.share_spent(step, target_tokens) >= 1 or stale >= (self.stop_after or math.inf)

    def share_spent(self, step: int, target_tokens: int) -> float:
        """Share of the budget that a run has used, in steps or in target tokens."""
        return target_tokens / self.planned_tokens if self.steps is None else step / self.steps

    def decays(self, step: int, target_tokens: int) -> bool:
        """Whether the decay has begun for the step that follows."""
        return self.decay(self.share_spent(step, target_tokens)) < 1

    def draws_first(self, step: int, target_tokens: int) -> bool:
        """Whether `first_weights` hold for the step that follows."""
        spent = self.share_spent(step, target_tokens)
        return self.first_weights is not None and spent < self.first_share

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


def usual_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A user's settings, and small models' usual ones where she has none (or None)."""
    settings = {name: value for name, value in settings.items() if value is not None}
    optimiser = str(settings.get("optimiser", "adafactor"))
    usual: dict[str, Any] = {"learning_rate": PEAK.get(optimiser, PEAK["adafactor"]), **USUAL}
    if not settings.keys() & set(BUDGET):
        usual["target_tokens"] = FIRST_BUDGET
    return usual | settings


def usual_training(**settings: Any) -> TrainingConfig:
    """The training of `usual_settings`."""
    return TrainingConfig(**usual_settings(settings))
