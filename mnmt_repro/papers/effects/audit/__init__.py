"""The papers' printed tables, and what their own numbers give when added up again.

`printed_table(n)` loads Table n of Paper B from `data/papers`; the sizes of Paper A are
`architecture.PAPER_A`. Every other function recomputes one kind of aggregate and returns a frame of
checks, whose columns are described in `audit.checks`. `disagreements()` lists
every check that fails.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from mnmt_repro.papers.effects.audit.aggregates import gains_by_kind as gains_by_kind
from mnmt_repro.papers.effects.audit.aggregates import (
    means_over_groups,
    printed_gains,
    repeated_rows,
    table_1_from_table_12,
    table_3_from_table_12,
    table_8_from_table_12,
)
from mnmt_repro.papers.effects.audit.checks import CHECK_COLUMNS
from mnmt_repro.papers.effects.audit.languages import language_facts, resource_levels
from mnmt_repro.papers.effects.audit.levels import level_cuts as level_cuts
from mnmt_repro.papers.effects.audit.levels import (
    table_7_from_table_12,
    table_7_over_levels,
    very_low_from_tables_8_and_12,
)
from mnmt_repro.papers.effects.audit.parameters import parameters_paper_a
from mnmt_repro.papers.effects.audit.parameters import shapes_paper_b as shapes_paper_b
from mnmt_repro.papers.effects.audit.statements import ablations, compute_and_recovery, prose
from mnmt_repro.papers.effects.audit.tables import printed_scores as printed_scores
from mnmt_repro.papers.effects.audit.tables import printed_table as printed_table
from mnmt_repro.papers.effects.framed import Rows, framed

CHECKS: dict[str, Callable[[], pd.DataFrame]] = {
    "Table 1 from Table 12": table_1_from_table_12,
    "Table 3 from Table 12": table_3_from_table_12,
    "Table 8 from Table 12": table_8_from_table_12,
    "gains over the baseline": printed_gains,
    "means over groups": means_over_groups,
    "Table 7 over its levels": table_7_over_levels,
    "Table 7 from Table 12": table_7_from_table_12,
    "Table 7 from Tables 8 and 12": very_low_from_tables_8_and_12,
    "rows printed twice": repeated_rows,
    "resource levels": resource_levels,
    "languages": language_facts,
    "compute and recovery": compute_and_recovery,
    "ablations": ablations,
    "numbers in the text": prose,
    "parameter counts": parameters_paper_a,
}
"""Every kind of check, by the name under which `summary` and `disagreements` list it."""


@framed()
def summary() -> Rows:
    """Count, per kind of check, how many numbers were recomputed and how many disagree."""
    for name, check in CHECKS.items():
        agrees = check()["agrees"]
        yield {"check": name, "recomputed": len(agrees), "disagree": int((~agrees).sum())}


@framed("check", *CHECK_COLUMNS)
def disagreements() -> Rows:
    """List every check that fails, with the kind of check in column `check`."""
    for name, check in CHECKS.items():
        found = check()
        if not found["agrees"].all():
            yield found[~found["agrees"]].assign(check=name)


def readings(found: pd.DataFrame) -> pd.DataFrame:
    """List the readings of disagreements, each once.

    Parameters
    ----------
    found
        From `disagreements`.

    Returns
    -------
    DataFrame
        ``reading, disagreements, explained by``: its number, how many share it, and its words.
    """
    counts = found["reading"].value_counts(sort=False)
    return pd.DataFrame(
        {
            "reading": range(1, len(counts) + 1),
            "disagreements": counts.to_numpy(),
            "explained by": counts.index,
        }
    )


_SCORES = ("Table 1 from", "Table 3 from", "Table 7", "Table 8 from", "gains over")


def score_disagreements(found: pd.DataFrame) -> pd.DataFrame:
    """Choose the disagreements about scores, and shorten their places.

    Parameters
    ----------
    found
        From `audit.disagreements`.

    Returns
    -------
    DataFrame
        ``check, cell, published, recomputed, difference, tolerance``.
    """
    chosen = found[found["check"].str.startswith(_SCORES)]
    cells = chosen["where"].str.partition(":")[0]
    kept = ["published", "recomputed", "difference", "tolerance"]
    return chosen[["check", *kept]].astype(dict.fromkeys(kept, float)).assign(cell=cells)
