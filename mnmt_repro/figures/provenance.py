"""Where a figure's numbers come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.runs.sweep import duration

MANY_PASSES = 4.0  # over a text, from which on a figure says so


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a figure's numbers come from: the runs behind it, each field without repetition."""

    run_ids: tuple[str, ...]
    config_hashes: tuple[str, ...]
    data_hashes: tuple[str, ...]
    commits: tuple[str, ...]
    tiers: tuple[str, ...]
    corpora: tuple[str, ...]
    seeds: tuple[str, ...]
    hardware: tuple[str, ...]
    wall_seconds: float
    passes: float = 0.0  # the most over any pair's text

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Self:
        """Collect the provenance of rows of `results.load`; a run's time counts once.

        Raises
        ------
        InputError
            If a column is missing, or there are no rows.
        """
        columns = {
            "run_ids": "run_id",
            "config_hashes": "config_hash",
            "data_hashes": "data_hash",
            "commits": "commit",
            "tiers": "tier",
            "corpora": "corpus",
            "seeds": "seed",
            "hardware": "hardware",
        }
        missing = ({*columns.values()} | {"wall_seconds"}) - {*rows.columns}
        if missing:
            raise InputError(f"provenance needs the columns {', '.join(sorted(missing))}")
        if rows.empty:
            raise InputError("provenance of no rows: nothing was selected from the results")
        runs = rows.drop_duplicates("run_id")
        values = {
            field: tuple(str(value) for value in sorted(runs[column].dropna().unique()))
            for field, column in columns.items()
        }
        return cls(
            **values,
            wall_seconds=float(runs["wall_seconds"].sum()),
            passes=float(rows["passes"].max()) if "passes" in rows else 0.0,
        )

    def line(self) -> str:
        """Return the line under the figure: what was run, in short.

        More than four passes over a pair's text are named: beyond, repeated text is worth less
        than new text, and a law of the model's size mixes with one of the data's.
        """
        repeated = [f"up to {self.passes:.1f} passes over a pair's text"]
        return " · ".join(
            [
                counted(len(self.run_ids), "run"),
                f"tier {', '.join(self.tiers)}",
                f"corpus {', '.join(self.corpora)}",
                f"seed{'s' * (len(self.seeds) > 1)} {', '.join(self.seeds)}",
                f"commit {', '.join(_short(self.commits))}",
                f"data {', '.join(_short(self.data_hashes))}",
                *(repeated if self.passes > MANY_PASSES else []),
                f"{duration(self.wall_seconds)} of computing",
            ]
        )

    __str__ = line

    def details(self) -> dict[str, tuple[str, ...]]:
        """Return what the opened line lists in full."""
        return {
            "runs": self.run_ids,
            "configurations": self.config_hashes,
            "data": self.data_hashes,
            "commits": self.commits,
            "hardware": self.hardware,
        }


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
