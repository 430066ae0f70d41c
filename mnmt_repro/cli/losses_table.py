"""A table of losses that `evaluate` adds to, run by run, and `fit` and `recommend` read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.atomic import locked
from mnmt_repro.cli.options import check_columns, numbers_of, read_table, refuse, write_table
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
ROLES = ("n", "loss", "p", "pair")
"""Columns that a law reads; a table may call them otherwise, and lack p and pair."""
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
    column: tuple[str, ...] = setting(
        "what your table calls n, loss, p or pair, such as p=share", (), metavar="COLUMN=NAME"
    )
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
    ceiling: float | None = setting(
        "with --direction max: highest possible score, such as 100", metavar="SCORE"
    )

    def names(self) -> dict[str, str]:
        """What the table calls each role."""
        names = {role: role for role in ROLES}
        for text in self.column:
            role, _, name = text.partition("=")
            if role not in names or not name:
                raise InputError(f"--column {text}: write {', '.join(names)}, and then =NAME")
            names[role] = name
        used = [*names.values(), *filter(None, [self.mixture_column])]
        if twice := [name for name in used if used.count(name) > 1]:
            raise InputError(f"column {twice[0]} has two uses; name two columns")
        return names


def read_losses(options: TableOptions, needed: tuple[str, ...] = ()) -> pd.DataFrame:
    """Read a table, its columns checked and called by their roles; others stay text.

    Parameters
    ----------
    options : those of the table
    needed : those of "p" and "pair" that the table must have

    Raises
    ------
    InputError
        For a missing column, with file, line and column for a value that cannot be used, for a
        column of `LABELS` with several values, or when no row is left.
    """
    path, names = options.file, options.names()
    if options.ceiling is not None and options.direction == "min":
        raise InputError("--ceiling is the highest score of a quality: add --direction max")
    wanted = {options.mixture_column: "--mixture-column"} if options.mixture_column else {}
    for role, name in names.items():
        if role in ("n", "loss", *needed) or name != role:
            wanted[name] = f"--column {role}=NAME"
    table = _chosen(_read(path, wanted), options.where, path)
    weights = names.get("p", "")
    if weights in table and "p" not in needed and (table[weights] == "").all():
        table = table.drop(columns=weights)  # models of others, whose weights are not known
    for label in LABELS:
        if label not in table.columns or label in names.values():
            continue
        # Each pair may have a test set of its own; the other labels are of the whole table.
        apart = label == "test_set" and names["pair"] in table.columns
        for _, rows in table.groupby(names["pair"]) if apart else [("", table)]:
            if len(values := sorted(set(rows[label]))) > 1:
                raise InputError(
                    f"{path}: column {label} has {', '.join(values)}, and a law is of one: add "
                    f"--where {label}={values[0]}"
                )
    frame = table.drop(columns={"p", *names} - {*names.values()}, errors="ignore")
    frame = frame.rename(columns={name: role for role, name in names.items()})

    def check(role: str, bad: pd.Series, why: str) -> None:
        refuse(bad, table, names[role], path, why)

    for role, name in names.items():
        if role != "pair" and name in table:
            frame[role] = numbers_of(table, name, path)
    check("n", frame["n"] <= 0, "sizes must be above 0")
    if options.direction == "min":
        why = "losses must be above 0 (log-probabilities: change the sign; a quality: --direction "
        check("loss", frame["loss"] <= 0, why + "max)")
    if "pair" in frame:
        check("pair", frame["pair"] == "", "no pair is named")
    if "p" not in frame:
        return frame
    outside = (frame["p"] < 0) | (frame["p"] > 1)
    check("p", outside, "weights lie from 0 to 1 (divide per cents by 100)")
    trained = frame[frame["p"] > 0]  # no law describes a pair that was not trained on
    if trained.empty:
        raise InputError(f"{path}: all rows are zero-shot (p = 0), which no law describes")
    if left := len(frame) - len(trained):
        note(f"{left} zero-shot rows (p = 0) are left out")
    return trained


def _chosen(table: pd.DataFrame, wishes: Iterable[str], path: Path) -> pd.DataFrame:
    """Rows of a table with the values of ``--where``."""
    for wish in wishes:
        column, equals, value = wish.partition("=")
        if not equals or column not in table.columns:
            there = ", ".join(table.columns)
            raise InputError(f"--where {wish}: write COLUMN=VALUE; {path} has {there}")
        values = sorted(set(table[column]))
        table = table[table[column] == value]
        if table.empty:
            raise InputError(f"--where {wish}: no such row; {column} has {', '.join(values[:20])}")
    return table


def _read(path: Path, needed: Mapping[str, str]) -> pd.DataFrame:
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
    table = _own_table(path)
    known = set(table.loc[table["run_id"] == run, ["pair", "test_set"]].itertuples(index=False))
    for pair, test_set in wanted:
        if (pair, test_set) in known:
            raise InputError(
                f"--add-to {path}: has {pair}, {test_set} of {run} already; remove those rows, or "
                "rename the test file or the model's folder, by which they are called"
            )
    return table


def _own_table(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=list(_COLUMNS))
    table = read_table(path, {})
    if tuple(table.columns) != _COLUMNS:
        raise InputError(
            f"--add-to {path}: has the columns {', '.join(table.columns)}, not "
            f"{', '.join(_COLUMNS)}; name another file"
        )
    return table
