"""Widen a feed-forward layer: more hidden units, matched across its matrices.

Paper B, Figure 1 (left), Section 4.2 and Table 4. A hidden unit is a row of `up` (and of `gate`),
with its biases, and the column of `out` that reads it; whatever is done to a unit is done to all
of these together.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.config import Normalisation, WidthConfig

UNIT_AXIS = {
    "gate.weight": 0, "gate.bias": 0, "up.weight": 0, "up.bias": 0, "out.weight": 1,
}  # fmt: skip
"""Axis of the hidden units in each tensor of a feed-forward layer; `out.bias` has none."""


def widen(
    weights: Mapping[str, Tensor],
    fresh: Mapping[str, Tensor],
    config: WidthConfig,
    generator: torch.Generator,
) -> tuple[dict[str, Tensor], Tensor]:
    """Widen one feed-forward layer.

    - `concatenation`: the old units as they are, then noisy copies of them (as many whole or
      part rounds as it takes).
    - `interpolation`: k times as many units; every k-th is an old one, those between lie on the
      line to the next old one (beyond the last, they repeat it).
    - `random`: the old units as they are, then units of a new model. Nothing is normalised.

    Then, except for `random`, the matrices are scaled:

    - `frobenius`, as published (footnote 11): each one back to its old Frobenius norm, its bias by
      the same factor. Without noise that is 1/sqrt(k) for concatenation to k times as many units,
      which leaves a ReLU layer's function as it was, but not a gated one's. Where only some units
      have a copy, all are scaled down alike, and neither layer keeps its function.
    - `function`: each column of `out` by one over the copies of its unit; after concatenation
      without noise it keeps the function of either layer.
    - `function-shared` (ReLU only): `up` with its bias, and `out`, by one over the square root
      of the copies; keeps the function too, since relu(c x) = c relu(x).
    - `none`.
    - `auto`: one of these, as `settle_normalisation` says.

    After interpolation none of them keeps the function: a unit between two old ones is neither.

    Parameters
    ----------
    weights
        `up.weight` (ff, d), `out.weight` (d, ff), perhaps `gate.weight` (ff, d) and biases.
    fresh
        The same of a new model of the wider shape.
    generator
        Draws the noise.

    Returns
    -------
    dict
        The wide layer's tensors.
    (wide ff,) int64
        Old unit that each is, unchanged but for noise-free scaling; -1 for a new one.

    Raises
    ------
    InputError
        When the layer would be narrower, or interpolation is asked for a part multiple, or
        `function-shared` for a gated layer.
    """
    old, wide = weights["up.weight"].shape[0], fresh["up.weight"].shape[0]
    gated = "gate.weight" in weights
    check_width(old, wide, config, gated=gated)
    position = torch.arange(wide)
    if wide == old:
        return {name: tensor.clone() for name, tensor in weights.items()}, position
    if config.init == "interpolation":
        factor = wide // old
        left = position // factor
        right, between = (left + 1).clamp_max(old - 1), (position % factor) / factor
        units = torch.where(position % factor == 0, left, -1)
    else:
        left, right, between = position % old, position % old, torch.zeros(wide)
        units = torch.where(position < old, position, -1)
    copies = torch.bincount(left, minlength=old)[left]

    result = {}
    for name, tensor in weights.items():
        axis = UNIT_AXIS.get(name)
        if axis is None:
            result[name] = tensor.clone()
            continue
        shape = [-1 if i == axis else 1 for i in range(tensor.ndim)]
        is_new = (units < 0).view(shape)
        if config.init == "random":
            old_part = tensor.index_select(axis, left)
            result[name] = torch.where(is_new, fresh[name].to(tensor.dtype), old_part)
            continue
        made = tensor.index_select(axis, left)
        if config.init == "interpolation":
            share = between.to(tensor.dtype).view(shape)
            made = made.lerp_(tensor.index_select(axis, right), share)
        elif config.noise and name.endswith("weight"):  # in place: these are the largest matrices
            noise = torch.randn(made.shape, generator=generator).to(made.dtype)
            made += noise.mul_(config.noise).masked_fill_(~is_new, 0.0)
        result[name] = made
    if config.init != "random":
        normalisation, _ = settle_normalisation(config, wide / old, gated=gated)
        _normalise(result, weights, copies, normalisation)
    return result, units


def check_width(old: int, wide: int, config: WidthConfig, *, gated: bool) -> None:
    """Refuse what `widen` cannot do.

    Raises
    ------
    InputError
        As `widen`.
    """
    if wide < old:
        raise InputError(f"cannot make a feed-forward layer narrower: {old} units to {wide}")
    if config.init == "interpolation" and wide % old:
        raise InputError(
            f"interpolation needs a whole multiple of the old {old} units, got {wide}; "
            "choose another factor, or concatenation"
        )
    if config.normalisation == "function-shared" and gated:
        raise InputError(
            "normalisation function-shared keeps the function of a ReLU layer only; this one is "
            "gated: choose function"
        )


def settle_normalisation(
    config: WidthConfig, wider: float, *, gated: bool
) -> tuple[Normalisation, str]:
    """How a layer `wider` times as wide is scaled back, and why it is that way.

    `auto` is the published one, but `function` where that one would change what a layer computes
    and `function` would not.

    >>> settle_normalisation(WidthConfig(), 2, gated=False)
    ('frobenius', 'as published')
    >>> settle_normalisation(WidthConfig(), 1.5, gated=False)
    ('function', 'x1.5 copies some units only, and the norm would not keep what is computed')
    """
    if config.normalisation != "auto":
        return config.normalisation, "as asked for"
    if config.init == "concatenation" and (gated or wider % 1):
        cause = "the layer is gated" if gated else f"x{wider:g} copies some units only"
        return "function", f"{cause}, and the norm would not keep what is computed"
    return "frobenius", "as published"


def _normalise(
    wide: dict[str, Tensor], old: Mapping[str, Tensor], copies: Tensor, kind: Normalisation
) -> None:
    if kind == "frobenius":
        for part in ("gate", "up", "out"):
            if f"{part}.weight" not in wide:
                continue
            norm = wide[f"{part}.weight"].norm()
            factor = old[f"{part}.weight"].norm() / norm if norm > 0 else torch.ones(())
            wide[f"{part}.weight"] *= factor
            if part != "out" and f"{part}.bias" in wide:
                wide[f"{part}.bias"] *= factor
    elif kind != "none":
        share = 1 / copies.to(wide["out.weight"].dtype)
        if kind == "function-shared":
            share = share.sqrt()
            wide["up.weight"] *= share[:, None]
            if "up.bias" in wide:
                wide["up.bias"] *= share
        wide["out.weight"] *= share
