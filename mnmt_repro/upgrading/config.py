"""Every choice of an upgrade, as data. No torch is needed here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mnmt_repro.choices import check_choices
from mnmt_repro.errors import InputError

NewRows = Literal["unk", "random", "mean"]
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

    init: WidthInit = "concatenation"
    noise: float = 0.01  # std of the Gaussian noise on copied matrices (footnote 10); no biases
    normalisation: AnyNormalisation = "auto"  # auto: as published where that keeps the function

    def __post_init__(self) -> None:
        check_choices(self, "width")
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise InputError(f"width noise must be at least 0, got {self.noise}")


@dataclass(frozen=True, kw_only=True)
class DepthConfig:
    """How many layers are added, where, and how they are made; see `depth.new_layer`.

    Raises
    ------
    InputError
        When a field is out of its range.
    """

    encoder: int = 0  # layers added to the encoder
    decoder: int = 0
    init: DepthInit = "average"
    encoder_at: Place = "bottom"  # the side of the input
    decoder_at: Place = "top"  # the side of the output

    def __post_init__(self) -> None:
        for name in ("encoder", "decoder"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"deeper.{name} must be at least 0, as a model cannot be made shallower; got "
                    f"{getattr(self, name)}"
                )
        check_choices(self, "depth")


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

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            check_factor(value)
        if self.steps < 1:
            raise InputError(f"a ramp needs at least 1 step, got {self.steps}")

    def at(self, step: int) -> float:
        """Factor at `step` (1, 2, ...)."""
        if step >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (step - 1) / (self.steps - 1)


Factor = float | Ramp


def check_factor(factor: Factor) -> None:
    """Refuse a negative factor.

    Raises
    ------
    InputError
        When it is negative or not finite.
    """
    if not isinstance(factor, Ramp) and not (math.isfinite(factor) and factor >= 0):
        raise InputError(f"a learning-rate factor must be at least 0, got {factor}")


def to_factor(value: float | Mapping[str, Any]) -> Factor:
    """A factor from what `dataclasses.asdict` and JSON make of it."""
    return Ramp(**value) if isinstance(value, Mapping) else value


def factor_at(factor: Factor, step: int) -> float:
    """Value of a constant or a ramp at `step` (1, 2, ...)."""
    return factor.at(step) if isinstance(factor, Ramp) else float(factor)


@dataclass(frozen=True, kw_only=True)
class UpgradeConfig:
    """Every choice of an upgrade, apart from the vocabularies.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.
    """

    wider: float = 1.0  # factor of d_ff
    width: WidthConfig = field(default_factory=WidthConfig)
    deeper: DepthConfig = field(default_factory=DepthConfig)
    embeddings: NewRows = "unk"  # rows of new pieces
    keep: Literal["all", "body", "nothing"] = "all"  # old weights that are used: all, all but the
    # tables ("all emb random", Table 4), which count as new then, or none ("random init all",
    # Table 3), where what would be old has gamma_old all the same, as what it is compared with
    gamma_old: Factor = 1.0  # learning-rate factor of old parameters and blocks
    gamma_new: Factor = 1.0
    optimiser: Literal["carried", "reset"] = "carried"  # state of old parameters
    schedule: Literal["continued", "reset", "constant"] = "continued"  # of the learning rate
    # (footnote 7): from the old model's last step on, from its start again, or no schedule at all
    seed: int = 0  # of new weights and noise; take another than the old model was trained with: its
    # own draws what that model began with, row by row in the embeddings and in a first layer

    def __post_init__(self) -> None:
        if not 1.0 <= self.wider < math.inf:
            raise InputError(
                f"wider must be at least 1, as a model cannot be made narrower; got {self.wider}"
            )
        check_choices(self, "upgrade")
        check_factor(self.gamma_old)
        check_factor(self.gamma_new)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> UpgradeConfig:
        """Inverse of `dataclasses.asdict`."""
        values = dict(fields)
        values["width"] = WidthConfig(**values["width"])
        values["deeper"] = DepthConfig(**values["deeper"])
        for name in ("gamma_old", "gamma_new"):
            values[name] = to_factor(values[name])
        return cls(**values)


FISHER_SENTENCES = 20
"""Validation sentences of each old pair that Fisher information is taken on; the paper has FLORES's
development set."""


def ramp_steps(config: UpgradeConfig) -> int:
    """Steps after which no learning-rate factor rises any more; 0 where none does."""
    factors = (config.gamma_old, config.gamma_new)
    return max((factor.steps for factor in factors if isinstance(factor, Ramp)), default=0)


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
