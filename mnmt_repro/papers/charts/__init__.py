"""Charts: a tidy frame of `papers.effects` in, an altair chart out.

`lines` and `forest` draw most of them, from frames that a page makes in its visible cells.
`display` shows a chart or a table with all that a page needs (`show`, `show_table`), `opening` the
sentence and the three lines of a results page, and `theme` holds what all charts share. What most
pages need can be imported from here. Which figure of the papers is on which page:
`data/papers/exhibits.yml`.
"""

from mnmt_repro.papers.charts.badge import typeset
from mnmt_repro.papers.charts.display import absent, show, show_in, show_table
from mnmt_repro.papers.charts.forest import forest, gains_forest, two_sides
from mnmt_repro.papers.charts.lines import lines
from mnmt_repro.papers.charts.measures import limit_written, measured
from mnmt_repro.papers.charts.opening import also_says, says, sentence, three_lines
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.charts.verdicts import (
    SOURCE,
    claims_by_id,
    effect_of,
    headline,
    how_sure,
    shown_verdict,
)
