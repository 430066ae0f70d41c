"""Every choice of an upgrade, as data. No torch is needed here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import Amount, Count, Natural, Range, Seed, check, setting

NewRows = Literal["unk", "random", "mean", "centroid"]
WidthInit = Literal["concatenation", "interpolation", "random"]
Normalisation = Literal["frobenius", "function", "function-shared", "none"]
AnyNormalisation = Literal["auto", Normalisation]
DepthInit = Literal["average", "closest", "random"]
Place = Literal["bottom", "middle", "top", "spread"]
Kind = Literal["same", "wide", "deep"]


@dataclass(frozen=True, kw_only=True)
class WidthConfig:
    """How new hidden units of a feed-forward layer are made; see `width.widen`.

    Raises
    ------
    InputError
        When a field is out of its range.
    """

    init: WidthInit = setting(
        "new hidden units: noisy copies of old ones, values between old ones, or random",
        "concatenation",
        flags=("--width-init",),
    )
    # Footnote 10. Gaussian, on copied matrices; biases have none.
    noise: Amount = setting("standard deviation of the copies' noise", 0.01)
    normalisation: AnyNormalisation = setting(
        "how widened matrices are scaled back. frobenius: to their old norm, as published. "
        "function, function-shared: so that the layer computes what it did, apart from the noise. "
        "auto: function where only it keeps that (gated layers, part multiples), else frobenius",
        "auto",
    )

    def __post_init__(self) -> None:
        check(self, "width")


@dataclass(frozen=True, kw_only=True)
class DepthConfig:
    """How many layers are added, where, and how they are made; see `depth.fill_new_layer`.

    Raises
    ------
    InputError
        When a field is out of its range.
    """

    encoder: Natural = 0  # layers added to the encoder
    decoder: Natural = 0
    init: DepthInit = setting(
        "new layers: the mean of all old ones, a copy of the nearest one, or random",
        "average",
        flags=("--depth-init",),
    )
    encoder_at: Place = "bottom"  # the side of the input
    decoder_at: Place = "top"  # the side of the output

    def __post_init__(self) -> None:
        check(self, "deeper")


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """A factor that goes in a straight line from its first step to its last, and then stays.

    Raises
    ------
    InputError
        When a factor is negative or not finite, or there are no steps.

    Examples
    --------
    >>> ramp = Ramp(start=0.0, end=0.5, steps=6)
    >>> [round(ramp.at(step), 3) for step in (1, 2, 6, 99)]
    [0.0, 0.1, 0.5, 0.5]
    """

    start: Amount
    end: Amount
    steps: Count

    def __post_init__(self) -> None:
        check(self, "ramp")

    def at(self, step: int) -> float:
        """Value at `step` (1, 2, ...)."""
        if step >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (step - 1) / (self.steps - 1)


Gamma = Amount | Ramp
"""Learning-rate factor of a group of parameters, which is the share of each update applied."""


def check_gamma(gamma: Gamma) -> None:
    """Refuse a negative factor.

    Raises
    ------
    InputError
        When it is negative or not finite.
    """
    if not isinstance(gamma, Ramp) and not (math.isfinite(gamma) and gamma >= 0):
        raise InputError(f"a learning-rate factor must be at least 0, got {gamma}")


def gamma_at(gamma: Gamma, step: int) -> float:
    """Value of a constant or a ramp at `step` (1, 2, ...)."""
    return gamma.at(step) if isinstance(gamma, Ramp) else float(gamma)


@dataclass(frozen=True, kw_only=True)
class UpgradeConfig:
    """Every choice of an upgrade, apart from the vocabularies.

    New pieces are copies of `<unk>` by default, as published. The command ``upgrade --vocab`` has
    another default: means of old pieces.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.
    """

    wider: Annotated[float, Range(1, 1000)] = setting("factor of the feed-forward width", 1.0)
    width: WidthConfig = field(default_factory=WidthConfig)
    deeper: DepthConfig = field(default_factory=DepthConfig)
    embeddings: NewRows = setting(
        "embeddings of new pieces: the mean of the old pieces that the new piece splits into, a "
        "copy of <unk>, random, or the centroid of all old pieces. With --preset or without "
        "--vocab the default is unk, as published (default: mean)",
        "unk",
        flags=("--init",),
    )
    # body: "all emb random" of Table 4; nothing: "random init all" of Table 3, where what would be
    # old has gamma_old all the same, as what it is compared with.
    keep: Literal["all", "body", "nothing"] = setting(
        "which old weights are kept: all; all but the embedding tables, which then count as new; "
        "or none, as in Table 3, where old layers still have the factor OLD of --gamma",
        "all",
    )
    gamma_old: Gamma = 1.0  # of old parameters and blocks
    gamma_new: Gamma = 1.0
    optimiser: Literal["carried", "reset"] = setting(
        "whether the optimiser's state of old parameters is kept", "carried"
    )
    # Footnote 7.
    schedule: Literal["continued", "reset", "constant"] = setting(
        "learning rate. continued: from where the old model stopped. reset: with a new warm-up. "
        "constant: that of `train --learning-rate` at every step, but with adafactor at most "
        "1 / sqrt(step)",
        "continued",
    )
    # Of new weights and noise. Take another than the old model was trained with: its own draws what
    # that model began with, row by row in the embeddings and in a first layer.
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self, "upgrade")

    def shape(self, old: ModelConfig, vocab_size: int) -> ModelConfig:
        """Shape of the upgraded model, with a table of that many pieces."""
        return replace(
            old,
            vocab_size=vocab_size,
            d_ff=round(old.d_ff * self.wider),
            encoder_layers=old.encoder_layers + self.deeper.encoder,
            decoder_layers=old.decoder_layers + self.deeper.decoder,
        )


FISHER_SENTENCES = 20
"""Validation sentences of each old pair that Fisher information is taken on; the paper has FLORES's
development set."""


def published(kind: Kind, steps: int) -> UpgradeConfig:
    """Paper B's Mt25, Mt25_wide or Mt25_deep, trained on for `steps` updates.

    The paper does not say gamma_old of Mt25 (0.5 here, as of the wide model), gamma_new of the main
    runs (1 here) or over how many updates the deep model's factor rises (all of them here).
    """
    if kind == "wide":
        return UpgradeConfig(wider=2.0, gamma_old=0.5)
    if kind == "deep":
        return UpgradeConfig(
            deeper=DepthConfig(encoder=6, decoder=6),
            gamma_old=Ramp(start=0.05, end=0.5, steps=steps),
        )
    return UpgradeConfig(gamma_old=0.5)


def steps_to_rise(config: UpgradeConfig) -> int:
    """Steps after which no learning-rate factor rises any more.

    >>> steps_to_rise(UpgradeConfig(gamma_old=Ramp(start=0.5, end=1.0, steps=7)))
    7
    """
    gammas = config.gamma_old, config.gamma_new
    return max((gamma.steps for gamma in gammas if isinstance(gamma, Ramp)), default=0)
