"""How near to convergence the runs are: learning curves, end slopes, tokens a parameter."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.figures.convergence import PAPER_BATCH, PAPER_STEPS
from mnmt_repro.figures.names import cohort_name, pair_name
from mnmt_repro.figures.theme import CATEGORIES, INK, size_axis, weight_color

PAPER = "Paper A"
LAST_POINTS = 4  # of a learning curve, from which its end slope is read


def end_slopes(curves: pd.DataFrame) -> pd.DataFrame:
    """Slope of validation loss on log2(target tokens) at the end of each curve.

    It is what the loss would change by if the run were twice as long and kept its pace: minus 0.1
    means 0.1 nats lower. Read off the last four points by least squares.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.

    Returns
    -------
    DataFrame
        ``run_id, pair, p, size, n_non_embedding, end_slope``.
    """
    keys = ["run_id", "pair", "p", "size", "n_non_embedding"]
    rows = []
    for key, group in curves.groupby(keys):
        last = group.sort_values("target_tokens").tail(LAST_POINTS)
        slope = np.polyfit(np.log2(last["target_tokens"]), last["cross_entropy"], 1)[0]
        rows.append({**dict(zip(keys, key, strict=True)), "end_slope": slope})
    return pd.DataFrame(rows, columns=[*keys, "end_slope"])


def by_size(rows: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """How runs were trained, a row per cohort and size.

    Parameters
    ----------
    rows, curves
        From `results.load` and `results.load_curves`, of the same runs.

    Returns
    -------
    DataFrame
        ``cohort, group`` (real text, generated languages or Paper B), ``size, runs, n, n_total``,
        ``tokens`` (target tokens of a run, median), ``per`` (target tokens per non-embedding
        parameter), ``passes`` (most passes over the text of a pair), ``end_slope`` (median over the
        curves) and ``steepest``.
    """
    keys = ["cohort", "size"]
    table = rows.groupby(keys, as_index=False).agg(
        corpus=("corpus", "first"),
        runs=("run_id", "nunique"),
        n=("n_non_embedding", "first"),
        n_total=("n_total", "first"),
        tokens=("target_tokens", "median"),
        passes=("passes", "max"),
    )
    table["tokens"] = table["tokens"].astype(int)
    table["per"] = table["tokens"] / table["n"]
    ends = pd.concat(
        [end_slopes(part).assign(cohort=cohort) for cohort, part in curves.groupby("cohort")]
    )
    slopes = ends.groupby(keys)["end_slope"].agg(end_slope="median", steepest="min").reset_index()
    table = table.assign(group=table["corpus"].map(_group)).merge(slopes, on=keys)
    columns = ["cohort", "group", "size", "runs", "n", "n_total", "tokens", "per", "passes"]
    table = table[[*columns, "end_slope", "steepest"]]
    return table.sort_values(["cohort", "n"], ignore_index=True)


def _group(corpus: str) -> str:
    """What kind of runs a corpus is for.

    >>> _group("webtech"), _group("conlang-sim0"), _group("conlang-upgrade-sim1")
    ('real text', 'generated languages', 'Paper B')
    """
    if corpus.startswith(("software25", "conlang-upgrade")):
        return "Paper B"
    return "generated languages" if corpus.startswith("conlang") else "real text"


def cohort_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What is stored, a row a cohort; runs of no cohort are left out.

    Parameters
    ----------
    rows
        From `results.load`, of one test set.

    Returns
    -------
    DataFrame
        Cohort, runs, seeds, sizes, and as ranges: N, target tokens, tokens a (non-embedding)
        parameter; the most passes over a pair's text.
    """
    table = []
    for cohort, group in rows[rows["cohort"] != ""].groupby("cohort"):
        runs = group.drop_duplicates("run_id")
        each = runs["target_tokens"] / runs["n_non_embedding"]
        table.append(
            {
                "cohort": cohort_name(str(cohort)),
                "runs": len(runs),
                "seeds": runs["seed"].nunique(),
                "sizes": runs["size"].nunique(),
                "N": _range(runs["n_non_embedding"]),
                "target tokens": _range(runs["target_tokens"]),
                "tokens a parameter": _range(each),
                "most passes": round(float(group["passes"].max()), 2),
            }
        )
    return pd.DataFrame(table)


def paper_sizes() -> pd.DataFrame:
    """Paper A's eight models: ``n`` and ``per``, target tokens per non-embedding parameter.

    Its models below 500M parameters took half of the steps of the larger ones (section 3.1).
    """
    n = [parameter_counts(size.config)["non_embedding"] for size in PAPER_A]
    steps = [PAPER_STEPS // 2 if each < 500_000_000 else PAPER_STEPS for each in n]
    tokens = np.array(steps) * PAPER_BATCH
    return pd.DataFrame({"n": n, "per": tokens / np.array(n)})


def beside_the_paper(table: pd.DataFrame) -> alt.HConcatChart:
    """Tokens per parameter, beside the paper's (diamonds), and end slopes, both against size.

    Parameters
    ----------
    table
        From `by_size`.
    """
    groups = sorted(table["group"].unique())
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=[*groups, PAPER], range=[*CATEGORIES[: len(groups)], INK]),
        title=None,
    )
    tooltip = ["cohort", alt.Tooltip("n", format=","), alt.Tooltip("per", format=",.0f")]
    y = alt.Y("per:Q", scale=alt.Scale(type="log"), title="target tokens per parameter")
    y = y.axis(format="~s", tickCount=5)
    x = size_axis("non-embedding parameters")
    ours = alt.Chart(table).mark_point().encode(x, y, colour, tooltip=tooltip)
    paper = paper_sizes().assign(group=PAPER, cohort=PAPER)
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
            tooltip=["cohort", alt.Tooltip("n", format=","), alt.Tooltip("fall", format=".3f")],
        )
    )
    return alt.hconcat(
        budgets.properties(title="Budget", width=270, height=230),
        slopes.properties(title="Slope at the end of training", width=230, height=230),
    )


def _range(values: pd.Series) -> str:
    """Write a range in short.

    >>> _range(pd.Series([2488, 115936])), _range(pd.Series([7.0, 7.0]))
    ('2,488 to 116k', '7')
    """
    ends = (_short(float(value)) for value in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends))


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value / 1e3:.3g}k" if value >= 1e4 else f"{value:,.0f}"


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
            alt.Y(
                "cross_entropy:Q",
                scale=alt.Scale(zero=False),
                title="validation loss (nats per token)",
            ),
            colour,
            detail="run_id:N",  # two mixtures may give a pair the same weight
            tooltip=["p", "target_tokens", alt.Tooltip("cross_entropy", format=".4f")],
        )
        .properties(title=f"{pair_name(pair)}, N = {n:,}", width=270, height=230)
        for n, group in ((n, mine[mine["n_non_embedding"] == n]) for n in ends)
    ]
    return alt.hconcat(*panels).resolve_scale(color="shared")
