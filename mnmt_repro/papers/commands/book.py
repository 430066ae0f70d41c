"""`book`: build the book from cached results."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_repro.cli.options import add_command
from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT
from mnmt_repro.typed_config import Few, setting


@dataclass(frozen=True, kw_only=True)
class BookOptions:
    """The options of `book`."""

    source: Path = setting("folder with _config.yml and _toc.yml (default: this one)", ROOT)
    output: Path | None = setting("folder in which _build/ is made (default: the source)")
    jobs: Few | None = setting("pages executed at once (default: one more than the processors)")
    parameters: tuple[str, ...] = setting(
        "a value for the pages that declare this parameter; may be repeated",
        (),
        flags=("-p", "--parameter"),
        metavar="NAME=VALUE",
    )
    only: tuple[str, ...] = setting(
        "build this page alone, in _build/only, such as methods/runs; may be repeated",
        (),
        metavar="PAGE",
    )
    lessons: bool = setting(
        "build no book: execute the pages that train models (needs torch) and write their outputs "
        "into their notebooks",
        False,
    )


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "book",
        "build the book from cached results; a page is executed when its source, the package, the "
        "data or its parameters have changed",
        examples=[
            "mnmt-repro book --jobs 2",
            "mnmt-repro book --only methods/runs",
            "mnmt-repro book --only paper-a/scaling-laws -p public=pile",
        ],
        act=act,
    )


def act(options: BookOptions) -> int:
    """Build the book and print the path of its first page; 1 where a page failed."""
    from mnmt_repro.papers.pages import PageError, build_book, make_lessons

    parameters = dict(_parameter(text) for text in options.parameters)
    if options.lessons and (parameters or options.output or options.only):
        raise InputError("--lessons takes none of -p, --output and --only")
    try:
        if options.lessons:
            for path in make_lessons(options.source, jobs=options.jobs):
                print(path)
            return 0
        first = build_book(
            options.source,
            options.output,
            jobs=options.jobs,
            parameters=parameters,
            only=options.only,
        )
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"The book is built. Open its first page:\n{first}", flush=True)
    return 0


def _parameter(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; the value is read as YAML. A store is a folder, named from here.

    >>> _parameter("seeds=[1, 2]")
    ('seeds', [1, 2])
    >>> _parameter("store=")
    ('store', '')
    """
    import yaml

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"-p {text}: write NAME=VALUE, for example -p cohort=pile")
    if name == "store" and value:  # pages run in folders of their own
        return name, str(Path(value).expanduser().absolute())
    try:
        return name, yaml.safe_load(value) if value else ""
    except yaml.YAMLError as error:
        raise InputError(f"-p {text}: the value is not YAML; quote it") from error
