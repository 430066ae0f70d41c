"""Upgrade a model: a new vocabulary, wider and deeper, ready for training to go on.

Paper B, Section 2. Nothing is written here, and whatever cannot be done is refused before anything
is built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from mnmt_repro.architecture import ModelConfig, machine_memory, parameter_counts
from mnmt_repro.corpora.vocabulary import SPECIAL
from mnmt_repro.errors import InputError
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.training.checkpoint import Checkpoint, check_shapes
from mnmt_repro.upgrading.assemble import Origin, assemble, carry_state, group_of
from mnmt_repro.upgrading.config import UpgradeConfig
from mnmt_repro.upgrading.learning_rate import OLD
from mnmt_repro.upgrading.start import Start, is_adafactor
from mnmt_repro.upgrading.vocabulary import ROLES, Overlap, Piece, PieceMap
from mnmt_repro.upgrading.width import check_width, settle_normalisation

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
    _check(checkpoint, config, pieces)
    new = _shape(old, config, pieces)
    why = ""
    if new.d_ff != old.d_ff and config.width.init != "random" and config.keep != "nothing":
        gated = old.feed_forward == "gated-gelu"
        settled, why = settle_normalisation(config.width, config.wider, gated=gated)
        config = replace(config, width=replace(config.width, normalisation=settled))
    model = Transformer(new, seed=config.seed)
    made = model.state_dict()
    origins = assemble(checkpoint.weights, made, old, config, pieces)
    if config.keep == "body":  # tables without old values are new
        origins |= {name: Origin(source=None) for name in TABLES if name in origins}

    groups = {name: group_of(origin, made[name].ndim) for name, origin in origins.items()}
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


def _shape(old: ModelConfig, config: UpgradeConfig, pieces: PieceMap | None) -> ModelConfig:
    return config.shape(old, old.vocab_size if pieces is None else len(pieces.new))


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
            f"the upgraded model would have {total:.4g} parameters, and making it take some "
            f"{needed / 2**30:,.3g} GiB, where this machine has {memory / 2**30:,.3g} GiB of "
            "memory: make it less wide or deep"
            + (", or leave the optimiser's state behind (--optimiser reset)" if state else "")
        )


def _check(checkpoint: Checkpoint, config: UpgradeConfig, pieces: PieceMap | None) -> None:
    """Refuse whatever cannot be done, before anything is."""
    old = checkpoint.config
    if pieces is not None:
        if len(pieces.source) != len(pieces.new) or max(pieces.source) >= len(pieces.old):
            raise InputError(
                f"pieces: source has {len(pieces.source)} ids up to {max(pieces.source)}, for "
                f"{len(pieces.new)} new pieces of {len(pieces.old)} old ones"
            )
        if config.embeddings == "mean" and not pieces.splits and (pieces.source < 0).any():
            raise InputError(
                "embeddings = 'mean': what new pieces split into is not known here (`splits`); "
                "copy <unk>, or draw at random (--init unk, --init random)"
            )
        if len(pieces.old) != old.vocab_size:
            raise InputError(
                f"the old vocabulary has {len(pieces.old)} pieces, the checkpoint's table "
                f"{old.vocab_size} rows; give the vocabulary that the checkpoint was trained with"
            )
        first = tuple(Piece(kind="special", text=role) for role in ROLES)
        count = len(first) if first[-1] in pieces.new else len(first) - 1
        if pieces.new[:count] != first[:count]:
            raise InputError(
                f"the new vocabulary must begin with {', '.join(SPECIAL)}, in this order; "
                "train one with `mnmt-repro data vocabulary`, or put one of your own in that order "
                "with `mnmt-repro data adopt`"
            )
    wide = old.d_ff * config.wider
    if abs(wide - round(wide)) > 1e-6:
        raise InputError(
            f"wider = {config.wider} makes {wide:g} units of {old.d_ff}, which is no whole "
            f"number; {max(round(wide), old.d_ff) / old.d_ff} is near, and does"
        )
    wants_state = config.optimiser == "carried" and config.keep != "nothing"
    adamw = bool(checkpoint.optimiser) and not is_adafactor(checkpoint.optimiser)
    _check_memory(old, _shape(old, config, pieces), state=wants_state and adamw)
    check_width(old.d_ff, round(wide), config.width, gated=old.feed_forward == "gated-gelu")
    if wants_state and not checkpoint.optimiser:
        raise InputError(
            "the checkpoint holds no optimiser state to carry (best.safetensors never does): "
            "take last.safetensors, or reset the state (--optimiser reset)"
        )
    if config.schedule == "continued" and checkpoint.progress.behind is None:
        raise InputError(
            "the old model was trained at a constant rate, so that there is no schedule to go on "
            "with: reset it, or keep the rate constant (--schedule reset, --schedule constant)"
        )
    if wants_state and config.schedule != "continued" and is_adafactor(checkpoint.optimiser):
        raise InputError(
            f"schedule {config.schedule!r}: Adafactor counts the updates of each parameter, and "
            "takes no relative step above 1 / sqrt(count), so that its state holds the rate down; "
            "reset that, too (--optimiser reset)"
        )
