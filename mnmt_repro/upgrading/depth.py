"""Make the layers that are inserted into a stack (`places` says where).

Paper B, Figure 1 (right), Section 4.2 and Table 4: new layers at the bottom of the encoder and the
top of the decoder, made at random, from the closest old layer, or as the average of all old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mnmt_repro.upgrading.config import DepthInit
from mnmt_repro.upgrading.places import closest_layer


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
