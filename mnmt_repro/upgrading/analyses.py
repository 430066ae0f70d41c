"""What training on did to an upgraded model: forgetting, distances, Fisher information.

Section 5.2 with Figures 3 and 6 (left), Appendix C with Figure 5, Appendix D with Figure 6 (right).
Tables are lists of rows, ready for `pandas.DataFrame`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.scoring import cross_entropy
from mnmt_repro.upgrading.assemble import TABLES
from mnmt_repro.upgrading.learning_rate import NEW, Groups
from mnmt_repro.upgrading.vocabulary import PieceMap
from mnmt_repro.upgrading.width import UNIT_AXIS

Row = dict[str, str | int | float | None]


def substitute_embeddings(
    old: Transformer,
    new: Transformer,
    pieces: PieceMap | None = None,
) -> Transformer:
    """Copy the old model, with the new one's rows for every piece that both vocabularies have.

    The paper's probe of forgetting (Section 5.2), on the old languages.

    Parameters
    ----------
    pieces
        As of the upgrade; None where the vocabulary stayed.

    Raises
    ------
    InputError
        When the tables' shapes do not fit.
    """
    if pieces is None:
        count = old.config.vocab_size
        source = torch.arange(count)
        sizes = (count, count)
    else:
        source = torch.from_numpy(pieces.source)
        sizes = (len(pieces.old), len(pieces.new))
    if (old.config.vocab_size, new.config.vocab_size) != sizes:
        raise InputError(
            f"the models have {old.config.vocab_size} and {new.config.vocab_size} pieces, "
            f"their vocabularies {sizes[0]} and {sizes[1]}"
        )
    if old.config.d_model != new.config.d_model:
        raise InputError(
            f"embeddings of width {new.config.d_model} do not fit a model of {old.config.d_model}"
        )
    new_rows = torch.nonzero(source >= 0).flatten()
    old_rows = source[new_rows]
    result = copy.deepcopy(old)
    donor, weights = new.state_dict(), result.state_dict()  # the second shares memory
    with torch.no_grad():
        for table in TABLES:  # tied models have but the first
            if table in weights and table in donor:
                rows = donor[table][new_rows.to(donor[table].device)]
                weights[table][old_rows.to(weights[table].device)] = rows.to(weights[table])
    return result


def loss_rise(
    before: Transformer, after: Transformer, text: Mapping[str, EncodedPair]
) -> dict[str, float]:
    """By how many nats a target token each pair's cross-entropy is higher under `after`."""
    return {
        pair: cross_entropy(after, sentences) - cross_entropy(before, sentences)
        for pair, sentences in text.items()
    }


def half_distances(original: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> list[Row]:
    """Figure 5: how far the halves of each doubled feed-forward matrix are from where they began.

    Parameters
    ----------
    original
        The old model's tensors, M; or those of the upgraded model before it was trained on, whose
        old half is then M (normalising has scaled it).
    after
        The wide model's, M1 beside M2.

    Returns
    -------
    One row for each (stack, layer, matrix): `old_half` ||M1 - M||, `new_half` ||M2 - M||,
    `between` ||M1 - M2|| and `norm` ||M||.

    Raises
    ------
    InputError
        When layers differ, or a matrix is neither as wide as the original nor twice as wide.
    """
    rows: list[Row] = []
    for name, wide in after.items():
        stack, layer, block = _place(name)
        matrix = name.rsplit("feed_forward.", 1)[-1]
        if block != "feed_forward" or wide.ndim != 2:
            continue
        if name not in original:
            raise InputError(f"the original has no {name}: both need the same layers")
        axis = UNIT_AXIS[matrix]
        units, first = wide.shape[axis], original[name].double()
        if first.shape == wide.shape and units % 2 == 0:
            first = first.narrow(axis, 0, units // 2)
        if first.shape[axis] * 2 != units or first.shape[1 - axis] != wide.shape[1 - axis]:
            raise InputError(
                f"{name} is {tuple(wide.shape)}, the original {tuple(original[name].shape)}: "
                "halves are there only where the width was doubled"
            )
        one, two = wide.double().split(units // 2, axis)
        rows.append(
            {
                "stack": stack,
                "layer": layer,
                "matrix": matrix.removesuffix(".weight"),
                "old_half": float((one - first).norm()),
                "new_half": float((two - first).norm()),
                "between": float((one - two).norm()),
                "norm": float(first.norm()),
            }
        )
    if not rows:
        raise InputError("there is no feed-forward matrix to compare")
    return rows


def fisher_histogram(
    fisher: Mapping[str, Tensor], edges: Sequence[float], groups: Groups | None = None
) -> list[Row]:
    """Figure 6 (right): how many parameters have how much Fisher information.

    Parameters
    ----------
    edges
        Rising; bin i holds edges[i] <= information < edges[i + 1]. One more bin lies below the
        first edge (zeros too) and one from the last one up.
    groups
        Old and new entries are then counted apart, otherwise as part `all`.

    Returns
    -------
    One row for each part and bin: `low`, `high`, `count` and `share` of the part.

    Raises
    ------
    InputError
        When edges do not rise from above 0.
    """
    if not edges or not all(a < b for a, b in zip([0.0, *edges], edges, strict=False)):
        raise InputError(f"the edges must rise from above 0, got {list(edges)}")
    bounds = torch.tensor(edges, dtype=torch.float64)
    counts: dict[str, Tensor] = {}
    for name, values in fisher.items():
        for part, chosen in _parts(name, values, groups):
            bins = torch.bucketize(values[chosen].double().cpu(), bounds, right=True)
            here = torch.bincount(bins, minlength=len(edges) + 1)
            counts[part] = counts.get(part, torch.zeros_like(here)) + here
    lows, highs = [0.0, *edges], [*edges, float("inf")]
    return [
        {"part": part, "low": low, "high": high, "count": n, "share": n / int(count.sum())}
        for part, count in counts.items()
        for low, high, n in zip(lows, highs, count.tolist(), strict=True)
    ]


def _place(name: str) -> tuple[str, int | None, str]:
    """Stack, layer and block of a parameter.

    >>> _place("encoder.2.feed_forward.up.weight"), _place("decoder.0.cross_norm.weight")
    (('encoder', 2, 'feed_forward'), ('decoder', 0, 'cross'))
    >>> _place("decoder_positions.table.weight"), _place("output.weight")
    (('decoder', None, 'positions'), ('tables', None, 'output'))
    """
    first, *rest = name.split(".")
    if first in ("encoder", "decoder"):
        return first, int(rest[0]), rest[1].removesuffix("_norm")
    stack, _, block = first.partition("_")
    return (stack, None, block) if block else ("tables", None, first)


def _parts(name: str, values: Tensor, groups: Groups | None) -> list[tuple[str, Tensor]]:
    """Which entries are old and which new, as masks; parts without any are left out."""
    if groups is None:
        return [("all", torch.ones_like(values, dtype=torch.bool))]
    if name not in groups:
        raise InputError(f"there is no group of {name}")
    new = (groups[name].to(values.device) == NEW).expand(values.shape)
    return [(part, mask) for part, mask in (("old", ~new), ("new", new)) if bool(mask.any())]
