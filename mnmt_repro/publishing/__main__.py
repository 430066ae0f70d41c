"""`python -m mnmt_repro.publishing` builds the book; see `--help`."""

from __future__ import annotations

import argparse
import sys

from mnmt_repro.errors import InputError
from mnmt_repro.publishing.command import EXAMPLE, add_arguments, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m mnmt_repro.publishing", description="Build the book.", epilog=EXAMPLE
    )
    add_arguments(parser)
    try:
        sys.exit(run(parser.parse_args()))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
