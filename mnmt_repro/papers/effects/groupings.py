"""Other divisions into old and added languages: Paper B's Tables 7 and 8.

Table 7 is one of variants against a control, as those of `mnmt_repro.papers.charts.ablations`.
"""

from __future__ import annotations

import itertools

import pandas as pd

from mnmt_repro.papers.cohorts.languages25 import INTO, LEVELS, OUT, directions_of, side_of
from mnmt_repro.papers.effects.ablations import SHARE, Ablation
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.published import table, zoomed
from mnmt_repro.papers.effects.variants import Variants

TABLE7 = Ablation(
    where="Table 7",
    cohort="software25-table7",
    number=7,
    controls=("Mt25",),
    groups=("all", *LEVELS),
)


@framed()
def table8(variants: Variants) -> Rows:
    """Table 8: chosen directions of wide upgraded models, against the wide model from scratch.

    Ours is after 30 % of the updates, against all of the baseline's.

    Returns
    -------
    DataFrame
        ``pair, grouping, up-sampled``; the printed ``difference`` and its ``mark``, as in
        `ablations.cells`; our ``loss`` and that ``from scratch``, the columns `variants.GAIN` and
        ``seeds``.
    """
    printed = table(8)
    places = zip(printed["grouping"], printed["pair"], strict=True)
    upsampled = dict(zip(places, printed["upsampled"], strict=True))
    for cell in zoomed():
        pairs = directions_of(cell.group)
        mine, base = variants.variant(cell.treated, SHARE), variants.variant(cell.control, 1.0)
        yield {
            "pair": cell.group,
            "grouping": cell.treated,
            "up-sampled": upsampled[cell.treated, cell.group],
            "difference": cell.difference,
            "mark": "(*)" if cell.marked else "",
            "loss": variants.mean(mine, pairs),
            "from scratch": variants.mean(base, pairs),
            **variants.gain(mine, base, pairs),
            "seeds": variants.seeds(pairs, mine, base),
        }


@framed()
def by_side(cells: pd.DataFrame) -> Rows:
    """Table 8 out of English and into it, of languages that the grouping up-samples and of others.

    Parameters
    ----------
    cells
        From `table8`.

    Returns
    -------
    DataFrame
        ``direction, up-sampled, cells``; in the paper the ``mean difference`` and how many cells
        are ``zero or above``; here ``with rows``, the ``mean gain, %`` and how many are zero or
        above.
    """
    for which, upsampled in itertools.product((OUT, INTO), ("yes", "no")):
        here = (cells["pair"].map(side_of) == which) & (cells["up-sampled"] == upsampled)
        mine = cells[here]
        ours = mine["gain, %"].dropna()
        yield {
            "direction": which,
            "up-sampled": upsampled,
            "cells": len(mine),
            "mean difference": mine["difference"].mean(),
            "zero or above": int((mine["difference"] >= 0).sum()),
            "with rows": len(ours),
            "mean gain, %": ours.mean(),
            "zero or above here": int((ours >= 0).sum()),
        }
