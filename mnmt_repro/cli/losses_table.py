"""A table of losses that `evaluate` adds to, run by run, and `fit` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.atomic import write_bytes
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained

COLUMNS = ("n", "p", "pair", "loss", "test_set", "run_id")


def add(path: Path, scores: Sequence[Mapping[str, Any]], trained: Trained) -> None:
    """Add a model's losses over whole test sets; other rows stay as they are, to the letter.

    Parameters
    ----------
    scores
        ``pair, test_set, domain, cross_entropy`` of each; those of single domains are left out.

    Raises
    ------
    InputError
        When the file is another table, has this run's losses already, or cannot be written.
    """
    n = parameter_counts(trained.model.config)["non_embedding"]
    new = pd.DataFrame(
        [
            {
                "n": n,
                "p": trained.weights.get(row["pair"], 0.0),
                "pair": row["pair"],
                "loss": row["cross_entropy"],
                "test_set": row["test_set"],
                "run_id": trained.folder.resolve().name,
            }
            for row in scores
            if row["domain"] == "all"
        ],
        columns=list(COLUMNS),
    ).astype(str)
    check(path, trained, [(row["pair"], row["test_set"]) for row in scores])
    both = pd.concat([_read(path), new])
    try:
        write_bytes(path, both.to_csv(index=False).encode())
    except OSError as error:
        raise InputError(f"--add-to {path}: cannot be written: {error.strerror}") from error


def check(path: Path, trained: Trained, wanted: Iterable[tuple[str, str]]) -> None:
    """Refuse a table to which these pairs and test sets of a model cannot be added; see `add`."""
    run = trained.folder.resolve().name
    table = _read(path)
    known = set(table.loc[table["run_id"] == run, ["pair", "test_set"]].itertuples(index=False))
    for pair, test_set in wanted:
        if (pair, test_set) in known:
            raise InputError(
                f"--add-to {path}: has {pair}, {test_set} of {run} already; remove those rows first"
            )


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--add-to {path}: cannot be read: {error}") from error
    if tuple(table.columns) != COLUMNS:
        raise InputError(
            f"--add-to {path}: has the columns {', '.join(table.columns)}, not "
            f"{', '.join(COLUMNS)}; name another file"
        )
    return table
