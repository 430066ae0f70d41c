"""Configurations from what YAML and JSON hold; every mistake is told by the place where it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mnmt_repro.errors import InputError
from mnmt_repro.option_fields import remedy

_Kind = TypeVar("_Kind")
LARGEST = 2**63 - 1
"""The largest whole number that a configuration may hold: that of torch and of numpy."""
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


class FieldError(InputError):
    """A mistake in a field; `at` is the way to it, by keys and places in lists."""

    def __init__(self, at: tuple[str | int, ...], why: str) -> None:
        self.at, self.why = at, why
        super().__init__(f"{place(at)}: {why}" if at else why)


def place(at: tuple[str | int, ...]) -> str:
    """The way to a field, for people.

    >>> place(("sizes", 1, "d_model"))
    'sizes[1].d_model'
    """
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
    return "".join(parts).removeprefix(".")


def build(kind: type[_Kind], value: Any, at: tuple[str | int, ...] = ()) -> _Kind:
    """The dataclass whose fields a mapping holds, each checked against the type of the field.

    >>> from mnmt_repro.upgrading.config import DepthConfig
    >>> build(DepthConfig, {"encoder": 2}).encoder
    2

    Raises
    ------
    FieldError
        For a key that is unknown (with the nearest one that is not), missing, or of another type,
        and for what the dataclass itself refuses.
    """
    known = {each.name: each for each in dataclasses.fields(cast(Any, kind)) if each.init}
    if not isinstance(value, Mapping):
        raise FieldError(at, f"must have the keys {', '.join(known)}, got {shown(value)}")
    for key in value:
        if key not in known:
            raise FieldError((*at, str(key)), f"unknown key; {remedy(str(key), known)}")
    hints = get_type_hints(kind)
    made = {key: convert(each, hints[key], (*at, key)) for key, each in value.items()}
    for name, each in known.items():
        if name not in made and each.default is each.default_factory is dataclasses.MISSING:
            raise FieldError((*at, name), "is missing")
    try:
        return kind(**made)
    except FieldError:
        raise
    except InputError as error:
        raise FieldError(at, str(error)) from error


def convert(value: Any, hint: Any, at: tuple[str | int, ...]) -> Any:
    """A value of the type `hint`, from what YAML and JSON make of one; see `build`.

    A whole number may be written 6e6, which YAML takes for a number or for text.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, UnionType):
        return _one_of(value, parts, at)
    if origin is Literal:
        if value not in parts:
            raise FieldError(at, f"must be one of {', '.join(map(str, parts))}, got {shown(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise FieldError(at, f"must be a list, got {shown(value)}")
        kinds = parts[:1] * len(value) if parts[-1] is ... else parts
        if len(kinds) != len(value):
            raise FieldError(at, f"must be a list of {len(kinds)}, got {shown(value)}")
        pairs = enumerate(zip(value, kinds, strict=True))
        return tuple(convert(each, kind, (*at, i)) for i, (each, kind) in pairs)
    if origin in (list, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _collected(value, origin, parts, at)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, cast(type, hint)):
            return value
        return build(cast(type, hint), value, at)
    if hint is Path and isinstance(value, str):
        return Path(value)
    return _plain(value, hint, at)


def _one_of(value: Any, kinds: tuple[Any, ...], at: tuple[str | int, ...]) -> Any:
    """A value of the first of several types that it fits; the deepest mistake is told."""
    if value is None and NoneType in kinds:
        return None
    errors: list[FieldError] = []
    for kind in (kind for kind in kinds if kind is not NoneType):
        try:
            return convert(value, kind, at)
        except FieldError as error:
            errors.append(error)
    raise max(errors, key=lambda error: len(error.at))


def _collected(value: Any, kind: Any, parts: tuple[Any, ...], at: tuple[str | int, ...]) -> Any:
    """A list or a mapping, each of its values converted."""
    if kind is list:
        return list(convert(value, tuple[parts[0], ...], at))  # type: ignore[valid-type]
    if not isinstance(value, Mapping):
        raise FieldError(at, f"must be a mapping, got {shown(value)}")
    found = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise FieldError(at, f"its keys must be text, got {shown(key)}; write it in quotes")
        found[key] = convert(each, parts[1], (*at, key))
    return found


def _plain(value: Any, hint: Any, at: tuple[str | int, ...]) -> Any:
    """A number, text or truth value."""
    found = _number(value, hint) if hint in (int, float) else value
    if type(found) is not hint:
        raise FieldError(at, f"must be {WORDS.get(hint, hint)}, got {shown(value)}")
    return found


def _number(value: Any, kind: type) -> float | None:
    """A finite number of that kind; None where the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if kind is int and isinstance(value, int):
        return value if abs(value) <= LARGEST else None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    whole = number.is_integer() and abs(number) <= LARGEST
    return number if kind is float else int(number) if whole else None


def shown(value: Any) -> str:
    """A value as a message shows it: not too long, whatever it is."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
