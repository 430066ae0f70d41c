"""`data originals`: download the public losses that `data/external` was selected from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_repro.cli.options import add_command
from mnmt_repro.typed_config import setting


@dataclass(frozen=True, kw_only=True)
class OriginalsOptions:
    """The options of `data originals`."""

    out: Path = setting("folder that the files are written to", Path("originals"), metavar="FOLDER")


def add(parts: Any) -> None:
    """Declare the part of `data`."""
    add_command(
        parts,
        "originals",
        "download the public losses that data/external was selected from, by commit and SHA-256",
        examples=["mnmt-repro data originals --out originals"],
        act=act,
    )


def act(options: OriginalsOptions) -> int:
    """Fetch each original and say where it lies."""
    from mnmt_repro.papers.effects.public_losses import fetch_originals
    from mnmt_repro.repository import ROOT

    table = ROOT / "data" / "external" / "originals.csv"
    for path, repository in fetch_originals(table, options.out):
        print(f"{path}  from {repository}")
    return 0
