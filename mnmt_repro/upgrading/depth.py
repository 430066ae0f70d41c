"""Insert layers into a stack.

Paper B, Figure 1 (right), Section 4.2 and Table 4: new layers at the bottom of the encoder and the
top of the decoder, made at random, from the closest old layer, or as the average of all old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mnmt_repro.upgrading.config import DepthConfig, DepthInit, Place

__all__ = ["DepthConfig", "DepthInit", "Place", "closest_layer", "new_layer", "place_layers"]


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
