"""What several commands share: how they are declared, and options of the form NAME=VALUE."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro.errors import InputError


class Noted(argparse.Action):
    """Stores a value, and that it was given: `namespace.given` holds the names of such options."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        namespace.given = getattr(namespace, "given", frozenset()) | {self.dest}


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows the default of every option that has one, and keeps the lines of the examples."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, []) or action.default is argparse.SUPPRESS:
            return action.help
        return super()._get_help_string(action)


def add_command(
    commands: Any,
    name: str,
    purpose: str,
    *,
    examples: Sequence[str],
    act: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Declare a command; `purpose` is its one line in the list, `examples` end its `--help`."""
    heading = "example" if len(examples) == 1 else "examples"
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog="\n  ".join([f"{heading}:", *examples]),
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(act=act)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")


def comma_list(text: str) -> list[str]:
    """Split `a,b,c`.

    >>> comma_list("eng-deu, eng-zho")
    ['eng-deu', 'eng-zho']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def named_numbers(texts: Iterable[str], option: str) -> dict[str, float]:
    """Read PAIR=NUMBER, once or more.

    >>> named_numbers(["eng-deu=2", "eng-zho=0.5"], "--prefer")
    {'eng-deu': 2.0, 'eng-zho': 0.5}
    """
    found: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{option} {text}: write PAIR=NUMBER, such as eng-deu=2")
        if name in found:
            raise InputError(f"{option} {text}: {name} is named twice")
        found[name] = number(value, f"{option} {text}")
    return found


def number(text: str, where: str) -> float:
    """Read a number; `where` names the option in the error."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: {text!r} is not a number") from None


def read_table(path: Path, needed: Iterable[str]) -> pd.DataFrame:
    """Read a CSV with a header line that holds the `needed` columns.

    Raises
    ------
    InputError
        When the file cannot be read, is no table, or lacks a column; those it has are named.
    """
    try:
        frame = pd.read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: is no CSV with a header line: {error}") from error
    for column in needed:
        if column not in frame.columns:
            there = ", ".join(map(str, frame.columns))
            raise InputError(f"{path}: no column {column!r}; there are {there}")
    if frame.empty:
        raise InputError(f"{path}: holds no rows")
    return frame


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that JSON cannot hold become null."""
    print(json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    return value
