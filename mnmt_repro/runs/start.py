"""What a run begins with: random weights, an upgrade of its parent's, or a shorter run's.

An upgrade takes the parent's last weights, also where the parent keeps its best ones, beside which
there is no optimiser's state to carry on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.encoding import first_syllable
from mnmt_repro.corpora.vocabulary import SPECIAL, tag
from mnmt_repro.errors import InputError
from mnmt_repro.runs.data import RunData, run_vocabulary
from mnmt_repro.runs.order import is_trained, shorter_runs
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.checkpoint import copy_checkpoint, load_checkpoint
from mnmt_repro.training.config import LAST, LOG, STEM
from mnmt_repro.upgrading.config import FISHER_SENTENCES
from mnmt_repro.upgrading.learning_rate import OLD, Groups, diagonal_fisher, fisher_groups
from mnmt_repro.upgrading.recipe import Upgraded, upgrade
from mnmt_repro.upgrading.vocabulary import ROLES, Piece, PieceMap, match_meanings, match_pieces


def begin_from_shorter(spec: RunSpec, folder: Path, among: Iterable[RunSpec]) -> None:
    """Give a run that has not begun the checkpoint of a shorter one, where a neighbour holds it.

    The shorter run differs in nothing but its budget. Before the final decay, the learning rate of
    a step does not depend on the budget, and the stream of batches is a function of seed and
    position. So a run of 8M tokens is the same as one of 4M up to the step at which the shorter run
    begins to decay. Starting from the shorter run's checkpoint at that step (`STEM`; without a
    decay its last one) ends with the weights that training from the first step would give, bit for
    bit. Only the learning curve shows the difference: it also has the points of the shorter run.

    Parameters
    ----------
    folder
        The run's own; those of other runs lie beside it under their ids.
    among
        Runs of which a shorter one may lie there.
    """
    if (folder / LAST).exists():
        return
    for run in shorter_runs(spec, among):
        neighbour = folder.parent / run.run_id
        checkpoint = neighbour / (STEM if run.training.decay_share else LAST)
        if checkpoint.exists():
            folder.mkdir(parents=True, exist_ok=True)
            if (neighbour / LOG).exists():  # which training cuts to the points of the checkpoint
                (folder / LOG).write_bytes((neighbour / LOG).read_bytes())
            copy_checkpoint(checkpoint, folder / LAST, identity=spec.identity)
            return


def beginning(spec: RunSpec, folder: Path, data: RunData) -> Upgraded | None:
    """The upgraded model that `spec` begins with, the same at every call; None: random weights.

    Parameters
    ----------
    folder
        The run's own; its parent's lies beside it.

    Raises
    ------
    InputError
        When the parent is not trained, or the upgrade does not give the declared model.
    """
    if spec.upgrade is None:
        return None
    upgraded = upgrade_of(spec, folder.parent)
    share = spec.upgrade.fisher_share
    if share is None:
        return upgraded
    groups = most_informative(old_fisher(spec, upgraded, data), upgraded.groups, share)
    config = spec.upgrade.config
    # The old entries are split in two: those with less information learn at the full rate.
    return replace(upgraded, groups=groups, gammas=(config.gamma_new, 1.0, config.gamma_old))


def upgrade_of(spec: RunSpec, runs_folder: Path) -> Upgraded:
    """The upgraded model that `spec` begins with.

    Raises
    ------
    InputError
        As `beginning`.
    """
    assert spec.upgrade is not None
    parent = spec.upgrade.parent
    if not is_trained(parent, runs_folder):
        why = f"the run to upgrade ({parent.label}) is not trained to its end; `sweep` trains it"
        raise InputError(f"{runs_folder / parent.run_id}: {why}")
    if spec.conlang != parent.conlang:
        raise InputError(f"{spec.label}: a run on generated text keeps its parent's languages")
    checkpoint = load_checkpoint(runs_folder / parent.run_id / LAST)
    upgraded = upgrade(checkpoint, spec.upgrade.config, pieces=piece_map(spec))
    if upgraded.model.config != spec.model:
        made = upgraded.model.config
        raise InputError(f"{spec.label}: the upgrade makes {made}, declared is {spec.model}")
    return upgraded


def piece_map(spec: RunSpec) -> PieceMap | None:
    """Which of an upgraded run's pieces is which of its parent's; None where they stay."""
    assert spec.upgrade is not None
    parent = spec.upgrade.parent
    if spec.conlang is not None:
        return untrained_pieces(spec.conlang, parent.mixture.pairs, parent.model.vocab_size)
    old, new = run_vocabulary(parent), run_vocabulary(spec)
    if old.hash == new.hash:
        return None
    matched = match_pieces(old, new)
    spare = range(len(new), spec.model.vocab_size)
    unused = (Piece(kind="text", text=f"<unused {i}>") for i in spare)
    source = np.append(matched.source, np.full(len(spare), -1))
    return replace(matched, new=(*matched.new, *unused), source=source)


def untrained_pieces(config: ConlangConfig, pairs: Sequence[str], size: int) -> PieceMap | None:
    """Pieces of generated languages that a model of `pairs` has never met, as if they were new.

    A conlang's table has a row for each piece of all its languages from the start. Those of the
    languages that `pairs` leave out, the syllables that no other one writes, count as added, so
    that they begin and learn as the new pieces of a new vocabulary do.

    Parameters
    ----------
    size
        Rows of the table; those beyond the pieces are never used.

    Returns
    -------
    None where there are no such pieces.
    """
    conlang, first = Conlang(config), first_syllable(config)
    met = {language for pair in pairs for language in config.split_pair(pair)}
    unmet = [name for name in config.languages if name not in met]
    old = {int(i) for name in met for i in np.unique(conlang.spellings[name])}
    new = {int(i) for name in unmet for i in np.unique(conlang.spellings[name])} - old
    added = {first + i for i in new}
    added |= {len(SPECIAL) + config.languages.index(name) for name in unmet}
    if not added:
        return None
    special = [Piece(kind="special", text=role) for role in ROLES]
    tags = [Piece(kind="tag", text=tag(name)) for name in config.languages]
    text = [Piece(kind="text", text=piece) for piece in conlang.pieces]
    pieces = [*special, *tags, *text]
    pieces += [Piece(kind="text", text=f"<unused {i}>") for i in range(len(pieces), size)]
    before = [
        Piece(kind="text", text=f"unmet {i}") if i in added else piece
        for i, piece in enumerate(pieces)
    ]
    return match_meanings(before, pieces)


def old_fisher(spec: RunSpec, upgraded: Upgraded, data: RunData) -> dict[str, Tensor]:
    """Fisher information of an upgraded model, before training, on the parent's pairs."""
    assert spec.upgrade is not None
    texts = (data.training.validation[pair] for pair in spec.upgrade.parent.mixture.pairs)
    return diagonal_fisher(upgraded.model, fisher_sentences(texts))


def fisher_sentences(texts: Iterable[EncodedPair]) -> Iterator[tuple[Tensor, Tensor]]:
    """The first sentences of each text, as `upgrading.learning_rate.diagonal_fisher` takes them."""
    for text in texts:
        for row in range(min(FISHER_SENTENCES, text.size)):
            source, target = text.take(np.array([row]))
            yield torch.from_numpy(source.flat).long(), torch.from_numpy(target.flat).long()


def most_informative(fisher: dict[str, Tensor], groups: Groups, share: float) -> dict[str, Tensor]:
    """`fisher_groups` at the threshold that this share of all old entries exceeds.

    Examples
    --------
    >>> fisher = {"w": torch.tensor([1.0, 4.0, 2.0, 3.0])}
    >>> groups = {"w": torch.tensor([OLD, OLD, OLD, 0], dtype=torch.uint8)}
    >>> most_informative(fisher, groups, 1 / 3)["w"]
    tensor([1, 2, 1, 0], dtype=torch.uint8)
    """
    return fisher_groups(fisher, groups, (fisher_threshold(fisher, groups, share),))


def fisher_threshold(fisher: dict[str, Tensor], groups: Groups, share: float) -> float:
    """The information that this share of all old entries exceeds."""
    old = torch.cat(
        [fisher[name][(group == OLD).expand(fisher[name].shape)] for name, group in groups.items()]
    )
    above = max(1, round(share * old.numel()))
    rank = max(old.numel() - above, 1)
    return max(float(old.kthvalue(rank).values), torch.finfo(old.dtype).tiny)
