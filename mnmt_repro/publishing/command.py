"""The `book` command: its options, shared by `mnmt-repro book` and `python -m ...publishing`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from mnmt_repro.errors import InputError
from mnmt_repro.publishing.book import build_book
from mnmt_repro.publishing.notebooks import PageError

EXAMPLE = "example: mnmt-repro book --jobs 2 -p tier=gpu"
REPOSITORY = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to `parser`."""
    parser.add_argument(
        "--source",
        type=Path,
        default=REPOSITORY,
        help="folder with _config.yml and _toc.yml (default: this repository)",
    )
    parser.add_argument(
        "--output", type=Path, help="folder in which _build/ is made (default: the source)"
    )
    parser.add_argument(
        "--jobs", type=int, help="pages executed at once (default: one a processor)"
    )
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value for the pages that declare this parameter; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    """Build the book and print the path of its first page; 0, or 1 where a page failed."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InputError(f"--jobs {arguments.jobs}: give a number of processes, 1 or more")
    parameters = dict(_parameter(text) for text in arguments.parameter)
    try:
        first = build_book(
            arguments.source, arguments.output, jobs=arguments.jobs, parameters=parameters
        )
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"The book is built. Open its first page:\n{first}")
    return 0


def _parameter(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; the value is read as YAML.

    >>> _parameter("seeds=[1, 2]")
    ('seeds', [1, 2])
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"-p {text}: write NAME=VALUE, for example -p tier=gpu")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InputError(f"-p {text}: the value is not YAML; quote it") from error
