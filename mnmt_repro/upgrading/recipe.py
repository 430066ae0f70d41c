"""Upgrade a model: a new vocabulary, wider and deeper, ready for training to go on.

Paper B, Section 2. Nothing is written here, and whatever cannot be done is refused before anything
is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig, machine_memory, parameter_counts
from mnmt_repro.corpora.vocabulary import SPECIAL
from mnmt_repro.errors import InputError
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.training.checkpoint import Checkpoint, check_shapes
from mnmt_repro.upgrading.config import UpgradeConfig
from mnmt_repro.upgrading.depth import fill_new_layer
from mnmt_repro.upgrading.learning_rate import NEW, OLD
from mnmt_repro.upgrading.places import place_layers
from mnmt_repro.upgrading.start import Start, is_adafactor
from mnmt_repro.upgrading.vocabulary import ROLES, Overlap, Piece, PieceMap, map_rows
from mnmt_repro.upgrading.width import UNIT_AXIS, check_width, settle_normalisation, widen

OVERHEAD = 1.2
"""Peak memory of an upgrade in sizes of the new model; see `benchmarks/upgrade_memory.py`."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an upgrade did, for people and for a table."""

    overlap: Overlap | None  # None when the vocabulary stays
    old: ModelConfig
    new: ModelConfig
    old_entries: int  # entries in the group `OLD`
    new_entries: int
    normalisation: str  # why widened matrices are scaled back as they are; empty where none is

    def facts(self) -> dict[str, dict[str, int | float]]:
        """Sizes of the old and the new model, entries in either group, and pieces kept or not."""
        facts: dict[str, dict[str, int | float]] = {}
        for name, config in (("old", self.old), ("new", self.new)):
            facts[name] = {
                "vocabulary": config.vocab_size,
                "feed_forward": config.d_ff,
                "encoder_layers": config.encoder_layers,
                "decoder_layers": config.decoder_layers,
                "parameters": parameter_counts(config)["total"],
            }
        facts["entries"] = {"old": self.old_entries, "new": self.new_entries}
        if self.overlap is not None:
            facts["pieces"] = {
                "kept": len(self.overlap.kept),
                "added": len(self.overlap.added),
                "dropped": len(self.overlap.dropped),
                "share_kept": self.overlap.share,
            }
        return facts


@dataclass(frozen=True, kw_only=True)
class Upgraded(Start):
    """A start, and what was done to make it."""

    report: Report


def upgrade(
    checkpoint: Checkpoint,
    config: UpgradeConfig,
    *,
    pieces: PieceMap | None = None,
) -> Upgraded:
    """Build the upgraded model.

    The vocabulary first, then the width of every feed-forward layer, then new layers (the average
    is of widened layers). The same input gives the same model.

    Parameters
    ----------
    pieces
        Which new id is which row of the checkpoint's tables, such as `vocabulary.match_pieces` of
        two vocabularies, or `vocabulary.match_meanings` for a model of another program. Without
        it the vocabulary stays. One that was taken over with `mnmt-repro data adopt` since has
        other ids than the tables have rows.

    Raises
    ------
    InputError
        When anything about it is impossible; the message says what.
    """
    old = checkpoint.config
    before = list(check_shapes(old, checkpoint.weights, "the checkpoint"))
    new = config.shape(old, old.vocab_size if pieces is None else len(pieces.new))
    _check(checkpoint, config, pieces, new)
    why = ""
    if new.d_ff != old.d_ff and config.width.init != "random" and config.keep != "nothing":
        gated = old.feed_forward == "gated-gelu"
        settled, why = settle_normalisation(config.width, config.wider, gated=gated)
        config = replace(config, width=replace(config.width, normalisation=settled))
    model = Transformer(new, seed=config.seed)
    made = model.state_dict()
    origins = _assemble(checkpoint.weights, made, old, config, pieces)
    if config.keep == "body":  # tables without old values are new
        origins |= {name: _Origin(source=None) for name in TABLES if name in origins}

    groups = {name: _group_of(origin, made[name].ndim) for name, origin in origins.items()}
    old_entries = sum(
        int((group == OLD).sum()) * (made[name].numel() // group.numel())
        for name, group in groups.items()
    )
    total = sum(tensor.numel() for tensor in made.values())
    state: dict[int, dict[str, Tensor]] = {}
    if config.optimiser == "carried" and config.keep != "nothing":
        for index, name in enumerate(made):
            origin = origins[name]
            if origin.source is None:
                continue
            carried = checkpoint.optimiser.get(before.index(origin.source))
            if carried:
                state[index] = {key: carry_state(key, t, origin) for key, t in carried.items()}
    report = Report(
        overlap=None if pieces is None else pieces.overlap,
        old=old,
        new=new,
        old_entries=old_entries,
        new_entries=total - old_entries,
        normalisation=why,
    )
    return Upgraded(
        model=model,
        config=config,
        report=report,
        groups=groups,
        optimiser=state,
        steps=(checkpoint.progress.behind or 0) + checkpoint.progress.step,
    )


def _check_memory(old: ModelConfig, new: ModelConfig, *, state: bool) -> None:
    """Refuse what would take more than this machine's memory to make and to write.

    The new model is made in place, a layer at a time, from old weights that are mapped from files.
    That takes `OVERHEAD` times its size. AdamW's state, where it is carried, is two numbers a
    parameter of the old model and of the new one.
    """
    before, total = (parameter_counts(config)["total"] for config in (old, new))
    needed = 4 * (OVERHEAD * total + (2 * (before + total) if state else 0))
    memory = machine_memory()
    if needed > memory:
        raise InputError(
            f"making a model of {total:.4g} parameters takes some {needed / 2**30:,.3g} GiB, and "
            f"this machine has {memory / 2**30:,.3g} GiB: make it less wide or deep"
            + (", or leave the optimiser's state behind (--optimiser reset)" if state else "")
        )


def _check(
    checkpoint: Checkpoint, config: UpgradeConfig, pieces: PieceMap | None, new: ModelConfig
) -> None:
    """Refuse whatever cannot be done, before anything is."""
    old = checkpoint.config
    if pieces is not None:
        if config.embeddings == "mean" and not pieces.splits and (pieces.source < 0).any():
            raise InputError(
                "embeddings = 'mean': what new pieces split into is not known here (`splits`); "
                "copy <unk>, or draw at random (--init unk, --init random)"
            )
        if len(pieces.old) != old.vocab_size:
            raise InputError(
                f"the old vocabulary has {len(pieces.old)} pieces, and the table of the checkpoint "
                f"{old.vocab_size} rows; give the vocabulary that it was trained with"
            )
        first = tuple(Piece(kind="special", text=role) for role in ROLES)
        count = len(first) if first[-1] in pieces.new else len(first) - 1
        if pieces.new[:count] != first[:count]:
            raise InputError(
                f"the new vocabulary must begin with {', '.join(SPECIAL)}, in this order; "
                "`mnmt-repro data adopt` puts one of your own in that order"
            )
    wide = old.d_ff * config.wider
    if abs(wide - round(wide)) > 1e-6:
        raise InputError(
            f"wider = {config.wider} makes {wide:g} units of {old.d_ff}, which is no whole "
            f"number; {max(round(wide), old.d_ff) / old.d_ff} is near, and does"
        )
    wants_state = config.optimiser == "carried" and config.keep != "nothing"
    adamw = bool(checkpoint.optimiser) and not is_adafactor(checkpoint.optimiser)
    _check_memory(old, new, state=wants_state and adamw)
    check_width(old.d_ff, new.d_ff, config.width, gated=old.feed_forward == "gated-gelu")
    if wants_state and not checkpoint.optimiser:
        raise InputError(
            "the checkpoint holds no optimiser state to carry (best.safetensors never does): "
            "take last.safetensors, or reset the state (--optimiser reset)"
        )
    if config.schedule == "continued" and checkpoint.progress.behind is None:
        raise InputError(
            "the old model's rate was constant: take --schedule reset or --schedule constant"
        )
    if wants_state and config.schedule != "continued" and is_adafactor(checkpoint.optimiser):
        raise InputError(
            f"schedule {config.schedule!r}: Adafactor takes no relative step above 1 / "
            "sqrt(updates), so its state holds the rate down; reset it, too (--optimiser reset)"
        )


@dataclass(frozen=True, kw_only=True)
class _Origin:
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


def _assemble(
    weights: Mapping[str, Tensor],
    made: Mapping[str, Tensor],
    old: ModelConfig,
    config: UpgradeConfig,
    pieces: PieceMap | None,
) -> dict[str, _Origin]:
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
    origins: dict[str, _Origin] = {}
    for stack, count, added, at in (
        ("encoder", old.encoder_layers, config.deeper.encoder, config.deeper.encoder_at),
        ("decoder", old.decoder_layers, config.deeper.decoder, config.deeper.decoder_at),
    ):
        plan = place_layers(count, added, at)
        layers = [_below(made, f"{stack}.{place}.") for place in range(len(plan))]
        for place, index in enumerate(plan):
            if index is None:
                continue
            layer = _below(weights, f"{stack}.{index}.")
            wide, units = widen(
                _below(layer, "feed_forward."), _below(layers[place], "feed_forward."),
                config.width, generator,
            )  # fmt: skip
            layer |= {f"feed_forward.{name}": tensor for name, tensor in wide.items()}
            for name, tensor in layer.items():
                full = f"{stack}.{place}.{name}"
                if full in kept:
                    made[full].copy_(tensor)
                axis = UNIT_AXIS.get(name.removeprefix("feed_forward."))
                partly = name.startswith("feed_forward.") and axis is not None
                origins[full] = _Origin(
                    source=f"{stack}.{index}.{name}",
                    axis=axis or 0,
                    units=units if partly and bool((units < 0).any()) else None,
                )
        for place, index in enumerate(plan):
            if index is not None:
                continue
            if config.keep != "nothing":
                fill_new_layer(layers, plan, place, config.deeper.init)
            origins |= {f"{stack}.{place}.{name}": _Origin(source=None) for name in layers[place]}
    for name in made:
        if name in origins:
            continue
        if name in TABLES and pieces is not None:
            if name in kept:
                map_rows(weights[name], made[name], pieces, config.embeddings)
            origins[name] = _Origin(source=name, units=torch.from_numpy(pieces.source))
        else:
            if name in kept:
                made[name].copy_(weights[name])
            origins[name] = _Origin(source=name)
    return origins


def _below(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): weights[k] for k in weights if k.startswith(prefix)}


def _group_of(origin: _Origin, ndim: int) -> Tensor:
    """Group of each entry, in a shape that broadcasts to the parameter's."""
    if origin.source is None:
        return torch.full((1,) * ndim, NEW, dtype=torch.uint8)
    if origin.units is None:
        return torch.full((1,) * ndim, OLD, dtype=torch.uint8)
    shape = [-1 if i == origin.axis else 1 for i in range(ndim)]
    return torch.where(origin.units >= 0, OLD, NEW).to(torch.uint8).view(shape)


def carry_state(key: str, state: Tensor, origin: _Origin) -> Tensor:
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
