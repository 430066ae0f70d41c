"""Code, cached results and pages that re-make two papers on multilingual machine translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mnmt_repro.runs.trained import Trained

__version__ = "1.0.0"


def load_model(folder: Path | str, *, device: str = "cpu") -> Trained:
    """Read the model in a folder of a run or of Hugging Face; see `runs.trained.load_trained`."""
    from pathlib import Path

    from mnmt_repro.runs.trained import load_trained  # and so torch, which few others need

    return load_trained(Path(folder), device=device)
