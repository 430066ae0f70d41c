"""Charts of how near to convergence the runs are."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.theme import CATEGORIES, INK, size_axis, tips, weight_color
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.settled import paper_sizes

_PAPER = "the paper's (A)"


def beside_the_paper(table: pd.DataFrame) -> alt.HConcatChart:
    """Tokens per parameter, beside the paper's (diamonds), and end slopes, both against size.

    Parameters
    ----------
    table
        From `by_size`.
    """
    groups = sorted(table["group"].unique())
    colour = alt.Color("group:N", title=None)
    colour = colour.scale(domain=[*groups, _PAPER], range=[*CATEGORIES[: len(groups)], INK])
    tooltip = tips("cohort", "n|,", "per|,.0f")
    y = alt.Y("per:Q", scale=alt.Scale(type="log"), title="target tokens per parameter")
    y = y.axis(format="~s", tickCount=5)
    x = size_axis("non-embedding parameters")
    ours = alt.Chart(table).mark_point().encode(x, y, colour, tooltip=tooltip)
    paper = paper_sizes().assign(group=_PAPER, cohort=_PAPER)
    theirs = alt.Chart(paper).mark_point(shape="diamond", size=80)
    budgets = ours + theirs.encode(x, y, colour, tooltip=tooltip)
    fall = table.assign(fall=-table["end_slope"])
    slopes = (
        alt.Chart(fall)
        .mark_point()
        .encode(
            x,
            alt.Y("fall:Q", title="fall of the loss per doubling (nats)"),
            colour,
            tooltip=tips("cohort", "n|,", "fall|.3f"),
        )
    )
    return alt.hconcat(
        budgets.properties(title="Budget", width=270, height=230),
        slopes.properties(title="Slope at the end of training", width=230, height=230),
    )


def half_against_whole(table: pd.DataFrame) -> alt.HConcatChart:
    """Change of the loss from half the budget to all of it against size, a panel a pair.

    Parameters
    ----------
    table
        From `half_and_whole`.
    """
    colour = weight_color(list(table["p"]))
    y = alt.Y("change:Q", title="change of the loss, half to whole budget").axis(format="+.0%")
    return alt.hconcat(
        *(
            alt.Chart(group)
            .mark_point(filled=True, size=40)
            .encode(size_axis(), y, colour, tooltip=tips("p", "n|,", "half|.3f", "whole|.3f"))
            .properties(title=pair_name(str(pair)), width=270, height=230)
            for pair, group in table.groupby("pair")
        )
    ).resolve_scale(y="shared")


def learning_curves(curves: pd.DataFrame, pair: str) -> alt.HConcatChart:
    """Validation loss of a pair against target tokens: the smallest and the largest model.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.
    """
    mine = curves[(curves["pair"] == pair) & (curves["p"] > 0)]
    mine = mine.assign(p=mine["p"].astype(float).round(3))
    ends = mine["n_non_embedding"].agg(["min", "max"]).unique()
    colour = weight_color(list(mine["p"]))
    panels = [
        alt.Chart(group[["run_id", "p", "target_tokens", "cross_entropy"]])
        .mark_line(point={"size": 16})
        .encode(
            alt.X(
                "target_tokens:Q",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format="~s", tickCount=4),
                title="target tokens, all pairs",
            ),
            alt.Y("cross_entropy:Q", title="validation loss (nats per token)").scale(zero=False),
            colour,
            detail="run_id:N",  # two mixtures may give a pair the same weight
            tooltip=tips("p", "target_tokens", "cross_entropy|.4f"),
        )
        .properties(title=f"{pair_name(pair)}, N = {n:,}", width=270, height=230)
        for n, group in ((n, mine[mine["n_non_embedding"] == n]) for n in ends)
    ]
    return alt.hconcat(*panels).resolve_scale(color="shared", y="shared")
