"""Put the tensors of an upgraded model together, and say where each one comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.model import TABLES
from mnmt_repro.upgrading.config import UpgradeConfig, WidthConfig
from mnmt_repro.upgrading.depth import fill_new_layer
from mnmt_repro.upgrading.learning_rate import NEW, OLD
from mnmt_repro.upgrading.places import place_layers
from mnmt_repro.upgrading.vocabulary import PieceMap, map_rows
from mnmt_repro.upgrading.width import UNIT_AXIS, widen


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a parameter of the new model comes from.

    Attributes
    ----------
    source
        The old parameter; None when all of it is new.
    axis, units
        Where some of it is new: along `axis`, the old index of each entry, -1 for a new one.
    """

    source: str | None
    axis: int = 0
    units: Tensor | None = None


def assemble(
    weights: Mapping[str, Tensor],
    made: Mapping[str, Tensor],
    old: ModelConfig,
    config: UpgradeConfig,
    pieces: PieceMap | None,
) -> dict[str, Origin]:
    """Put the old model's weights into a new model of the upgraded shape.

    Tensors are read and written one layer at a time, so that only the new model is in memory.

    Parameters
    ----------
    weights
        The old model's; they may be mapped from files.
    made
        The new model's, as drawn. They are written in place, except those that `config.keep` leaves
        as drawn.
    old
        Shape of the old model.

    Returns
    -------
    Name -> where the tensor comes from.
    """
    # Of this seed torch takes the low 32 bits on a CPU, so that noise repeats the first of the new
    # model's own draws: those of its tables, of which nothing but random rows is ever used. Another
    # seed would be better, and would make all stored upgrades other runs.
    generator = torch.Generator().manual_seed(config.seed + 2**32)
    kept = {"all": made, "body": made.keys() - set(TABLES), "nothing": ()}[config.keep]
    origins: dict[str, Origin] = {}
    for stack, count, added, at in (
        ("encoder", old.encoder_layers, config.deeper.encoder, config.deeper.encoder_at),
        ("decoder", old.decoder_layers, config.deeper.decoder, config.deeper.decoder_at),
    ):
        plan = place_layers(count, added, at)
        layers = [_layer(made, stack, place) for place in range(len(plan))]
        units = torch.empty(0)
        for place, index in enumerate(plan):
            if index is None:
                continue
            layer, units = _widen_layer(
                _layer(weights, stack, index), layers[place], config.width, generator
            )
            for name, tensor in layer.items():
                full = f"{stack}.{place}.{name}"
                if full in kept:
                    made[full].copy_(tensor)
                axis = UNIT_AXIS.get(name.removeprefix("feed_forward."))
                partly = name.startswith("feed_forward.") and axis is not None
                origins[full] = Origin(
                    source=f"{stack}.{index}.{name}",
                    axis=axis or 0,
                    units=units if partly and bool((units < 0).any()) else None,
                )
        for place, index in enumerate(plan):
            if index is not None:
                continue
            if config.keep != "nothing":
                fill_new_layer(layers, plan, place, config.deeper.init)
            origins |= {f"{stack}.{place}.{name}": Origin(source=None) for name in layers[place]}
    for name in made:
        if name in origins:
            continue
        if name in TABLES and pieces is not None:
            if name in kept:
                map_rows(weights[name], made[name], pieces, config.embeddings)
            origins[name] = Origin(source=name, units=torch.from_numpy(pieces.source))
        else:
            if name in kept:
                made[name].copy_(weights[name])
            origins[name] = Origin(source=name)
    return origins


def _layer(weights: Mapping[str, Tensor], stack: str, index: int) -> dict[str, Tensor]:
    prefix = f"{stack}.{index}."
    return {k.removeprefix(prefix): weights[k] for k in weights if k.startswith(prefix)}


def _widen_layer(
    layer: dict[str, Tensor],
    fresh: dict[str, Tensor],
    config: WidthConfig,
    generator: torch.Generator,
) -> tuple[dict[str, Tensor], Tensor]:
    prefix = "feed_forward."
    narrow = {k.removeprefix(prefix): t for k, t in layer.items() if k.startswith(prefix)}
    drawn = {k.removeprefix(prefix): t for k, t in fresh.items() if k.startswith(prefix)}
    wide, units = widen(narrow, drawn, config, generator)
    return {**layer, **{prefix + name: tensor for name, tensor in wide.items()}}, units


def group_of(origin: Origin, ndim: int) -> Tensor:
    """Group of each entry, in a shape that broadcasts to the parameter's."""
    if origin.source is None:
        return torch.full((1,) * ndim, NEW, dtype=torch.uint8)
    if origin.units is None:
        return torch.full((1,) * ndim, OLD, dtype=torch.uint8)
    shape = [-1 if i == origin.axis else 1 for i in range(ndim)]
    return torch.where(origin.units >= 0, OLD, NEW).to(torch.uint8).view(shape)


def carry_state(key: str, state: Tensor, origin: Origin) -> Tensor:
    """A state tensor of an old parameter, in the shape of the new one.

    Entries of new blocks start with no first moment, and with the mean second moment of the old
    ones: optimisers count steps a parameter, not an entry, and a zero beside a high count would
    make the first updates of a new block far too large. A state that does not reach along the
    changed axis (the step count, the other factor of Adafactor) is copied. Moments are not
    rescaled with the weights of a widened layer.
    """
    units, axis = origin.units, origin.axis
    factored = {"row_var": 1, "col_var": 0}.get(key)  # axis over which Adafactor has summed
    if units is None or state.ndim == 0 or axis == factored:
        return state.clone()
    old = state.index_select(axis, units.clamp_min(0))
    shape = [-1 if i == axis else 1 for i in range(state.ndim)]
    start = state.mean(axis, keepdim=True) * (key != "exp_avg")
    return torch.where((units < 0).view(shape), start, old)
