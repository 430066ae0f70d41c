"""What training on did to an upgraded model: forgetting, distances, Fisher information.

Section 5.2 with Figures 3 and 6 (left), Appendix C with Figure 5, Appendix D with Figure 6 (right).
Tables are lists of rows, ready for `pandas.DataFrame`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.errors import InputError
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.scoring import cross_entropy
from mnmt_repro.upgrading.learning_rate import NEW, Groups, check_rising
from mnmt_repro.upgrading.vocabulary import PieceMap
from mnmt_repro.upgrading.width import UNIT_AXIS

Row = dict[str, str | int | float]
_MATRIX = re.compile(r"(encoder|decoder)\.(\d+)\.feed_forward\.(\w+)\.weight")


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
        Tensors of the upgraded model before it was trained on; M is their old half.
    after
        Those of the trained model, M1 beside M2.

    Returns
    -------
    One row for each (stack, layer, matrix): `old_half` ||M1 - M||, `new_half` ||M2 - M||,
    `between` ||M1 - M2|| and `norm` ||M||.

    Raises
    ------
    InputError
        When layers or shapes differ, or a matrix cannot be halved.
    """
    rows: list[Row] = []
    for name, wide in after.items():
        if not (place := _MATRIX.fullmatch(name)):
            continue
        stack, layer, matrix = place.groups()
        if name not in original:
            raise InputError(f"the original has no {name}: both need the same layers")
        axis = UNIT_AXIS[f"{matrix}.weight"]
        units = wide.shape[axis]
        if original[name].shape != wide.shape or units % 2:
            raise InputError(
                f"{name} is {tuple(wide.shape)}, the original {tuple(original[name].shape)}: "
                "halves are there only where the width was doubled"
            )
        first, _ = original[name].double().split(units // 2, axis)
        one, two = wide.double().split(units // 2, axis)
        rows.append(
            {
                "stack": stack,
                "layer": int(layer),
                "matrix": matrix,
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
    fisher: Mapping[str, Tensor], edges: Sequence[float], groups: Groups
) -> list[Row]:
    """Figure 6 (right): how many old parameters have how much Fisher information.

    Parameters
    ----------
    edges
        Rising; bin i holds edges[i] <= information < edges[i + 1]. One more bin lies below the
        first edge (zeros too) and one from the last one up.
    groups
        Which entries are old, and so are counted.

    Returns
    -------
    One row for each bin: `low`, `high`, `count` and `share` of all old entries.

    Raises
    ------
    InputError
        When edges do not rise from above 0, or a parameter has no group.
    """
    check_rising(edges, "the edges")
    bounds = torch.tensor(edges, dtype=torch.float64)
    counts = torch.zeros(len(edges) + 1, dtype=torch.int64)
    for name, values in fisher.items():
        if name not in groups:
            raise InputError(f"there is no group of {name}")
        old = (groups[name].to(values.device) != NEW).expand(values.shape)
        bins = torch.bucketize(values[old].double().cpu(), bounds, right=True)
        counts += torch.bincount(bins, minlength=len(counts))
    total = max(1, int(counts.sum()))
    return [
        {"low": low, "high": high, "count": count, "share": count / total}
        for low, high, count in zip(
            [0.0, *edges], [*edges, float("inf")], counts.tolist(), strict=True
        )
    ]
