"""What training on did to an upgraded model: forgetting, distances, Fisher information.

Section 5.2 with Figures 3 and 6 (left), Appendix C with Figure 5, Appendix D with Figure 6 (right).
Tables are lists of rows, ready for `pandas.DataFrame`.
"""

from __future__ import annotations

import copy
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.scoring import cross_entropy
from mnmt_repro.upgrading.learning_rate import NEW, Groups
from mnmt_repro.upgrading.vocabulary import PieceMap
from mnmt_repro.upgrading.width import UNIT_AXIS

Row = dict[str, str | int | float]
_MATRIX = re.compile(r"(\w+\.\d+)\.feed_forward\.(\w+\.weight)")


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
    """
    count = old.config.vocab_size
    source = torch.arange(count) if pieces is None else torch.from_numpy(pieces.source)
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


def half_distances(
    original: Mapping[str, Tensor], after: Mapping[str, Tensor]
) -> dict[tuple[str, str], float]:
    """Figure 5: how far the halves of doubled feed-forward layers are from where they began.

    Parameters
    ----------
    original
        Tensors of the upgraded model before it was trained on; M is their old half.
    after
        Those of the trained model, M1 beside M2.

    Returns
    -------
    By layer, such as ``encoder.0``, and block, over all matrices of the layer: ``old`` ||M1 - M||,
    ``new`` ||M2 - M|| and ``between`` ||M1 - M2||.
    """
    squares: dict[tuple[str, str], float] = defaultdict(float)
    for name, wide in after.items():
        if place := _MATRIX.fullmatch(name):
            layer, part = place.groups()
            axis = UNIT_AXIS[part]
            start = original[name].double().chunk(2, axis)[0]
            one, two = wide.double().chunk(2, axis)
            gaps = {"old": one - start, "new": two - start, "between": one - two}
            for block, gap in gaps.items():
                squares[layer, block] += float(gap.square().sum())
    return {key: math.sqrt(total) for key, total in squares.items()}


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
    """
    bounds = [-math.inf, *edges, math.inf]
    counts = np.zeros(len(edges) + 1, dtype=int)
    for name, values in fisher.items():
        old = (groups[name].to(values.device) != NEW).expand(values.shape)
        counts += np.histogram(values[old].double().cpu(), bounds)[0]
    total = max(1, int(counts.sum()))
    return [
        {"low": low, "high": high, "count": count, "share": count / total}
        for low, high, count in zip([0.0, *edges], bounds[1:], counts.tolist(), strict=True)
    ]
