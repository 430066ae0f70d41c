"""What a paper claims, how we measure it, and whether the stored rows reproduce it.

`verify` evaluates every entry of ``data/claims/*.yml`` from the rows of the store; pages, badges
and tests take their verdicts from it.
"""

from mnmt_repro.papers.claims.report import (
    differences,
    headlines,
    read_stored,
    to_detail,
    to_json,
    to_table,
    to_text,
    verify,
    write_stored,
)
from mnmt_repro.papers.claims.schema import FOLDER, load_claims, load_exhibits
from mnmt_repro.papers.effects.public_losses import load_external

__all__ = [
    "FOLDER", "differences", "headlines", "load_claims", "load_exhibits", "load_external",
    "read_stored", "to_detail", "to_json", "to_table", "to_text", "verify", "write_stored",
]  # fmt: skip
