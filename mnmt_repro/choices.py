"""Check the fields of a configuration that have a few allowed values."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mnmt_repro.errors import InputError


@cache
def _choices(kind: type) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def check_choices(config: object, what: str) -> None:
    """Refuse a field that is none of the values of its `Literal` type; `what` names the config."""
    for name, allowed in _choices(type(config)).items():  # type: ignore[arg-type]
        if (found := getattr(config, name)) not in allowed:
            raise InputError(f"{what} {name} must be one of {', '.join(allowed)}, got {found}")
