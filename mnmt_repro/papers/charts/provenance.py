"""Where a figure's numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.runs.sweep import duration

MANY_PASSES = 4.0  # over a text, from which on a figure says so
_COLUMNS = ["run_id", "config_hash", "data_hash", "commit", "tier", "corpus", "seed", "hardware"]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a figure's numbers come from: the runs behind it.

    Attributes
    ----------
    values
        Column of `results.load` to what the runs have there, without repetition.
    wall_seconds
        Of all runs.
    passes
        The most over any pair's text.
    """

    values: Mapping[str, tuple[str, ...]]
    wall_seconds: float
    passes: float

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Self:
        """Collect the provenance of rows of `results.load`; a run's time counts once.

        Raises
        ------
        InputError
            If there are no rows.
        """
        if rows.empty:
            raise InputError("provenance of no rows: nothing was selected from the results")
        runs = rows.drop_duplicates("run_id")
        return cls(
            values={
                column: tuple(str(value) for value in sorted(runs[column].dropna().unique()))
                for column in _COLUMNS
            },
            wall_seconds=float(runs["wall_seconds"].sum()),
            passes=float(rows["passes"].max()) if "passes" in rows else 0.0,
        )

    def line(self) -> str:
        """Return the line under the figure: what was run, in short.

        More than four passes over a pair's text are named: beyond, repeated text is worth less
        than new text, and a law of the model's size mixes with one of the data's.
        """
        of = self.values
        repeated = [f"up to {self.passes:.1f} passes over a pair's text"]
        return " · ".join(
            [
                counted(len(of["run_id"]), "run"),
                f"tier {', '.join(of['tier'])}",
                f"corpus {', '.join(of['corpus'])}",
                f"seed{'s' * (len(of['seed']) > 1)} {', '.join(of['seed'])}",
                f"commit {', '.join(_short(of['commit']))}",
                f"data {', '.join(_short(of['data_hash']))}",
                *(repeated if self.passes > MANY_PASSES else []),
                f"{duration(self.wall_seconds)} of computing",
            ]
        )

    __str__ = line

    def details(self) -> dict[str, tuple[str, ...]]:
        """Return what the opened line lists in full."""
        names = {
            "run_id": "runs",
            "config_hash": "configurations",
            "data_hash": "data",
            "commit": "commits",
            "hardware": "hardware",
        }
        return {name: self.values[column] for column, name in names.items()}


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "run"), counted(1200, "row")
    ('1 run', '1,200 rows')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _short(hashes: Sequence[str]) -> list[str]:
    """Shorten hashes for reading; of many, count the rest.

    >>> _short(["0123456789abcdef"] * 5)
    ['0123456789', '0123456789', '0123456789', 'and 2 more']
    """
    shown = [value[:10] for value in hashes[:3]]
    return shown + [f"and {len(hashes) - 3} more"] * (len(hashes) > 3)
