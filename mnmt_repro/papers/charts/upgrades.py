"""Leads of upgraded models over those from scratch (Table 1), and who pays for each choice."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.badge import typeset
from mnmt_repro.papers.charts.display import Table, show_table
from mnmt_repro.papers.charts.forest import PRINTED_SERIES, forest
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.cohorts.languages25 import directions_of
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.upgrades import LAST_SHARES, MODEL_CHANGES
from mnmt_repro.papers.effects.variants import GAIN, latest_variants

WAYS = {
    "up-sample new languages × 5": ("table5", "alpha 5", "alpha 1"),
    "up-sample new languages × 10": ("table5", "alpha 10", "alpha 1"),
    "up-sample new languages and old relatives × 5": ("table5", "alpha 5, related", "alpha 1"),
    "half the rate for old weights": ("table6", "old 0.5, new 1", "old 1, new 1"),
    "a new warm-up": ("schedule", "reset", "not reset"),
}
"""What is done, to its table and the runs with it and without it."""
LANGUAGES = {"new": "added", "old, related": "related", "other old": "other original"}
PAID_IN = tuple(f"software25-{table}-fresh" for table in ("table5", "table6", "schedule"))
"""Cohorts that `who_pays` reads."""


def lead_chart(table: pd.DataFrame) -> alt.ConcatChart:
    """Leads with their intervals, a panel an upgraded model, a row a group of languages.

    Parameters
    ----------
    table
        With the columns `LEAD`; a diamond is what the paper prints.
    """
    ours = table.assign(value=table["lead"], series="ours: lower loss")
    paper = table.assign(value=table["paper"], series=PRINTED_SERIES)
    rows = pd.concat([ours, paper.drop(columns=["low", "high"])])
    rows = rows.assign(label=rows["group"], group=rows["upgraded"].map(_titled))
    return forest(rows, "gain over the model from scratch, %", marks={"": 0})


def _titled(model: str) -> str:
    """Title of a panel: the shape of an upgraded model or its name, and its updates.

    >>> _titled("Mt25-wide"), _titled("M25, rate halved, 130%")
    ('wider, 50% of the updates', 'M25, rate halved, 130% of the updates')
    """
    name, *last = model.rsplit(", ", 1)
    share = last[0] if last else f"{LAST_SHARES[name]:.0%}"
    return f"{MODEL_CHANGES.get(name, name)}, {share} of the updates"


@framed()
def who_pays(rows: pd.DataFrame) -> Rows:
    """How each choice changes the loss of new languages, of their old relatives, and of others.

    Parameters
    ----------
    rows
        Of the cohorts `PAID_IN`, from `results.load`.

    Returns
    -------
    DataFrame
        ``way, languages``; ``change, low, high``: by how many per cent the loss is higher than
        without, with a 95 % interval; ``seeds``. Upgrades of the same size.
    """
    for way, (table, treated, control) in WAYS.items():
        bench = latest_variants(rows, f"software25-{table}")
        one, other = (bench.variant(name, 0.3) for name in (treated, control))
        for languages, group in LANGUAGES.items():
            pairs = directions_of(group)
            gain = bench.gain(one, other, pairs)
            change = dict(
                zip(("change", "high", "low"), (-gain[end] for end in GAIN[:3]), strict=True)
            )
            seeds = bench.seeds(pairs, one, other)
            yield {"way": way, "languages": languages, **change, "seeds": seeds}


def who_pays_table(rows: pd.DataFrame) -> Table:
    """Show `who_pays`, a row a choice and a column a kind of languages."""
    tidy = who_pays(rows)
    form = "{change:+.1f} ({low:+.1f} to {high:+.1f})"
    texts = [typeset(form.format_map(row)) for row in tidy.to_dict("records")]
    shown = tidy.assign(text=pd.Series(texts).where(tidy["seeds"] > 0, "not stored"))
    wide = shown.pivot(index="way", columns="languages", values="text")
    return show_table(
        wide.loc[list(WAYS), list(LANGUAGES)].reset_index(names="choice"),
        name="who-pays",
        data=tidy,
        provenance=Provenance.of(rows),
        caption="Up-sampled languages gain, and other old languages pay. Change of the loss in % "
        "against the same upgrade without the choice, with 95 % intervals; "
        f"{tidy['seeds'].min()} old models. Below zero is better. A new warm-up is compared with "
        "going on.",
    )
