"""The version of what our code computes, an integer a room.

Raise a room's number when a change makes it compute something else (other batches, other initial
weights, another loss); `tests/test_golden.py` fails when one was due. A refactoring raises none, so
it orphans no stored run.
"""

from __future__ import annotations

from mnmt_repro.corpora.version import CORPORA_VERSION

ROOMS = {"corpora": CORPORA_VERSION, "model": 1, "training": 1, "evaluation": 1}
ROOMS_OF_UPGRADES = {"upgrading": 1}
"""Rooms that only a run which begins with an upgraded model depends on."""


def code_version(*, upgraded: bool = False) -> str:
    """All rooms' versions in one word.

    >>> code_version()
    'corpora1-model1-training1-evaluation1'
    >>> code_version(upgraded=True)
    'corpora1-model1-training1-evaluation1-upgrading1'
    """
    rooms = ROOMS | (ROOMS_OF_UPGRADES if upgraded else {})
    return "-".join(f"{room}{version}" for room, version in rooms.items())
