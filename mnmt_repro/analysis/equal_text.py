"""How far a pair in a mixture is behind the single pair, before and after as much text of it.

A mixture shows a pair only part of the budget. So its loss above that of the single-pair model of
the same size is taken apart at the point where that model had read as much of the pair:

    L(p, N) - L(1, N)  =  [L(p, N) - L(1, N; the same text)]  +  [L(1, N; the same text) - L(1, N)]
                               at equal text                          text

The parts bound the causes and are not the causes: at equal text the mixture has taken 1/p times the
updates. So the first is the least that sharing the model can cost, and the second the most that can
be due to text not shown. Losses are those of validation, since a single-pair model's is known at
points of its training.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.laws import fit_additive_law

TEXT_PARTS = {"text": "the text it was not shown", "equal": "at equal text"}


def split(curves: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Take the loss of every cell with 0 < p < 1 apart.

    The single-pair model's loss is interpolated along the logarithm of its tokens; cells that saw
    less text than its first point are left out, and so are those without one of their size.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.
    rows
        From `results.load`, of the same runs: how many target tokens of each pair they saw.

    Returns
    -------
    DataFrame
        ``pair, p, n, tokens`` (of the pair), ``loss``; ``gap`` (nats above the single-pair model)
        and its parts ``equal`` and ``text``.
    """
    seen = rows.drop_duplicates(["run_id", "pair"]).set_index(["run_id", "pair"])
    last = curves.sort_values("step").groupby(["run_id", "pair"], as_index=False).last()
    single = {
        (pair, n): group.groupby("target_tokens")["cross_entropy"].mean()
        for (pair, n), group in curves[curves["p"] == 1].groupby(["pair", "n_non_embedding"])
    }
    found = []
    for cell in last[(last["p"] > 0) & (last["p"] < 1)].to_dict("records"):
        alone = single.get((cell["pair"], cell["n_non_embedding"]))
        tokens = float(seen.loc[(cell["run_id"], cell["pair"]), "pair_target_tokens"])
        if alone is None or tokens < alone.index[0]:
            continue
        loss, end = cell["cross_entropy"], alone.iloc[-1]
        same_text = float(np.interp(np.log(tokens), np.log(alone.index), alone))
        key = (cell["pair"], cell["p"], cell["n_non_embedding"])
        found.append((*key, tokens, loss, loss - end, loss - same_text, same_text - end))
    columns = ["pair", "p", "n", "tokens", "loss", "gap", "equal", "text"]
    return pd.DataFrame(found, columns=columns).groupby(columns[:3], as_index=False).mean()


@framed()
def predicted_by_text(short: pd.DataFrame, longer: pd.DataFrame) -> Rows:
    """What a law of size and text, fitted to one budget, predicts of another one.

    If the weight acted by the text that it shows and by nothing else, then twice the budget at the
    same weight would be worth as much as twice the weight at the same budget.

    Parameters
    ----------
    short, longer
        From `results.load`: all runs of a grid at one budget, and runs of the same cells at a
        larger one.

    Returns
    -------
    DataFrame
        ``pair, p, n``, ``observed`` and ``predicted``: by how many nats the longer run is lower.
    """
    cell = ["pair", "p", "n_non_embedding"]
    for pair, rows in short[short["p"] > 0].groupby("pair"):
        law = fit_additive_law(
            rows["n_non_embedding"], rows["pair_target_tokens"], rows["cross_entropy"]
        )
        both = rows.merge(longer[longer["pair"] == pair], on=cell, suffixes=("", "_longer"))
        size, text = both["n_non_embedding"], "pair_target_tokens"
        yield both[cell[:2]].assign(
            n=size,
            observed=both["cross_entropy"] - both["cross_entropy_longer"],
            predicted=law.predict(size, both[text]) - law.predict(size, both[f"{text}_longer"]),
        )
