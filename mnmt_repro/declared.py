"""The cohorts of the companion: beside `__main__` the only place where the library asks for it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mnmt_repro.errors import InputError


def cohorts_module(name: str) -> ModuleType:
    """`catalogue`, which lists declared cohorts, or `analysed`: what is analysed of their runs.

    Raises
    ------
    InputError
        When the library is installed without the companion.
    """
    if (module := find_cohorts_module(name)) is None:
        raise InputError("this installation has no cohorts")
    return module


def find_cohorts_module(name: str) -> ModuleType | None:
    """The same, or None without the companion."""
    try:
        return import_module(f"mnmt_repro.papers.cohorts.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mnmt_repro.papers"):
            raise
        return None
