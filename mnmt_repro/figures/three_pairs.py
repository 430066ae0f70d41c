"""Models of three pairs and more, predicted by laws of two: Figure 20 and Appendix H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.figures.names import cohort_name, language, pair_name
from mnmt_repro.figures.theme import diagonal, pair_color, size_axis, weight_color
from mnmt_repro.laws import FractionFit, fit_fraction, mixture_errors

Laws = dict[str, list[FractionFit]]
"""Pair to its laws, one from each two-pair cohort that holds it."""

MIN_WEIGHTS = 5  # of a pair, the single pair among them: Eq. 11 with Eq. 12 has six parameters
MIN_SIZES = 4


def pair_laws(points: Mapping[str, pd.DataFrame]) -> Laws:
    """Eq. 11 with Eq. 12 for each pair of each two-pair cohort.

    Parameters
    ----------
    points
        Cohort to its points, from `scaling.observed`.

    Returns
    -------
    dict
        Pairs with at least one law; cohorts with too few weights or sizes, or whose rows determine
        no law, give none.
    """
    laws: Laws = {}
    for cohort, frame in points.items():
        for pair, group in frame.groupby("pair"):
            weights, sizes = group["p"].nunique(), group["n"].nunique()
            single = (group["p"] == 1).sum()
            if weights < MIN_WEIGHTS or sizes < MIN_SIZES or single < MIN_SIZES:
                continue
            law = fit_fraction(group, n="n", loss="loss", label=cohort)
            if law.identified:
                laws.setdefault(str(pair), []).append(law)
    return laws


def for_all_alike(laws: Laws, pairs: Sequence[str]) -> Laws:
    """Give every pair all laws: for generated languages, which differ in nothing but their draws.

    Unrelated languages of a conlang are random draws from one distribution, so a law fitted to one
    of them holds for another up to chance, a language that no two-pair model has seen included.
    """
    every = [law for own in laws.values() for law in own]
    return {pair: list(every) for pair in pairs} if every else {}


def mixture_name(mixture: str) -> str:
    """What a page calls a mixture.

    >>> mixture_name("eng-deu:0.5,eng-fra:0.25,eng-zho:0.25")
    'German 0.5, French 0.25, Chinese 0.25'
    >>> mixture_name("deu-eng:0.1,zho-eng:0.9")
    'German 0.1, Chinese 0.9'
    """
    shares = [item.rpartition(":")[::2] for item in mixture.split(",")]
    sources = {pair.partition("-")[0] for pair, _ in shares}
    part = 2 if len(sources) == 1 else 0
    return ", ".join(f"{language(pair.partition('-')[part])} {float(p):.3g}" for pair, p in shares)


def cells_of(rows: pd.DataFrame, n: str = "n_non_embedding", *, pairs: int = 3) -> pd.DataFrame:
    """Mean loss over seeds of each pair in each mixture of at least so many pairs, at each size.

    Unlike `scaling.observed` this keeps apart what the rest of the model was trained on.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain.

    Returns
    -------
    DataFrame
        ``mixture, pair, p, n, loss``.
    """
    many = rows["mixture"].str.count(",") + 1 >= pairs
    kept = rows[many & (rows["p"] > 0)]
    keys = ["mixture", "pair", "p", n]
    found = kept.groupby(keys, as_index=False).agg(loss=("cross_entropy", "mean"))
    return found.rename(columns={n: "n"})


def predict(laws: Laws, cells: pd.DataFrame) -> pd.DataFrame:
    """Each cell's loss predicted from its own share and size alone.

    Returns
    -------
    DataFrame
        `cells` with ``predicted, error, relative_error`` (predicted less observed). Pairs without a
        law are left out.
    """
    known = cells[cells["pair"].isin(list(laws))].reset_index(drop=True)
    if known.empty:
        return known.assign(predicted=[], error=[], relative_error=[])
    found = mixture_errors(laws, known, n="n", loss="loss")
    return known.assign(**{name: found[name] for name in ("predicted", "error", "relative_error")})


def error_table(found: pd.DataFrame) -> pd.DataFrame:
    """Error on every mixture and pair, and over all cells.

    Returns
    -------
    DataFrame
        ``mixture, pair, p, sizes, error`` (root mean square, relative), ``bias`` (mean of observed
        over predicted, less one: above zero where the model does worse than predicted) and
        ``worst``; the last row is of all cells.
    """

    def summary(group: pd.DataFrame) -> dict[str, float]:
        relative = group["relative_error"].to_numpy()
        return {
            "sizes": group["n"].nunique(),
            "error": float(np.sqrt((relative**2).mean())),
            "bias": float((group["loss"] / group["predicted"] - 1).mean()),
            "worst": float(np.abs(relative).max()),
        }

    rows = [
        {"mixture": mixture_name(str(mixture)), "pair": pair_name(str(pair)), "p": p}
        | summary(group)
        for (mixture, pair, p), group in found.groupby(["mixture", "pair", "p"])
    ]
    if rows:
        rows.append({"mixture": "all", "pair": "all", "p": np.nan} | summary(found))
    return pd.DataFrame(rows, columns=["mixture", "pair", "p", "sizes", "error", "bias", "worst"])


def own_errors(laws: Laws, cells: pd.DataFrame | None = None) -> pd.DataFrame:
    """How well the laws describe the two-pair runs that they are fitted to: what to measure by.

    Parameters
    ----------
    cells
        From `cells_of`. With them, only of two-pair runs of the same sizes, at weights no smaller
        and no larger than these: at the ends of their range laws err most.

    Returns
    -------
    DataFrame
        ``pair, fitted to, cells, error, worst``: relative, the error a root mean square.
    """
    rows = []
    for pair, own in laws.items():
        for law in own:
            relative = law.fitted() / law.observed() - 1
            if cells is not None and len(cells):
                p, n = np.array(law.p), np.array(law.n)
                within = (p >= cells["p"].min() - 1e-9) & (p <= cells["p"].max() + 1e-9)
                relative = relative[within & np.isin(n, cells["n"].unique())]
            rows.append(
                {
                    "pair": pair_name(pair),
                    "fitted to": cohort_name(law.label),
                    "cells": len(relative),
                    "error": float(np.sqrt((relative**2).mean())),
                    "worst": float(np.abs(relative).max()),
                }
            )
    return pd.DataFrame(rows, columns=["pair", "fitted to", "cells", "error", "worst"])


def each_law(laws: Laws, cells: pd.DataFrame) -> pd.DataFrame:
    """Where a pair has several laws, the error with each of them alone in place of their mean.

    Returns
    -------
    DataFrame
        ``pair, law of, cells, error, bias`` as in `error_table`.
    """
    rows = []
    for pair, own in laws.items():
        mine = cells[cells["pair"] == pair]
        if len(own) < 2 or mine.empty:
            continue
        for law in own:
            whole = error_table(predict({pair: [law]}, mine)).iloc[-1]
            rows.append(
                {
                    "pair": pair_name(pair),
                    "law of": cohort_name(law.label),
                    "cells": len(mine),
                    "error": whole["error"],
                    "bias": whole["bias"],
                }
            )
    return pd.DataFrame(rows, columns=["pair", "law of", "cells", "error", "bias"])


def law_lines(laws: Laws, cells: pd.DataFrame) -> pd.DataFrame:
    """The mean of a pair's laws over the range of sizes, at the weights of `cells`.

    Returns
    -------
    DataFrame
        ``pair, p, n, loss``.
    """
    grid = np.geomspace(cells["n"].min(), cells["n"].max(), 50)
    shares = cells[["pair", "p"]].drop_duplicates().sort_values(["pair", "p"])
    parts = [
        pd.DataFrame(
            {"pair": pair, "p": p, "n": grid}
            | {"loss": np.mean([law.predict(p, grid) for law in laws[pair]], axis=0)}
        )
        for pair, p in zip(shares["pair"], shares["p"], strict=True)
        if pair in laws
    ]
    names = ["pair", "p", "n", "loss"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def figure_20(cells: pd.DataFrame, lines: pd.DataFrame) -> alt.ConcatChart:
    """Losses of many-pair models (dots) and what the laws of two pairs predict (lines), by pair.

    Parameters
    ----------
    cells
        From `cells_of`.
    lines
        From `law_lines`.
    """
    # A third has too many digits for a legend.
    cells, lines = (frame.assign(p=frame["p"].astype(float).round(3)) for frame in (cells, lines))
    colour = weight_color(list(cells["p"]))
    panels = []
    for pair, group in cells.groupby("pair"):
        x = size_axis()
        y = alt.Y("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")
        dots = (
            alt.Chart(group.assign(mixture=group["mixture"].map(mixture_name)))
            .mark_point()
            .encode(x, y, colour, tooltip=["mixture", "p", "n", alt.Tooltip("loss", format=".4f")])
        )
        own = lines[lines["pair"] == pair]
        layers = [dots]
        if not own.empty:
            layers.insert(0, alt.Chart(own).mark_line().encode(x, y, colour, detail="p:N"))
        panel = alt.layer(*layers).properties(title=pair_name(str(pair)), width=145, height=200)
        panels.append(panel)
    return alt.concat(*panels, columns=3).resolve_scale(color="shared")


def predicted_chart(found: pd.DataFrame) -> alt.LayerChart:
    """Observed against predicted loss; on the line where the laws of two pairs are right."""
    both = found[["loss", "predicted"]].to_numpy()
    scale = alt.Scale(zero=False, padding=8)
    x = alt.X("predicted:Q", scale=scale, title="predicted (nats per token)")
    y = alt.Y("loss:Q", scale=scale, title="observed (nats per token)")
    shown = found.assign(
        name=found["pair"].map(pair_name), mixture=found["mixture"].map(mixture_name)
    )
    dots = (
        alt.Chart(shown[["name", "mixture", "p", "n", "predicted", "loss"]])
        .mark_point()
        .encode(x, y, pair_color(found["pair"]), tooltip=["mixture", "name", "p", "n"])
    )
    level = diagonal(x, y, (both.min(), both.max()))
    return (level + dots).properties(width=360, height=300)


# --- without any law ---------------------------------------------------------------------------


def same_share(cells: pd.DataFrame, two: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Runs against runs: the same share of the same pair beside one other pair and beside more.

    Parameters
    ----------
    cells
        From `cells_of`.
    two
        Two-pair cohort to its points, from `scaling.observed`.

    Returns
    -------
    DataFrame
        ``pair, p, beside`` (the cohort), ``cells, ratio`` (mean of the many-pair loss over the
        two-pair loss) and ``least, most``, over the sizes and mixtures that both have.
    """
    rows = []
    for cohort, points in two.items():
        left = cells.assign(share=cells["p"].round(9))
        right = points.assign(share=points["p"].round(9))[["pair", "share", "n", "loss"]]
        both = left.merge(right, on=["pair", "share", "n"], suffixes=("", "_two"))
        both = both.assign(ratio=both["loss"] / both["loss_two"])
        for (pair, p), group in both.groupby(["pair", "share"]):
            rows.append(
                {
                    "pair": pair_name(str(pair)),
                    "p": p,
                    "beside": cohort_name(cohort),
                    "cells": len(group),
                    "ratio": group["ratio"].mean(),
                    "least": group["ratio"].min(),
                    "most": group["ratio"].max(),
                }
            )
    return pd.DataFrame(rows, columns=["pair", "p", "beside", "cells", "ratio", "least", "most"])


def rest_matters(cells: pd.DataFrame) -> pd.DataFrame:
    """The same share of a pair where the rest of the mixture differs.

    The laws say that the rest does not matter: a loss depends on the pair's own share alone.

    Returns
    -------
    DataFrame
        ``pair, p, mixtures, sizes, spread``: mean over sizes of the largest loss over the smallest,
        less one.
    """
    rows = []
    for (pair, p), group in cells.groupby(["pair", cells["p"].round(9)]):
        mixtures = group.groupby("n")["mixture"].nunique()
        sizes = mixtures[mixtures > 1].index
        if not len(sizes):
            continue
        losses = group[group["n"].isin(sizes)].groupby("n")["loss"]
        rows.append(
            {
                "pair": pair_name(str(pair)),
                "p": p,
                "mixtures": group["mixture"].nunique(),
                "sizes": len(sizes),
                "spread": (losses.max() / losses.min() - 1).mean(),
            }
        )
    return pd.DataFrame(rows, columns=["pair", "p", "mixtures", "sizes", "spread"])


def alone_again(
    rows: pd.DataFrame, points: pd.DataFrame, n: str = "n_non_embedding"
) -> pd.DataFrame:
    """What the larger tables of a larger family change by themselves: single-pair runs of both.

    Parameters
    ----------
    rows
        From `results.load`, of the many-language cohort.
    points
        From `scaling.observed`, of the two-language cohort.

    Returns
    -------
    DataFrame
        ``pair, n, loss, loss of two, ratio``.
    """
    grouped = rows[rows["p"] == 1].groupby(["pair", n], as_index=False)
    own = grouped.agg(loss=("cross_entropy", "mean")).rename(columns={n: "n"})
    other = points[points["p"] == 1][["pair", "n", "loss"]]
    both = own.merge(other, on=["pair", "n"], suffixes=("", " of two"))
    both["ratio"] = both["loss"] / both["loss of two"]
    return both[["pair", "n", "loss", "loss of two", "ratio"]]


def in_words(table: pd.DataFrame, own: pd.DataFrame) -> str:
    """How well laws of two pairs predict models of more, as a sentence with the numbers.

    Parameters
    ----------
    table
        From `error_table`.
    own
        From `own_errors`.
    """
    if table.empty:
        return "No cell can be predicted yet."
    whole, parts = table.iloc[-1], table.iloc[:-1]
    worst = parts.iloc[int(parts["error"].argmax())]
    fitted = float(np.sqrt(np.average(own["error"] ** 2, weights=own["cells"])))
    tendency = "worse" if whole["bias"] > 0 else "better"
    return (
        f"Over all cells the laws of two pairs err by {whole['error']:.1%} (root mean square), "
        f"where they err by {fitted:.1%} on the two-pair runs of these sizes and weights, to which "
        f"they were fitted: {min(1.0, (fitted / whole['error']) ** 2):.0%} of the mean squared "
        f"error is the laws' own; the models "
        f"do {tendency} than predicted by {abs(whole['bias']):.1%} on average. The largest error "
        f"of a mixture is that of {worst['pair']} in “{worst['mixture']}”, {worst['error']:.1%}."
    )


def seed_noise(rows: pd.DataFrame, n: str = "n_non_embedding") -> str:
    """How far two runs lie apart that differ in nothing but their seed, as a sentence.

    The pooled standard deviation of log loss over seeds, times 2 / sqrt(pi): the mean distance of
    two draws from a Gaussian.

    Parameters
    ----------
    rows
        From `results.load`, of any cohorts of one test set and domain, with several seeds.
    """
    own = rows[rows["p"] > 0].drop_duplicates(["run_id", "pair"])
    grouped = np.log(own["cross_entropy"]).groupby([own[key] for key in ("mixture", "pair", n)])
    count, variance = grouped.size(), grouped.var()
    several = count > 1
    if not several.any():
        return "No cell has been run with a second seed, so the spread cannot be set against noise."
    free = count[several] - 1
    deviation = np.sqrt((variance[several] * free).sum() / free.sum())
    apart = 2 / np.sqrt(np.pi) * deviation
    return (
        f"For comparison: two runs of a cell with different seeds lie {apart:.2%} apart on average "
        f"({int(several.sum())} cells with several seeds)."
    )
