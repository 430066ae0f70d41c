"""What a small weight costs: being shown less of a pair, and sharing the model with another.

A mixture shows a pair only part of the budget. So its loss above that of the single-pair model of
the same size is taken apart at the point where that model had read as much of the pair:

    L(p, N) - L(1, N)  =  [L(p, N) - L(1, N; the same text)]  +  [L(1, N; the same text) - L(1, N)]
                               sharing                               text

Losses are those of validation, since a single-pair model's is known at points of its training.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.figures.house import GREY, weight_color
from mnmt_repro.figures.names import pair_name

PARTS = {"text": "being shown less", "sharing": "sharing the model"}


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
        and its parts ``sharing`` and ``text``.
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
        same_text = float(np.interp(np.log(tokens), np.log(alone.index), alone))
        found.append(
            {
                "pair": cell["pair"],
                "p": cell["p"],
                "n": cell["n_non_embedding"],
                "tokens": tokens,
                "loss": cell["cross_entropy"],
                "gap": cell["cross_entropy"] - alone.iloc[-1],
                "sharing": cell["cross_entropy"] - same_text,
                "text": same_text - alone.iloc[-1],
            }
        )
    columns = ["pair", "p", "n", "tokens", "loss", "gap", "sharing", "text"]
    parts = pd.DataFrame(found, columns=columns)
    return parts.groupby(["pair", "p", "n"], as_index=False).mean()


def chart(parts: pd.DataFrame) -> alt.FacetChart:
    """Both parts against size: a column a pair, a row a part, a colour a weight.

    Parameters
    ----------
    parts
        From `split`, not empty.
    """
    long = parts.melt(["pair", "p", "n"], list(PARTS), var_name="part", value_name="nats")
    long = long.assign(pair=long["pair"].map(pair_name), part=long["part"].map(PARTS))
    base = alt.Chart(long)
    line = base.mark_line(point=True).encode(
        x=alt.X("n:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="N"),
        y=alt.Y("nats:Q", title="nats"),
        color=weight_color(list(long["p"])),
        tooltip=["part", "p", "n", alt.Tooltip("nats", format="+.3f")],
    )
    zero = base.mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=alt.datum(0))
    return (
        (zero + line)
        .properties(width=250, height=170)
        .facet(
            row=alt.Row("part:N", title=None, sort=list(PARTS.values())),
            column=alt.Column("pair:N", title=None),
        )
    )


def in_words(parts: pd.DataFrame, most: float = 0.1) -> str:
    """A Markdown line a pair: how much of the gap is sharing at small weights, by size.

    Parameters
    ----------
    most
        The largest weight that counts as small.
    """
    lines = []
    for pair, group in parts[parts["p"] <= most].groupby("pair", sort=False):
        by_size = group.groupby("n")[["sharing", "gap"]].mean().iloc[[0, -1]]
        told = [
            f"{row.sharing:+.2f} of {row.gap:.2f} nats at N = {row.Index:,}"
            for row in by_size.itertuples()
        ]
        lines.append(f"- {pair_name(str(pair))}: {' and '.join(told)}.")
    if not lines:
        return ""
    return f"Sharing, at weights up to {most:g}:\n\n" + "\n".join(lines)
