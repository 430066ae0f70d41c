"""What training on did to an upgraded model: forgetting, distances, Fisher information.

Section 5.2 with Figures 3 and 6 (left), Appendix C with Figure 5, Appendix D with Figure 6 (right).
Tables are lists of rows, ready for `pandas.DataFrame`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Literal

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
    *,
    into: Literal["old", "new"] = "old",
    tables: Sequence[str] = TABLES,
) -> Transformer:
    """Copy one model, with the other's rows for every piece that both vocabularies have.

    `into="old"` is the paper's probe of forgetting (Section 5.2): the old model, on the old
    languages, with the embeddings that training on has made of its own.

    Parameters
    ----------
    pieces
        As of the upgrade; None where the vocabulary stayed.
    tables
        Which tables; a model whose output is tied to its input has but `embedding.weight`.

    Raises
    ------
    InputError
        When the tables' shapes do not fit, or a table is unknown.
    """
    for table in tables:
        if table not in TABLES:
            raise InputError(f"no table {table}: there are {', '.join(TABLES)}")
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
    result = copy.deepcopy(old if into == "old" else new)
    donor = (new if into == "old" else old).state_dict()
    weights = result.state_dict()  # shares memory with the model
    to, of = (old_rows, new_rows) if into == "old" else (new_rows, old_rows)
    with torch.no_grad():
        for table in tables:
            if table in weights and table in donor:
                rows = donor[table][of.to(donor[table].device)]
                weights[table][to.to(weights[table].device)] = rows.to(weights[table])
    return result


def loss_rise(
    before: Transformer, after: Transformer, text: Mapping[str, EncodedPair]
) -> dict[str, float]:
    """By how many nats a target token each pair's cross-entropy is higher under `after`."""
    return {
        pair: cross_entropy(after, sentences) - cross_entropy(before, sentences)
        for pair, sentences in text.items()
    }


def distances(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], groups: Groups | None = None
) -> list[Row]:
    """Frobenius distance between two checkpoints of one shape, a layer and block at a time.

    Parameters
    ----------
    before, after
        Name -> tensor, as `model.state_dict()`; such as the start of training on and its end.
    groups
        As of the upgrade: old and new entries are then measured apart.

    Returns
    -------
    One row for each (stack, layer, block, part): `distance`, `norm` of the part before, and
    its `entries`. `layer` is None for what belongs to no layer; `part` is old, new or all.

    Raises
    ------
    InputError
        When names or shapes differ.
    """
    _check_same(before, after)
    sums: dict[tuple[str, int | None, str, str], list[float]] = {}
    for name, start in before.items():
        change = (after[name].double() - start.double()).square()
        for part, chosen in _parts(name, start, groups):
            total = sums.setdefault((*_place(name), part), [0.0, 0.0, 0])
            total[0] += float(change[chosen].sum())
            total[1] += float(start.double().square()[chosen].sum())
            total[2] += int(chosen.sum())
    return [
        {
            **_place_row(stack, layer, block, part),
            "distance": moved**0.5,
            "norm": norm**0.5,
            "entries": int(entries),
        }
        for (stack, layer, block, part), (moved, norm, entries) in sums.items()
    ]


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


def fisher_by_layer(fisher: Mapping[str, Tensor], groups: Groups | None = None) -> list[Row]:
    """Mean Fisher information of each layer and block; old and new entries apart with `groups`.

    Parameters
    ----------
    fisher
        From `learning_rate.diagonal_fisher`.

    Returns
    -------
    One row for each (stack, layer, block, part): `mean`, `largest` and `entries`.
    """
    found: dict[tuple[str, int | None, str, str], list[float]] = {}
    for name, values in fisher.items():
        for part, chosen in _parts(name, values, groups):
            total = found.setdefault((*_place(name), part), [0.0, 0.0, 0])
            total[0] += float(values[chosen].double().sum())
            total[1] = max(total[1], float(values[chosen].max()))
            total[2] += int(chosen.sum())
    return [
        {
            **_place_row(stack, layer, block, part),
            "mean": summed / entries,
            "largest": largest,
            "entries": int(entries),
        }
        for (stack, layer, block, part), (summed, largest, entries) in found.items()
    ]


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


def _place_row(stack: str, layer: int | None, block: str, part: str) -> Row:
    return {"stack": stack, "layer": layer, "block": block, "part": part}


def _parts(name: str, values: Tensor, groups: Groups | None) -> list[tuple[str, Tensor]]:
    """Which entries are old and which new, as masks; parts without any are left out."""
    if groups is None:
        return [("all", torch.ones_like(values, dtype=torch.bool))]
    if name not in groups:
        raise InputError(f"there is no group of {name}")
    new = (groups[name].to(values.device) == NEW).expand(values.shape)
    return [(part, mask) for part, mask in (("old", ~new), ("new", new)) if bool(mask.any())]


def _check_same(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    for name in sorted(before.keys() | after.keys()):
        shapes = [tuple(each[name].shape) if name in each else None for each in (before, after)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"distances need two checkpoints of one shape; {name} is {shapes[0]} and "
                f"{shapes[1]} (None: absent)"
            )
