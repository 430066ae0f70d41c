"""How near to convergence the runs are: learning curves, end slopes, tokens a parameter."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.figures.convergence import PAPER_BATCH, PAPER_STEPS
from mnmt_repro.figures.names import cohort_name, pair_name
from mnmt_repro.figures.theme import weight_color

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


def regime_table(rows: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """How the runs of a cohort were trained, a row a size.

    Returns
    -------
    DataFrame
        Size, N, all parameters, runs, target tokens a run, tokens a (non-embedding) parameter,
        most passes over a pair's text, and the median and the steepest end slope.
    """
    slopes = end_slopes(curves)
    runs = rows.drop_duplicates(["run_id", "pair"])
    table = runs.groupby(["size", "n_non_embedding", "n_total"], as_index=False).agg(
        runs=("run_id", "nunique"),
        target_tokens=("target_tokens", "median"),
        passes=("passes", "max"),
    )
    table["tokens_per_parameter"] = table["target_tokens"] / table["n_non_embedding"]
    ends = slopes.groupby("size")["end_slope"].agg(end_slope="median", steepest="min")
    table = table.merge(ends.reset_index(), on="size").sort_values("n_non_embedding")
    names = {
        "n_non_embedding": "N",
        "n_total": "all parameters",
        "target_tokens": "target tokens",
        "tokens_per_parameter": "tokens a parameter",
        "passes": "most passes",
        "end_slope": "end slope, median",
        "steepest": "end slope, steepest",
    }
    table["target_tokens"] = table["target_tokens"].astype(int)
    return table[["size", "runs", *names]].rename(columns=names)


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


def papers_regime() -> str:
    """Say what Paper A's budgets come to in tokens a non-embedding parameter.

    Its models below 500M parameters took half of the steps of the larger ones (section 3.1).
    """
    tokens = []
    for size in PAPER_A:
        n = parameter_counts(size.config)["non_embedding"]
        steps = PAPER_STEPS // 2 if n < 500_000_000 else PAPER_STEPS
        tokens.append(steps * PAPER_BATCH / n)
    return (
        f"Paper A's eight models saw {tokens[0]:,.0f} tokens a parameter (the smallest) to "
        f"{tokens[-1]:,.0f} (the largest)."
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


def learning_curves(curves: pd.DataFrame, size: str) -> alt.HConcatChart:
    """Validation loss against target tokens for one size, a panel a pair."""
    chosen = curves[curves["size"] == size].assign(p=lambda t: t["p"].astype(float).round(3))
    colour = weight_color(list(chosen["p"]))
    panels = [
        alt.Chart(group[["run_id", "p", "target_tokens", "cross_entropy"]])
        .mark_line(point={"size": 20})
        .encode(
            alt.X(
                "target_tokens:Q",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format="~s"),
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
        .properties(title=f"{pair_name(str(pair))}, {size}", width=220, height=240)
        for pair, group in chosen.groupby("pair")
    ]
    return alt.hconcat(*panels).resolve_scale(color="shared")
