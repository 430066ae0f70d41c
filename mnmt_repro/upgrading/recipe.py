"""Upgrade a model: a new vocabulary, wider and deeper, ready for training to go on.

Paper B, Section 2. Nothing is written here unless `save_upgraded` is called, and whatever cannot be
done is refused before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.atomic import write_bytes
from mnmt_repro.corpora.vocabulary import SPECIAL, Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import Checkpoint, Progress, load_checkpoint
from mnmt_repro.upgrading.depth import DepthConfig, new_layer, place_layers
from mnmt_repro.upgrading.learning_rate import NEW, OLD, Factor, Ramp, check_factor, scale_updates
from mnmt_repro.upgrading.vocabulary import (
    ROLES,
    NewRows,
    Overlap,
    Piece,
    PieceMap,
    map_rows,
    match_pieces,
)
from mnmt_repro.upgrading.width import UNIT_AXIS, WidthConfig, check_width, widen

TABLES = ("embedding.weight", "output.weight")


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
    # tables ("all emb random", Table 4), or none ("random init all", Table 3)
    gamma_old: Factor = 1.0  # learning-rate factor of old parameters and blocks
    gamma_new: Factor = 1.0
    optimiser: Literal["carried", "reset"] = "carried"  # state of old parameters
    seed: int = 0  # of new weights and noise

    def __post_init__(self) -> None:
        if not self.wider >= 1.0:
            raise InputError(
                f"cannot make a model narrower: wider must be at least 1, got {self.wider}"
            )
        choices = {
            "embeddings": ("unk", "random", "mean"),
            "keep": ("all", "body", "nothing"),
            "optimiser": ("carried", "reset"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"upgrade {name} must be one of {', '.join(allowed)}, got {getattr(self, name)}"
                )
        check_factor(self.gamma_old)
        check_factor(self.gamma_new)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> UpgradeConfig:
        """Inverse of `dataclasses.asdict`."""
        values = dict(fields)
        values["width"] = WidthConfig(**values["width"])
        values["deeper"] = DepthConfig(**values["deeper"])
        for name in ("gamma_old", "gamma_new"):
            if isinstance(values[name], Mapping):
                values[name] = Ramp(**values[name])
        return cls(**values)


def published(kind: Literal["same", "wide", "deep"], steps: int) -> UpgradeConfig:
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


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an upgrade did, for people and for a table."""

    overlap: Overlap | None  # None when the vocabulary stays
    old: ModelConfig
    new: ModelConfig
    old_entries: int  # entries in the group `OLD`
    new_entries: int

    def summary(self) -> dict[str, str | int | float]:
        """Sizes before and after, and the shares that are old, one number a name."""
        before, after = parameter_counts(self.old), parameter_counts(self.new)
        result: dict[str, str | int | float] = {
            "vocabulary": f"{self.old.vocab_size} -> {self.new.vocab_size}",
            "feed-forward": f"{self.old.d_ff} -> {self.new.d_ff}",
            "encoder layers": f"{self.old.encoder_layers} -> {self.new.encoder_layers}",
            "decoder layers": f"{self.old.decoder_layers} -> {self.new.decoder_layers}",
            "parameters": f"{before['total']:,} -> {after['total']:,}",
            "old parameters": self.old_entries,
            "new parameters": self.new_entries,
        }
        if self.overlap is not None:
            result |= {
                "pieces kept": len(self.overlap.kept),
                "pieces added": len(self.overlap.added),
                "pieces dropped": len(self.overlap.dropped),
                "share of pieces kept": self.overlap.share,
            }
        return result


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where training goes on from.

    Attributes
    ----------
    groups
        Group (`OLD` or `NEW`) of each entry of each parameter, for `scale_updates`.
    optimiser
        Index of a parameter -> its state, as `Checkpoint.optimiser`; empty after a reset.
    steps
        Updates that the old model had: where the learning-rate schedule goes on, if not reset.
    """

    model: Transformer
    config: UpgradeConfig
    groups: dict[str, Tensor]
    optimiser: dict[int, dict[str, Tensor]]
    steps: int

    def prepare(
        self,
        model: Transformer,
        optimiser: torch.optim.Optimizer,
        *,
        factors: Sequence[Factor] | None = None,
    ) -> None:
        """Give a fresh `optimiser` of `model` the carried state and the learning-rate scaling.

        Parameters
        ----------
        factors
            Factor of each group, where `groups` are those of `fisher_groups`; else the
            configuration's, of `NEW` and `OLD`.

        Raises
        ------
        InputError
            When the state is another optimiser's.
        """
        if factors is None:
            factors = (self.config.gamma_new, self.config.gamma_old)
        if any(factor != 1.0 for factor in factors):
            scale_updates(optimiser, dict(model.named_parameters()), self.groups, factors)
        if not self.optimiser:
            return
        adam = any("exp_avg" in state for state in self.optimiser.values())
        if adam != isinstance(optimiser, torch.optim.AdamW):
            raise InputError(
                f"the old model's optimiser state is {'AdamW' if adam else 'Adafactor'}'s, not "
                f"{type(optimiser).__name__}'s: train with the same optimiser, or reset its state"
            )
        # Loading does not copy, and training would write into what is kept here.
        state = {i: {key: t.clone() for key, t in s.items()} for i, s in self.optimiser.items()}
        settings = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": settings})


@dataclass(frozen=True, kw_only=True)
class Upgraded(Start):
    """A start, and what was done to make it."""

    report: Report


def save_upgraded(path: Path, upgraded: Start) -> None:
    """Write a start, whole or not at all; `load_checkpoint` reads its model too."""
    tensors = {f"model.{name}": t for name, t in upgraded.model.state_dict().items()}
    tensors |= {f"group.{name}": t for name, t in upgraded.groups.items()}
    for index, state in upgraded.optimiser.items():
        tensors |= {f"optimiser.{index}.{key}": t for key, t in state.items()}
    metadata = {
        "model": json.dumps(asdict(upgraded.model.config)),
        "progress": json.dumps(asdict(Progress())),
        "identity": "",
        "upgrade": json.dumps({"config": asdict(upgraded.config), "steps": upgraded.steps}),
    }
    write_bytes(path, save({k: t.contiguous() for k, t in tensors.items()}, metadata))


def load_upgraded(path: Path | str) -> Start:
    """Read what `save_upgraded` wrote.

    Raises
    ------
    InputError
        When the file is missing, damaged, or a checkpoint that is no upgrade.
    """
    checkpoint = load_checkpoint(path)
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata()
        groups = {
            name.removeprefix("group."): file.get_tensor(name)
            for name in file.keys()  # noqa: SIM118
            if name.startswith("group.")
        }
    if "upgrade" not in metadata:
        raise InputError(f"{path} is a checkpoint, but not one of `mnmt-repro upgrade`")
    told = json.loads(metadata["upgrade"])
    return Start(
        model=checkpoint.model(),
        config=UpgradeConfig.from_dict(told["config"]),
        groups=groups,
        optimiser=checkpoint.optimiser,
        steps=told["steps"],
    )


def upgrade(
    checkpoint: Checkpoint,
    old_vocabulary: Vocabulary | None,
    new_vocabulary: Vocabulary | None,
    config: UpgradeConfig,
    *,
    pieces: PieceMap | None = None,
) -> Upgraded:
    """Build the upgraded model.

    The vocabulary first, then the width of every feed-forward layer, then new layers (the average
    is of widened layers). The same input gives the same model.

    Parameters
    ----------
    old_vocabulary, new_vocabulary
        Both None: the vocabulary stays.
    pieces
        Which new id is which old one, instead of two vocabularies (generated languages).

    Raises
    ------
    InputError
        When anything about it is impossible; the message says what.
    """
    pieces = _pieces(old_vocabulary, new_vocabulary, pieces)
    _check(checkpoint, config, pieces)
    old = checkpoint.config
    new = replace(
        old,
        vocab_size=old.vocab_size if pieces is None else len(pieces.new),
        d_ff=round(old.d_ff * config.wider),
        encoder_layers=old.encoder_layers + config.deeper.encoder,
        decoder_layers=old.decoder_layers + config.deeper.decoder,
    )
    model = Transformer(new, seed=config.seed)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights, origins = _build(checkpoint.weights, fresh, old, config, pieces)
    used = {
        name: fresh[name]
        if config.keep == "nothing" or (config.keep == "body" and name in TABLES)
        else weights[name]
        for name in fresh
    }
    model.load_state_dict(used)

    groups = {name: _group(origin, fresh[name].ndim) for name, origin in origins.items()}
    old_entries = sum(
        int((group == OLD).expand(fresh[name].shape).sum()) for name, group in groups.items()
    )
    total = sum(tensor.numel() for tensor in fresh.values())
    state: dict[int, dict[str, Tensor]] = {}
    if config.optimiser == "carried" and config.keep != "nothing":
        before = list(Transformer(old).state_dict())
        for index, name in enumerate(fresh):
            origin = origins[name]
            if origin.source is None or (config.keep == "body" and name in TABLES):
                continue
            carried = checkpoint.optimiser.get(before.index(origin.source))
            if carried:
                state[index] = {key: _carry(key, t, origin) for key, t in carried.items()}
    report = Report(
        overlap=None if pieces is None else pieces.overlap,
        old=old,
        new=new,
        old_entries=old_entries,
        new_entries=total - old_entries,
    )
    return Upgraded(
        model=model,
        config=config,
        report=report,
        groups=groups,
        optimiser=state,
        steps=checkpoint.progress.step,
    )


def _pieces(
    old: Vocabulary | None, new: Vocabulary | None, pieces: PieceMap | None
) -> PieceMap | None:
    if pieces is not None and (old is not None or new is not None):
        raise InputError("give two vocabularies or a map of their pieces, not both")
    if (old is None) != (new is None):
        raise InputError("give the old vocabulary and the new one, or neither")
    if old is not None and new is not None:
        return match_pieces(old, new)
    return pieces


def _check(checkpoint: Checkpoint, config: UpgradeConfig, pieces: PieceMap | None) -> None:
    """Refuse whatever cannot be done, before anything is."""
    old = checkpoint.config
    expected = {name: tuple(t.shape) for name, t in Transformer(old).state_dict().items()}
    found = {name: tuple(t.shape) for name, t in checkpoint.weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise InputError(
                f"the checkpoint's weights are not of the shape it declares: {name} is "
                f"{found.get(name, 'missing')}, should be {expected.get(name, 'absent')}"
            )
    if pieces is not None:
        if len(pieces.old) != old.vocab_size:
            raise InputError(
                f"the old vocabulary has {len(pieces.old)} pieces, the checkpoint's table "
                f"{old.vocab_size} rows; give the vocabulary that the checkpoint was trained with"
            )
        first = tuple(Piece(kind="special", text=role) for role in ROLES)
        if pieces.new[: len(first)] != first:
            raise InputError(
                f"the new vocabulary must begin with {', '.join(SPECIAL)}, in this order; "
                "train one with `mnmt-repro data vocabulary`"
            )
    wide = old.d_ff * config.wider
    if abs(wide - round(wide)) > 1e-6:
        raise InputError(
            f"wider = {config.wider} makes {wide:g} units of {old.d_ff}, which is no whole number"
        )
    check_width(old.d_ff, round(wide), config.width, gated=old.feed_forward == "gated-gelu")
    wants_state = config.optimiser == "carried" and config.keep != "nothing"
    if wants_state and not checkpoint.optimiser:
        raise InputError(
            "the checkpoint holds no optimiser state to carry (best.safetensors never does): "
            "take last.safetensors, or reset the optimiser"
        )


def _build(
    weights: Mapping[str, Tensor],
    fresh: Mapping[str, Tensor],
    old: ModelConfig,
    config: UpgradeConfig,
    pieces: PieceMap | None,
) -> tuple[dict[str, Tensor], dict[str, Origin]]:
    # Noise is drawn apart from the new model's weights, which `seed` itself decides.
    generator = torch.Generator().manual_seed(config.seed + 2**32)
    result: dict[str, Tensor] = {}
    origins: dict[str, Origin] = {}
    for stack, count, added, at in (
        ("encoder", old.encoder_layers, config.deeper.encoder, config.deeper.encoder_at),
        ("decoder", old.decoder_layers, config.deeper.decoder, config.deeper.decoder_at),
    ):
        plan = place_layers(count, added, at)
        fresh_layers = [_layer(fresh, stack, place) for place in range(len(plan))]
        layers, units = [], torch.empty(0)
        for index, place in enumerate(i for i, layer in enumerate(plan) if layer is not None):
            layer, units = _widen_layer(
                _layer(weights, stack, index), fresh_layers[place], config.width, generator
            )
            layers.append(layer)
        for place, index_or_new in enumerate(plan):
            if index_or_new is None:
                tensors = new_layer(layers, fresh_layers[place], plan, place, config.deeper.init)
            else:
                tensors = layers[index_or_new]
            for name, tensor in tensors.items():
                full = f"{stack}.{place}.{name}"
                result[full] = tensor
                if index_or_new is None:
                    origins[full] = Origin(source=None)
                    continue
                axis = UNIT_AXIS.get(name.removeprefix("feed_forward."))
                partly = name.startswith("feed_forward.") and axis is not None
                origins[full] = Origin(
                    source=f"{stack}.{index_or_new}.{name}",
                    axis=axis or 0,
                    units=units if partly and bool((units < 0).any()) else None,
                )
    for name in fresh:
        if name in result:
            continue
        if name in TABLES and pieces is not None:
            result[name] = map_rows(weights[name], fresh[name], pieces, config.embeddings)
            origins[name] = Origin(source=name, units=torch.from_numpy(pieces.source))
        else:
            result[name] = weights[name].clone()
            origins[name] = Origin(source=name)
    return result, origins


def _layer(weights: Mapping[str, Tensor], stack: str, index: int) -> dict[str, Tensor]:
    prefix = f"{stack}.{index}."
    return {k.removeprefix(prefix): t for k, t in weights.items() if k.startswith(prefix)}


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


def _group(origin: Origin, ndim: int) -> Tensor:
    """Group of each entry, in a shape that broadcasts to the parameter's."""
    if origin.source is None:
        return torch.full((1,) * ndim, NEW, dtype=torch.uint8)
    if origin.units is None:
        return torch.full((1,) * ndim, OLD, dtype=torch.uint8)
    shape = [-1 if i == origin.axis else 1 for i in range(ndim)]
    return torch.where(origin.units >= 0, OLD, NEW).to(torch.uint8).view(shape)


def _carry(key: str, state: Tensor, origin: Origin) -> Tensor:
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
