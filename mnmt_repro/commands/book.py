"""`book`: build the book from cached results."""

from __future__ import annotations

import argparse
from typing import Any

from mnmt_repro.commands.options import add_command
from mnmt_repro.publishing import command


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "book",
        "execute all pages and build the book from cached results",
        examples=[command.EXAMPLE.removeprefix("example: ")],
        act=act,
    )
    command.add_arguments(parser)


def act(options: argparse.Namespace) -> int:
    """Build the book; 1 where a page failed."""
    return command.run(options)
