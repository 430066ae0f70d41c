"""Where the checkout is that this package runs from."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository's top folder, with `book/` and `data/`; of no use to an installed wheel."""
