"""`book`: build the book from cached results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mnmt_repro.cli.options import add_command
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "book",
        "execute all pages and build the book from cached results",
        examples=["mnmt-repro book --jobs 2 -p tier=gpu"],
        act=act,
    )
    parser.add_argument(
        "--source",
        type=Path,
        default=ROOT,
        help="folder with _config.yml and _toc.yml (default: this one)",
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
    parser.add_argument(
        "--store-outputs",
        action="store_true",
        help="build no book: execute the pages that train models (needs torch, and committed code) "
        "and store their outputs in data/, for builds without torch",
    )


def act(options: argparse.Namespace) -> int:
    """Build the book and print the path of its first page; 1 where a page failed."""
    from mnmt_repro.publishing import PageError, build_book, store_lessons

    if options.jobs is not None and options.jobs < 1:
        raise InputError(f"--jobs {options.jobs}: give a number of processes, 1 or more")
    parameters = dict(_parameter(text) for text in options.parameter)
    if options.store_outputs and (parameters or options.output):
        raise InputError("--store-outputs takes neither -p nor --output")
    try:
        if options.store_outputs:
            for path in store_lessons(options.source, jobs=options.jobs):
                print(path)
            return 0
        first = build_book(options.source, options.output, jobs=options.jobs, parameters=parameters)
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
    import yaml

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"-p {text}: write NAME=VALUE, for example -p tier=gpu")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InputError(f"-p {text}: the value is not YAML; quote it") from error
