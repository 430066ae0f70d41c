"""What most pages of the book use, to be imported from one place.

It loads myst-nb, so only pages import it.
"""

from __future__ import annotations

from typing import Any

import altair
from IPython.display import Markdown, display
from myst_nb import glue

from mnmt_repro.papers.charts.badge import typeset
from mnmt_repro.papers.charts.display import show, show_table
from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.lines import lines
from mnmt_repro.papers.charts.opening import also_says, says, sentence, three_lines
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.charts.verdicts import claims_by_id, effect_of, headline
from mnmt_repro.papers.claims import read_stored
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.repository import ROOT

__all__ = [
    "ROOT", "Markdown", "Provenance", "absent", "also_says", "claims_by_id", "cohort_name",
    "display", "effect_of", "forest", "glue", "headline", "lines", "pair_name", "read_stored",
    "says", "sentence", "show", "show_in", "show_table", "three_lines", "typeset",
]  # fmt: skip


def show_in(tab: str, chart: altair.TopLevelMixin, **about: Any) -> None:
    """Show a chart where the text of the page names this tab; `about` as of `show`."""
    glue(tab, show(chart, **about))


def absent() -> Markdown:
    """What stands in place of a chart whose runs are not there."""
    return Markdown("*These runs are not in the store that is read.*")
