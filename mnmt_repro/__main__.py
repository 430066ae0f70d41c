"""The command line, `mnmt-repro` or `python -m mnmt_repro`, with all of its commands.

This file stands above the library and the companion. It is the one that imports from both, beside
`declared`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mnmt_repro import cli
from mnmt_repro.papers.commands import book, dataset, report, verify


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """The commands of the library and of the companion; see `cli.build_parser`."""
    return cli.build_parser(asked, commands_beside=(verify, report, dataset, book))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; see `cli.main`."""
    return cli.main(arguments, build_parser)


if __name__ == "__main__":
    sys.exit(main())
