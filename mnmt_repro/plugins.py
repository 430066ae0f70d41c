"""What is registered with the library: cohorts of runs, and further commands.

The library never imports the companion of the two papers. The companion is registered in
``pyproject.toml``, as entry points, and another package can register its own in the same way.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT

COHORTS = "mnmt_repro.cohorts"
"""`catalogue` lists declared cohorts; `analysed` says which analyses are made of their runs."""

COMMANDS = "mnmt_repro.commands"
"""Commands of `mnmt-repro`, beside those of the library; each module has `add(commands)`."""

DATA_COMMANDS = "mnmt_repro.commands.data"
"""Parts of `mnmt-repro data`; each module has `add(parts)`."""


@cache
def registered(group: str) -> dict[str, ModuleType]:
    """Modules of a group by name, in the order in which they are registered.

    >>> list(registered(COHORTS))
    ['catalogue', 'analysed']
    """
    return {point.name: point.load() for point in _points(group)}


def cohorts_module(name: str) -> ModuleType:
    """`catalogue` or `analysed` of the registered cohorts.

    Raises
    ------
    InputError
        When no cohorts are registered.
    """
    try:
        return registered(COHORTS)[name]
    except KeyError:
        raise InputError("no cohorts are registered with this installation") from None


def registered_elsewhere(group: str) -> bool:
    """Whether another package registered a module of the group."""
    return any(not point.value.startswith("mnmt_repro.") for point in _points(group))


def _points(group: str) -> list[EntryPoint]:
    project = ROOT / "pyproject.toml"
    if not project.exists():
        return list(entry_points(group=group))
    # A checkout may be newer than its installation, or not installed at all.
    groups = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]
    return [EntryPoint(name, value, group) for name, value in groups.get(group, {}).items()]
