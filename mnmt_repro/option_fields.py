"""Fields of a configuration and their options: help, allowed values, and names nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mnmt_repro.errors import InputError


def setting(help: str, default: Any = None, **how: Any) -> Any:
    """A field with a default, and the help of its option, which `cli.options` declares.

    Parameters
    ----------
    **how
        What else `argparse` takes, such as `metavar`; `flags` where the option has another name
        than the field; `group` where a titled group of options begins.
    """
    return field(default=default, metadata={"help": help, **how})


def required(help: str, **how: Any) -> Any:
    """A field without a default; parameters as of `setting`."""
    return field(metadata={"help": help, **how})


def remedy(wanted: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: the nearest known one, or which there are.

    >>> remedy("sead", ["seed", "steps"]), remedy("x", ["seed", "steps"])
    ('did you mean seed?', 'there are seed, steps')
    """
    names = list(known)
    near = difflib.get_close_matches(wanted, names, 1)
    return f"did you mean {near[0]}?" if near else listed(names)


def listed(names: Sequence[str], most: int = 30) -> str:
    """Which names there are; of many, the first ones.

    >>> listed(["deu", "eng"]), listed("abcd", 2), listed([])
    ('there are deu, eng', 'there are a, b and 2 more', 'there are none')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are {', '.join(names[:most]) or 'none'}{more}"


@cache
def _choices(kind: type) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def check_choices(config: object, what: str) -> None:
    """Refuse a field that is none of the values of its `Literal` type; `what` names the config."""
    for name, allowed in _choices(type(config)).items():  # type: ignore[arg-type]
        if (found := getattr(config, name)) not in allowed:
            raise InputError(f"{what} {name} must be one of {', '.join(allowed)}, got {found}")
