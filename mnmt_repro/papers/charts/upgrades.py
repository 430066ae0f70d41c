"""Leads of upgraded models over those from scratch (Table 1), and who pays for each choice."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.badge import typeset
from mnmt_repro.papers.charts.display import Table, show_table
from mnmt_repro.papers.charts.forest import PRINTED_SERIES, forest
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.effects.ablations import PAYERS, WAYS, who_pays
from mnmt_repro.papers.effects.upgrades import LAST_SHARES, MODEL_CHANGES


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


def who_pays_table(rows: pd.DataFrame) -> Table:
    """Show `who_pays`, a row a choice and a column a kind of languages."""
    tidy = who_pays(rows)
    form = "{change:+.1f} ({low:+.1f} to {high:+.1f})"
    texts = [typeset(form.format_map(row)) for row in tidy.to_dict("records")]
    shown = tidy.assign(text=pd.Series(texts).where(tidy["seeds"] > 0, "not stored"))
    wide = shown.pivot(index="way", columns="languages", values="text")
    return show_table(
        wide.loc[list(WAYS), list(PAYERS)].reset_index(names="choice"),
        name="who-pays",
        data=tidy,
        provenance=Provenance.of(rows),
        caption="Up-sampled languages gain, and other old languages pay. Change of the loss in % "
        "against the same upgrade without the choice, with 95 % intervals; "
        f"{tidy['seeds'].min()} old models. Below zero is better. A new warm-up is compared with "
        "going on.",
    )
