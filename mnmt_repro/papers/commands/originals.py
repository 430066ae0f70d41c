"""`data originals`: download the public losses that `data/external` was selected from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mnmt_repro.cli.options import add_command


def add(parts: Any) -> None:
    """Declare the part of `data`."""
    parser = add_command(
        parts,
        "originals",
        "download the public losses that data/external was selected from, by commit and SHA-256",
        examples=["mnmt-repro data originals --out originals"],
        act=act,
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("originals"),
        metavar="FOLDER",
        help="folder that the files are written to",
    )


def act(options: argparse.Namespace) -> int:
    """Fetch each original and say where it lies."""
    from mnmt_repro.papers.effects.public_losses import ORIGINALS, fetch_original

    for original in ORIGINALS:
        print(f"{fetch_original(original, options.out)}  from {original.repository}")
    return 0
