"""Fill the layers that are inserted into a stack (`places` says where).

Paper B, Figure 1 (right), Section 4.2 and Table 4: new layers at the bottom of the encoder and the
top of the decoder, made at random, from the closest old layer, or as the average of all old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mnmt_repro.upgrading.config import DepthInit
from mnmt_repro.upgrading.places import closest_layer

AT_ONCE = 2**22
"""Numbers of all old layers together that are averaged at once."""


def fill_new_layer(
    layers: Sequence[Mapping[str, Tensor]],
    plan: Sequence[int | None],
    place: int,
    init: DepthInit,
) -> None:
    """Write the tensors of the new layer at `place`, which are as drawn.

    Parameters
    ----------
    layers
        All layers of the deeper stack; the old ones have their weights.
    plan
        From `place_layers`.
    init
        `random`: the layer stays as drawn. `average`: each tensor is the mean over all old layers
        of the stack, norms and biases too. `closest`: a copy of the nearest old layer (footnote
        12).
    """
    old = [layer for layer, index in zip(layers, plan, strict=True) if index is not None]
    for name, tensor in layers[place].items():
        if init == "closest":
            tensor.copy_(old[closest_layer(plan, place)][name])
        elif init == "average":  # some rows at a time: a copy of all old layers would be large
            rows = max(1, AT_ONCE * len(tensor) // (tensor.numel() * len(old)))
            parts = zip(*(layer[name].split(rows) for layer in old), strict=True)
            for target, part in zip(tensor.split(rows), parts, strict=True):
                target.copy_(torch.stack(part).mean(0))
