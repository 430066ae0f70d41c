"""Configurations: declared as dataclasses, read from YAML and JSON, and checked in one way.

The type of a field says what it may hold: in a dataclass, in a file and on the command line.
`Count`, `Share` and the other types below are numbers with a range. NaN, infinity and whole numbers
that torch cannot hold are refused in all three.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from mnmt_repro.errors import InputError, remedy

_Kind = TypeVar("_Kind")
LARGEST = 2**63 - 1
"""The largest whole number that a configuration may hold: that of torch and of numpy."""
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
WORDS[Path] = "the name of a file"


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may hold.

    >>> str(Range(1)), str(Range(0, 1, below=True)), str(Range(0, above=True))
    ('at least 1', 'at least 0 and below 1', 'above 0')
    """

    low: float
    high: float = math.inf
    above: bool = False  # without `low` itself
    below: bool = False  # without `high` itself

    def holds(self, number: float) -> bool:
        """Whether the number is one of them."""
        least = number > self.low if self.above else number >= self.low
        return least and (number < self.high if self.below else number <= self.high)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'above' if self.above else 'at least'} {self.low}"
        if not (self.above or self.below):
            return f"from {self.low} to {self.high}"
        return f"{'above' if self.above else 'at least'} {self.low} and " + (
            f"{'below' if self.below else 'at most'} {self.high}"
        )


Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Few = Annotated[int, Range(1, 10_000)]
"""Of what a machine has no more: layers, processes, points of a curve, beams."""
SEEDS = 2**31  # what every generator takes
Seed = Annotated[int, Range(0, SEEDS, below=True)]
Positive = Annotated[float, Range(0, above=True)]
Amount = Annotated[float, Range(0)]
Temperature = Annotated[float, Range(0.05)]
"""Below, powers of sizes overflow."""
Penalty = Annotated[float, Range(0, 10)]
"""Exponent of a length; powers above are too large to be numbers."""
Share = Annotated[float, Range(0, 1)]
Part = Annotated[float, Range(0, 1, below=True)]
"""A share that is never the whole."""


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


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _defaults(kind: type) -> dict[str, Any]:
    return {each.name: each.default for each in dataclasses.fields(kind)}


defaults: Callable[[type], dict[str, Any]] = cache(_defaults)
"""The fields of a dataclass in their order, each with its default (`MISSING` without one)."""


def check(config: Any, what: str) -> None:
    """Refuse a dataclass with a field that its type does not allow; `what` names the dataclass.

    >>> from mnmt_repro.upgrading.config import Ramp
    >>> Ramp(start=0.1, end=float("nan"), steps=5)
    Traceback (most recent call last):
    mnmt_repro.errors.InputError: ramp end must be a number, got nan
    """
    for name, hint in _hints(cast(Any, type(config))).items():
        try:
            value = getattr(config, name)
            made = convert(value, hint, (name,))
            if isinstance(made, int | float) and not isinstance(value, type(made) | int):
                raise FieldError((name,), f"must be {WORDS[type(made)]}, got {shown(value)}")
        except FieldError as error:
            raise InputError(f"{what} {place(error.at)} {error.why}") from error


class FieldError(InputError):
    """A mistake in a field; `at` is the way to it, by keys and places in lists."""

    def __init__(self, at: tuple[str | int, ...], why: str) -> None:
        self.at, self.why = at, why
        super().__init__(f"{place(at)}: {why}" if at else why)

    def __reduce__(self) -> tuple[Any, ...]:
        """As pickle makes it again in another process."""
        return type(self), (self.at, self.why)


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
    hints = _hints(cast(Any, kind))
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
    if origin is Annotated:
        number = convert(value, parts[0], at)
        if not parts[1].holds(number):
            raise FieldError(at, f"must be {parts[1]}, got {shown(number)}")
        return number
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
    if hint is Path and isinstance(value, str | Path):
        return Path(os.path.expanduser(value))  # a shell leaves ~ as it is behind "="
    return _plain(value, hint, at)


def _one_of(value: Any, kinds: tuple[Any, ...], at: tuple[str | int, ...]) -> Any:
    """A value of the first of several types that it fits; the error is the deepest one."""
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
    made = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise FieldError(at, f"its keys must be text, got {shown(key)}; write it in quotes")
        made[key] = convert(each, parts[1], (*at, key))
    return made


def _plain(value: Any, hint: Any, at: tuple[str | int, ...]) -> Any:
    """A number, text or truth value."""
    plain: Any = _number(value, hint) if hint in (int, float) else value
    if type(plain) is not hint:
        raise FieldError(at, f"must be {WORDS.get(hint, hint)}, got {shown(value)}")
    if hint is int and abs(plain) > LARGEST:
        raise FieldError(at, f"must be at most {LARGEST}, got {shown(plain)}")
    return plain


def _number(value: Any, kind: type) -> float | None:
    """A finite number of that kind; None where the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if kind is int and not isinstance(value, float):
            with contextlib.suppress(ValueError):
                return int(value)
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if kind is float:
        return number if math.isfinite(number) else None
    return int(number) if number.is_integer() else None


def shown(value: Any) -> str:
    """A value as a message shows it: not too long, whatever it is."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
