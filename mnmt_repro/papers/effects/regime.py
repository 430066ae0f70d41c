"""How near to convergence the runs are: learning curves, end slopes, tokens a parameter."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.papers.cohorts.names import cohort_name
from mnmt_repro.papers.effects.convergence import PAPER_BATCH, PAPER_STEPS
from mnmt_repro.papers.effects.framed import Rows, framed

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
    last = curves.sort_values("target_tokens").groupby(keys).tail(LAST_POINTS)
    last = last[keys].assign(x=np.log2(last["target_tokens"]), y=last["cross_entropy"])
    last[["x", "y"]] -= last.groupby(keys)[["x", "y"]].transform("mean")
    sums = (
        last.assign(xy=last["x"] * last["y"], xx=last["x"] ** 2).groupby(keys)[["xy", "xx"]].sum()
    )
    return (sums["xy"] / sums["xx"]).rename("end_slope").reset_index()


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


def half_and_whole(rows: pd.DataFrame, cohort: str) -> pd.DataFrame:
    """Losses of a cohort's runs at half their budget and at all of it.

    Parameters
    ----------
    rows
        From `results.load`, of one test set; the runs of half the budget are those of the cohort
        whose name ends in ``-half``.

    Returns
    -------
    DataFrame
        ``pair, p, n, seed, half, whole`` and ``change`` (as a share of ``half``), a row for each
        cell and seed that both have.
    """
    rows = rows.rename(columns={"n_non_embedding": "n"})
    keys = ["pair", "p", "n", "seed"]
    half, whole = (
        rows[rows["cohort"] == name].set_index(keys)["cross_entropy"].rename(column)
        for name, column in ((f"{cohort}-half", "half"), (cohort, "whole"))
    )
    both = pd.concat([half, whole], axis=1, join="inner").reset_index()
    return both.assign(p=both["p"].round(3), change=both["whole"] / both["half"] - 1)


def _group(corpus: str) -> str:
    """What kind of runs a corpus is for.

    >>> _group("webtech"), _group("conlang-sim0"), _group("conlang-upgrade-sim1")
    ('real text', 'generated languages', 'Paper B')
    """
    if corpus.startswith(("software25", "conlang-upgrade")):
        return "Paper B"
    return "generated languages" if corpus.startswith("conlang") else "real text"


@framed()
def cohort_table(rows: pd.DataFrame) -> Rows:
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
    for cohort, group in rows[rows["cohort"] != ""].groupby("cohort"):
        runs = group.drop_duplicates("run_id")
        each = runs["target_tokens"] / runs["n_non_embedding"]
        yield {
            "cohort": cohort_name(str(cohort)),
            "runs": len(runs),
            "seeds": runs["seed"].nunique(),
            "sizes": runs["size"].nunique(),
            "N": _range(runs["n_non_embedding"]),
            "target tokens": _range(runs["target_tokens"]),
            "tokens a parameter": _range(each),
            "most passes": round(float(group["passes"].max()), 2),
        }


def paper_sizes() -> pd.DataFrame:
    """Paper A's eight models: ``n`` and ``per``, target tokens per non-embedding parameter.

    Its models below 500M parameters took half of the steps of the larger ones (section 3.1).
    """
    n = [parameter_counts(size.config)["non_embedding"] for size in PAPER_A]
    steps = [PAPER_STEPS // 2 if each < 500_000_000 else PAPER_STEPS for each in n]
    tokens = np.array(steps) * PAPER_BATCH
    return pd.DataFrame({"n": n, "per": tokens / np.array(n)})


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
