"""What similarity to an old language buys an added one, and what the old ones forget.

The central comparison of Paper B on generated languages (`cohorts.conlang_upgrade`). All models
share one table of pieces, so that the upgraded model's losses can be set beside the old model's.
"""

from __future__ import annotations

import math

import pandas as pd

from mnmt_repro.papers.cohorts import conlang_upgrade
from mnmt_repro.papers.cohorts.languages25 import directions
from mnmt_repro.papers.cohorts.names import language
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.variants import variants_of

NAMES = tuple(cohort.name for cohort in conlang_upgrade.UPGRADE_COHORTS)
LIKE, UNLIKE = "added, like an old one", "added, like none"
_GROUPS = {
    LIKE: (conlang_upgrade.SIMILAR,),
    UNLIKE: (conlang_upgrade.UNRELATED,),
    f"old, {language(conlang_upgrade.ORIGINAL[0])}": conlang_upgrade.ORIGINAL[:1],
    "old, all others": conlang_upgrade.ORIGINAL[1:],
}
"""Languages by what they are to one another: the first old one is what the added one is like."""
_RUNS = (
    ("M4", "old model", (1.0,)),
    ("M6", "from scratch", conlang_upgrade.SCRATCH_SHARES),
    ("Mt6", "upgraded", conlang_upgrade.UPGRADE_SHARES),
)
_COMPARED = ["old model", "from scratch", "from scratch, as long", "upgraded"]


@framed("similarity", "group", "model", "updates", "loss")
def losses(rows: pd.DataFrame, tier: str = "mini") -> Rows:
    """Mean loss of each group of languages in each stored run.

    Parameters
    ----------
    rows
        From `results.load`.

    Returns
    -------
    DataFrame
        ``similarity, group, model, updates, loss``.
    """
    for similarity, name in zip(conlang_upgrade.SIMILARITIES, NAMES, strict=True):
        runs = variants_of(rows, name, tier=tier)
        for group, codes in _GROUPS.items():
            pairs = directions(codes, conlang_upgrade.HUB)
            for run, model, shares in _RUNS:
                for share in shares:
                    loss = runs.mean(runs.variant(run, share), pairs)
                    if not math.isnan(loss):
                        yield similarity, group, model, share, loss


def comparison(table: pd.DataFrame) -> pd.DataFrame:
    """The upgraded model beside all that it can be compared with.

    Parameters
    ----------
    table
        From `losses`.

    Returns
    -------
    DataFrame
        ``similarity, group, updates``; losses of the ``old model`` (which has no added language),
        ``from scratch`` after all updates and after as many, ``upgraded``; ``gain, %`` over the
        model from scratch, ``forgotten, %``: by how much the old model was better.
    """
    keys = ["similarity", "group"]
    last = table[table["updates"] == 1.0].pivot(index=keys, columns="model", values="loss")
    rows = table[table["model"] == "upgraded"].rename(columns={"loss": "upgraded"})
    early = table[table["model"] == "from scratch"].rename(
        columns={"loss": "from scratch, as long"}
    )
    last = last.reindex(columns=["old model", "from scratch"]).reset_index()
    rows = rows.drop(columns="model").merge(last, how="left", on=keys)
    rows = rows.merge(early.drop(columns="model"), how="left", on=[*keys, "updates"])
    rows["gain, %"] = 100 * (1 - rows["upgraded"] / rows["from scratch"])
    rows["forgotten, %"] = 100 * (rows["upgraded"] / rows["old model"] - 1)
    return rows[[*keys, "updates", *_COMPARED, "gain, %", "forgotten, %"]]
