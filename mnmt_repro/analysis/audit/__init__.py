"""The papers' printed tables, and what their own numbers give when added up again.

`published(n)` loads Table n of Paper B and `appendix_a()` the sizes of Paper A from `data/papers`.
Every other function recomputes one kind of aggregate and returns a frame of checks, whose columns
are described in `mnmt_repro.analysis.audit.checks`. `disagreements()` lists every check that fails.
"""

from mnmt_repro.analysis.audit.aggregates import (
    gains_by_kind,
    means_over_groups,
    printed_gains,
    repeated_rows,
    table_1_from_table_12,
    table_3_from_table_12,
    table_8_from_table_12,
)
from mnmt_repro.analysis.audit.languages import language_facts, resource_level, resource_levels
from mnmt_repro.analysis.audit.levels import (
    level_cuts,
    table_7_from_table_12,
    table_7_over_levels,
    very_low_from_tables_8_and_12,
)
from mnmt_repro.analysis.audit.overview import (
    CHECKS,
    disagreements,
    readings,
    score_disagreements,
    summary,
)
from mnmt_repro.analysis.audit.parameters import parameters_paper_a, shapes_paper_b
from mnmt_repro.analysis.audit.statements import ablations, compute_and_recovery, prose
from mnmt_repro.analysis.audit.tables import (
    GROUPINGS,
    GROUPS,
    PAPERS,
    appendix_a,
    directions,
    grouping,
    published,
)

__all__ = [
    "CHECKS",
    "GROUPINGS",
    "GROUPS",
    "PAPERS",
    "ablations",
    "appendix_a",
    "compute_and_recovery",
    "directions",
    "disagreements",
    "printed_gains",
    "gains_by_kind",
    "grouping",
    "language_facts",
    "level_cuts",
    "means_over_groups",
    "parameters_paper_a",
    "prose",
    "published",
    "readings",
    "repeated_rows",
    "resource_level",
    "resource_levels",
    "score_disagreements",
    "shapes_paper_b",
    "summary",
    "table_1_from_table_12",
    "table_3_from_table_12",
    "table_7_from_table_12",
    "table_7_over_levels",
    "table_8_from_table_12",
    "very_low_from_tables_8_and_12",
]
