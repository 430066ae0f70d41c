"""Inserted layers: where they stand and what they hold."""

from __future__ import annotations

import pytest
import torch

from mnmt_repro.upgrading.config import DepthInit
from mnmt_repro.upgrading.depth import fill_new_layer
from mnmt_repro.upgrading.places import closest_layer, place_layers


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("bottom", (None, None, 0, 1, 2, 3)),
        ("top", (0, 1, 2, 3, None, None)),
        ("middle", (0, 1, None, None, 2, 3)),
        ("spread", (0, None, 1, 2, None, 3)),
    ],
)
def test_places(at: str, expected: tuple) -> None:
    assert place_layers(4, 2, at) == expected


def test_closest_is_the_first_or_last_layer_at_either_end() -> None:
    bottom, top = place_layers(3, 2, "bottom"), place_layers(3, 2, "top")
    assert [closest_layer(bottom, i) for i in (0, 1)] == [0, 0]
    assert [closest_layer(top, i) for i in (3, 4)] == [2, 2]
    middle = place_layers(2, 4, "middle")  # 0 - - - - 1
    assert [closest_layer(middle, i) for i in (1, 2, 3, 4)] == [0, 0, 1, 1]


def test_contents_by_hand() -> None:
    plan = place_layers(2, 1, "top")

    def made(init: DepthInit) -> tuple[list[float], ...]:
        layers = [
            {"w": torch.tensor([[1.0], [2.0]]), "norm": torch.tensor([1.0])},
            {"w": torch.tensor([[3.0], [6.0]]), "norm": torch.tensor([2.0])},
            {"w": torch.tensor([[9.0], [9.0]]), "norm": torch.tensor([9.0])},
        ]
        fill_new_layer(layers, plan, 2, init)
        assert layers[1]["w"].flatten().tolist() == [3, 6]  # an old layer stays
        return tuple(tensor.flatten().tolist() for tensor in layers[2].values())

    assert made("average") == ([2, 4], [1.5])
    assert made("closest") == ([3, 6], [2])
    assert made("random") == ([9, 9], [9])
