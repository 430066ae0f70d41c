"""A table of losses that `evaluate` adds to, run by run, and `fit` and `recommend` read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.atomic import locked
from mnmt_repro.cli.options import check_columns, read_table, write_table
from mnmt_repro.corpora.textfile import read_packed
from mnmt_repro.errors import InputError, note, printable
from mnmt_repro.typed_config import required, setting

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained

OF_STORE = (
    *("p", "pair", "test_set", "tier", "cohort", "corpus", "learning_rate", "batch_tokens"),
    *("target_tokens", "vocabulary_hash", "seed", "run_id"),
)
"""Columns of a results store that are always read, beside those of size and loss.

`target_tokens` has two digits, so that seeds, whose batches differ a little, have one budget."""
_COLUMNS = ("n", "p", "pair", "loss", "test_set", "run_id", "vocabulary_hash")

LABELS = ("tier", "cohort", "test_set", "domain", "metric")
"""Columns of a table of which a law may read one value only, as `laws.checks.OF_ONE`."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table that `fit` and `recommend` read, and its columns."""

    file: Path = required(
        "results store (a folder, such as runs/results), or a table with a header line: a row for "
        "each model and pair, with the columns pair, p (weight of the pair, 0 to 1), n (model "
        "size) and loss. Further seeds are further rows; rows with weight 0 are left out. Columns "
        f"{', '.join(LABELS)}, where there are such, must have one value",
        flags=("file",),
        metavar="FILE.csv",
    )
    where: tuple[str, ...] = setting("use only these rows", (), metavar="COLUMN=VALUE")
    n_column: str = setting("column of model sizes", "n", metavar="NAME")
    loss_column: str = setting("column of losses", "loss", metavar="NAME")
    weight_column: str = setting("column of weights", "p", metavar="NAME")
    pair_column: str = setting("column of pairs", "pair", metavar="NAME")
    mixture_column: str | None = setting(
        "column whose value the pairs of one model share, such as run_id: the law then reads the "
        "weights of all its pairs, and predicts mixtures that nobody trained",
        metavar="NAME",
    )
    direction: Literal["min", "max"] = setting(
        "min: a loss, falling with size; max: a quality, rising", "min"
    )
    errors: Literal["absolute", "relative"] = setting(
        "least squares of the residuals, or of the residuals over the loss", "absolute"
    )
    groups: str | None = setting(
        "column of runs: rows of one run are not independent, so intervals come from runs",
        metavar="NAME",
    )
    ceiling: float | None = setting(
        "with --direction max: highest possible score, such as 100", metavar="SCORE"
    )


def read(path: Path, needed: Mapping[str, str]) -> pd.DataFrame:
    """Read a table of losses as `options.read_table` does, or a results store as if it were one.

    `needed` has the option that names each column. Of a store there are the losses on whole test
    sets, a row a run and pair; every value is text.

    Raises
    ------
    InputError
        As `read_table` and `results.load`, or when the store has no rows.
    """
    if not path.is_dir():
        return read_table(path, needed)
    from mnmt_repro import results

    if (path / "results").is_dir():
        raise InputError(f"{path}: holds runs; their losses are in {path / 'results'}")
    rows = results.load(root=path, domain="all")
    if rows.empty:
        raise InputError(f"{path}: a folder without rows; give a results store, or a table")
    rows = rows.assign(
        n=rows["n_non_embedding"],
        loss=rows["cross_entropy"],
        d=rows["pair_target_tokens"],
        target_tokens=[int(float(f"{tokens:.2g}")) for tokens in rows["target_tokens"]],
    )
    check_columns(path, rows, needed)
    return rows[list(dict.fromkeys([*needed, *OF_STORE]))].astype(str)


def add_losses(path: Path, scores: Sequence[Mapping[str, Any]], trained: Trained) -> None:
    """Add a model's losses over whole test sets; other rows stay as they are, to the letter.

    Parameters
    ----------
    scores
        ``pair, test_set, domain, cross_entropy`` of each; those of single domains are left out.
    trained
        The model. The weights of another program's model are not known, so its ``p`` stays empty.

    Raises
    ------
    InputError
        When the file is another table, has this run's losses already, or cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    n = parameter_counts(trained.model.config)["non_embedding"]
    rows = pd.DataFrame(scores).query("domain == 'all'")
    new = rows.assign(
        n=n,
        p=["" if trained.any_pair else trained.weights.get(pair, 0.0) for pair in rows["pair"]],
        loss=rows["cross_entropy"],
        run_id=printable(trained.folder.resolve().name),
        vocabulary_hash=trained.vocabulary.hash,
    )
    with locked(path):  # another `evaluate` may add to it now
        table = check_new(path, trained, zip(rows["pair"], rows["test_set"], strict=True))
        both = pd.concat([table, new[list(_COLUMNS)].astype(str)])
        write_table(path, "--add-to", both)
    if trained.any_pair:
        note(f"{path}: the weights of another program's model are not known; write its p there")


def check_new(path: Path, trained: Trained, wanted: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """The table; refuse one to which these pairs and sets cannot be added, see `add_losses`."""
    run = printable(trained.folder.resolve().name)
    table = _read(path)
    known = set(table.loc[table["run_id"] == run, ["pair", "test_set"]].itertuples(index=False))
    for pair, test_set in wanted:
        if (pair, test_set) in known:
            raise InputError(
                f"--add-to {path}: has {pair}, {test_set} of {run} already; remove those rows, or "
                "rename the test file or the model's folder, by which they are called"
            )
    return table


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=list(_COLUMNS))
    try:
        table = pd.read_csv(io.BytesIO(read_packed(path)), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--add-to {path}: cannot be read: {error}") from error
    if tuple(table.columns) != _COLUMNS:
        raise InputError(
            f"--add-to {path}: has the columns {', '.join(table.columns)}, not "
            f"{', '.join(_COLUMNS)}; name another file"
        )
    return table
