"""Fields of a configuration: the help of their options, and the values that some allow."""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mnmt_repro.errors import InputError


def option(help: str, **how: Any) -> dict[str, Any]:
    """Metadata of a field: the help of its command-line option, which `cli.options` declares.

    Parameters
    ----------
    **how
        What else `argparse` takes, such as `metavar`; `flags` where the option has another name
        than the field; `group` where a titled group of options begins.
    """
    return {"help": help, **how}


def setting(help: str, default: Any = None, **how: Any) -> Any:
    """A field with a default and the metadata of `option`."""
    return field(default=default, metadata=option(help, **how))


@cache
def _choices(kind: type) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def check_choices(config: object, what: str) -> None:
    """Refuse a field that is none of the values of its `Literal` type; `what` names the config."""
    for name, allowed in _choices(type(config)).items():  # type: ignore[arg-type]
        if (found := getattr(config, name)) not in allowed:
            raise InputError(f"{what} {name} must be one of {', '.join(allowed)}, got {found}")
