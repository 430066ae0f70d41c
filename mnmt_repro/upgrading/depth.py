"""Insert layers into a stack.

Paper B, Figure 1 (right), Section 4.2 and Table 4: new layers at the bottom of the encoder and the
top of the decoder, made at random, from the closest old layer, or as the average of all old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mnmt_repro.errors import InputError

DepthInit = Literal["average", "closest", "random"]
Place = Literal["bottom", "middle", "top", "spread"]


@dataclass(frozen=True, kw_only=True)
class DepthConfig:
    """How many layers are added, where, and how they are made.

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
        for field in ("encoder", "decoder"):
            if getattr(self, field) < 0:
                raise InputError(
                    f"cannot make the {field} shallower: {getattr(self, field)} layers to add"
                )
        choices = {
            "init": ("average", "closest", "random"),
            "encoder_at": ("bottom", "middle", "top", "spread"),
            "decoder_at": ("bottom", "middle", "top", "spread"),
        }
        for field, allowed in choices.items():
            if getattr(self, field) not in allowed:
                raise InputError(
                    f"depth {field} must be one of {', '.join(allowed)}, got {getattr(self, field)}"
                )


def place_layers(old: int, added: int, at: Place) -> tuple[int | None, ...]:
    """Old layer at each place of the deeper stack, bottom first; None for a new layer.

    `spread` puts new layers evenly among the old ones; `middle` puts all behind the lower half.

    >>> place_layers(2, 1, "bottom"), place_layers(2, 2, "top")
    ((None, 0, 1), (0, 1, None, None))
    >>> place_layers(4, 2, "spread")
    (0, None, 1, 2, None, 3)
    """
    before = {  # old layers below each new one
        "bottom": [0] * added,
        "middle": [(old + 1) // 2] * added,
        "top": [old] * added,
        "spread": [(2 * i + 1) * old // (2 * added) for i in range(added)],
    }[at]
    result: list[int | None] = []
    for layer in range(old + 1):
        result += [None] * before.count(layer)
        if layer < old:
            result.append(layer)
    return tuple(result)


def closest_layer(plan: Sequence[int | None], place: int) -> int:
    """Old layer nearest to `place`; of two as near, the lower one.

    >>> closest_layer((None, None, 0, 1), 0), closest_layer((0, None, 1), 1)
    (0, 0)
    """
    here = [(abs(i - place), layer) for i, layer in enumerate(plan) if layer is not None]
    return min(here)[1]


def new_layer(
    layers: Sequence[Mapping[str, Tensor]],
    fresh: Mapping[str, Tensor],
    plan: Sequence[int | None],
    place: int,
    init: DepthInit,
) -> dict[str, Tensor]:
    """Tensors of the new layer at `place`.

    Parameters
    ----------
    layers
        All old layers of the stack, in the shape of the new model.
    fresh
        A layer as a new model has it, for `random`.
    plan
        From `place_layers`.
    init
        `average`: each tensor is the mean over all old layers of the stack, norms and biases too.
        `closest`: a copy of the nearest old layer (footnote 12).
    """
    if init == "random":
        return {name: tensor.clone() for name, tensor in fresh.items()}
    if init == "closest":
        return {name: t.clone() for name, t in layers[closest_layer(plan, place)].items()}
    return {name: torch.stack([layer[name] for layer in layers]).mean(0) for name in fresh}
