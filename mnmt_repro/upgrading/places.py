"""Where new layers go in a stack. No torch is needed here."""

from __future__ import annotations

from collections.abc import Sequence

from mnmt_repro.upgrading.config import Place


def place_layers(old: int, added: int, at: Place) -> tuple[int | None, ...]:
    """Old layer at each place of the deeper stack, bottom first; None for a new layer.

    `spread` puts new layers evenly among the old ones; `middle` puts all behind the lower half.

    >>> place_layers(2, 1, "bottom"), place_layers(2, 2, "top")
    ((None, 0, 1), (0, 1, None, None))
    >>> place_layers(4, 2, "spread")
    (0, None, 1, 2, None, 3)
    """
    before = {  # old layers below each new one
        "bottom": [0] * added,
        "middle": [(old + 1) // 2] * added,
        "top": [old] * added,
        "spread": [(2 * i + 1) * old // (2 * added) for i in range(added)],
    }[at]
    result: list[int | None] = []
    for layer in range(old + 1):
        result += [None] * before.count(layer)
        if layer < old:
            result.append(layer)
    return tuple(result)


def closest_layer(plan: Sequence[int | None], place: int) -> int:
    """Old layer nearest to `place`; of two as near, the lower one.

    >>> closest_layer((None, None, 0, 1), 0), closest_layer((0, None, 1), 1)
    (0, 0)
    """
    here = [(abs(i - place), layer) for i, layer in enumerate(plan) if layer is not None]
    return min(here)[1]
