"""Translation quality: Paper A's Figures 8 and 19, with any metric of decoded output.

A run is drawn once it has been decoded (`mnmt-repro sweep NAME --decode`); until then the frames
here are empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.claims.estimands_metric import straight_line
from mnmt_repro.claims.estimands_prediction import nearest_seen
from mnmt_repro.errors import InputError
from mnmt_repro.figures import capacity
from mnmt_repro.figures.names import cohort_name, pair_name
from mnmt_repro.figures.scaling import PANEL, SIZE_TITLES
from mnmt_repro.figures.theme import GREY, size_axis, weight_color
from mnmt_repro.laws import FractionFit, JointLawFit, fit_fraction, fit_joint_law
from mnmt_repro.results.schema import CEILINGS

METRICS = {
    "chrf": "chrF",
    "bleu": "BLEU",
    "chrfpp": "chrF++",
    "spbleu": "spBLEU",
    "piece_bleu": "BLEU of the run's own pieces",
    "bleurt": "BLEURT × 100",
}

COLUMNS = ["pair", "p", "n", "loss", "score", "seeds"]
HELD_OUT_WEIGHT = 0.5  # and the largest size: what claim A17 holds out
AT_EQUAL = "score at equal loss"
HELD_OUT = ["pair", "measure", "fitted", "predicted", "error", "nearest cell", "why"]
LEAST_CELLS = 3  # for a correlation with an interval


def observed(rows: pd.DataFrame, metric: str, n: str = "n_non_embedding") -> pd.DataFrame:
    """Losses and scores as the figures plot them: means over seeds at each pair, weight and size.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort and domain, and of one test set for each pair.
    metric
        A key of `METRICS`.
    n
        Which parameter count is the size.

    Returns
    -------
    DataFrame
        ``pair, p, n, loss, score, seeds`` of the rows that were decoded and scored with the
        metric; empty where none was. Zero-shot rows (p = 0) are left out.

    Raises
    ------
    InputError
        When there is no such metric, or the rows are of several cohorts, domains, test sets of a
        pair, or ways to decode.
    """
    if metric not in METRICS:
        raise InputError(f"metric {metric!r}: use one of {', '.join(METRICS)}")
    kept = decoded(rows, metric)
    for column in ("cohort", "domain", "decoding"):
        if kept[column].nunique() > 1:
            raise InputError(f"a figure is of one {column}, filter first: {kept[column].unique()}")
    if (kept.groupby("pair")["test_set"].nunique() > 1).any():
        raise InputError(f"a pair is of one test set, filter first: {kept['test_set'].unique()}")
    grouped = kept.groupby(["pair", "p", n], as_index=False)
    points = grouped.agg(
        loss=("cross_entropy", "mean"), score=(metric, "mean"), seeds=(metric, "size")
    )
    return points.rename(columns={n: "n"})[COLUMNS]


def decoded(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Those of `rows` that were scored with `metric`, at weights above zero."""
    return rows[rows[metric].notna() & (rows["p"] > 0)]


def linearity(points: pd.DataFrame) -> pd.DataFrame:
    """How near to a straight line the score lies over cross-entropy (Figure 8, left).

    Returns
    -------
    DataFrame
        ``pair, cells, r, low, high, R², gain of a square, lowest, highest``: Pearson's correlation
        with its 95 % interval (Fisher's z), its square, how much a quadratic term adds to that, and
        the range of scores. Pairs with fewer than three cells are left out.
    """
    table = []
    for pair, group in points.groupby("pair"):
        if len(group) < LEAST_CELLS:
            continue
        line = straight_line(group["loss"], group["score"])
        table.append(
            {
                "pair": pair_name(str(pair)),
                "cells": len(group),
                "r": line.r,
                "low": line.low,
                "high": line.high,
                "R²": line.r**2,
                "gain of a square": line.curvature_gain,
                "lowest": float(group["score"].min()),
                "highest": float(group["score"].max()),
            }
        )
    names = ["pair", "cells", "r", "low", "high", "R²", "gain of a square", "lowest", "highest"]
    return pd.DataFrame(table, columns=names)


def linearity_of_metrics(rows: pd.DataFrame, n: str = "n_non_embedding") -> pd.DataFrame:
    """`linearity` for each metric that any of `rows` was scored with: a column ``metric`` first."""
    parts = []
    for metric, title in METRICS.items():
        table = linearity(observed(rows, metric, n))
        table.insert(0, "metric", title)
        parts.append(table)
    whole = [table for table in parts if not table.empty]
    return pd.concat(whole, ignore_index=True) if whole else parts[0]


def linearity_by_weight(points: pd.DataFrame) -> pd.DataFrame:
    """A straight line of score over cross-entropy for each weight by itself: whether one would do.

    Returns
    -------
    DataFrame
        ``pair, p, cells, slope`` (points of the score a nat), ``score at equal loss`` (the line's
        score at `common_loss`; NaN where the weight's own losses do not reach it) and ``R²``;
        weights with fewer than three cells are left out.
    """
    table = []
    for pair, group in points.groupby("pair"):
        common = common_loss(group)
        for p, cells in group.groupby("p"):
            if len(cells) < LEAST_CELLS:
                continue
            line = stats.linregress(cells["loss"], cells["score"])
            table.append(
                {
                    "pair": pair_name(str(pair)),
                    "p": p,
                    "cells": len(cells),
                    "slope": float(line.slope),
                    AT_EQUAL: float(line.intercept + line.slope * common)
                    if cells["loss"].min() <= common <= cells["loss"].max()
                    else np.nan,
                    "R²": float(line.rvalue**2),
                }
            )
    return pd.DataFrame(table, columns=["pair", "p", "cells", "slope", AT_EQUAL, "R²"])


def common_loss(points: pd.DataFrame) -> float:
    """The loss of one pair that lies between least and greatest loss of as many weights as can be.

    Where several do, the middle of the first such range.
    """
    ends = points.groupby("p")["loss"].agg(["min", "max"])
    levels = np.sort(points["loss"].unique())
    middles = (levels[1:] + levels[:-1]) / 2 if len(levels) > 1 else levels
    held = [int(((ends["min"] <= x) & (x <= ends["max"])).sum()) for x in middles]
    first = int(np.argmax(held))
    last = first
    while last + 1 < len(held) and held[last + 1] == held[first]:
        last += 1
    return float((middles[first] + middles[last]) / 2)


def weights_in_words(points: pd.DataFrame, metric: str) -> str:
    """Whether the score depends on the weight beside the loss, as Markdown, a line a pair.

    One straight line for all weights is compared with parallel ones, a line a weight.
    """
    told = []
    for pair, group in points.groupby("pair"):
        own = linearity_by_weight(group)
        if len(own) < 2:
            continue
        about = group[["loss", "score"]] - group.groupby("p")[["loss", "score"]].transform("mean")
        unexplained = (1 - about["loss"].corr(about["score"]) ** 2) * (about["score"] ** 2).sum()
        whole = ((group["score"] - group["score"].mean()) ** 2).sum()
        reached = own.dropna(subset=[AT_EQUAL])
        told.append(
            f"- {pair_name(str(pair))}: one straight line for all weights explains "
            f"{group['loss'].corr(group['score']) ** 2:.1%} of the variance of {METRICS[metric]}, "
            f"parallel lines, one a weight, {1 - unexplained / whole:.1%}."
            + (
                f" At a loss of {common_loss(group):.2f} nats, which {len(reached)} of the "
                f"{len(own)} weights have models below and above, the line of p = "
                f"{reached['p'].iloc[0]:g} is at {reached[AT_EQUAL].iloc[0]:.1f}, that of p = "
                f"{reached['p'].iloc[-1]:g} at {reached[AT_EQUAL].iloc[-1]:.1f}."
                if len(reached) > 1
                else ""
            )
        )
    return "\n".join(told)


def score_against_loss(points: pd.DataFrame, metric: str) -> alt.HConcatChart:
    """Figures 8 and 19, left: score against cross-entropy, one point a run, a colour a weight.

    Parameters
    ----------
    points
        From `observed`, not empty.
    metric
        What they were scored with, for the axis.
    """
    colour = weight_color(list(points["p"]))
    panels = []
    for pair, group in points.groupby("pair"):
        x = alt.X("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")
        y = alt.Y("score:Q", scale=alt.Scale(zero=False), title=METRICS[metric])
        tooltip = [
            "p",
            alt.Tooltip("n", format=",.0f"),
            alt.Tooltip("loss", format=".3f"),
            alt.Tooltip("score", format=".2f"),
        ]
        dots = alt.Chart(group).mark_point().encode(x, y, colour, tooltip=tooltip)
        layers = [dots]
        if len(group) >= LEAST_CELLS:
            slope, base = np.polyfit(group["loss"], group["score"], 1)
            ends = np.array([group["loss"].min(), group["loss"].max()])
            line = alt.Chart(pd.DataFrame({"loss": ends, "score": base + slope * ends}))
            layers.insert(0, line.mark_line(strokeDash=[6, 4], color=GREY).encode(x, y))
        panels.append(alt.layer(*layers).properties(title=pair_name(str(pair)), **PANEL))
    return alt.hconcat(*panels).resolve_scale(color="shared")


def fit_scores(points: pd.DataFrame, metric: str) -> dict[str, JointLawFit]:
    """Eq. 7 fitted to the scores of each pair: they rise to a limit, as losses fall to one."""
    return {
        str(pair): fit_joint_law(
            group, n="n", loss="score", direction="max", ceiling=CEILINGS.get(metric)
        )
        for pair, group in points.groupby("pair")
    }


def fit_table(fits: Mapping[str, JointLawFit]) -> pd.DataFrame:
    """Tabulate the joint laws of `fit_scores`.

    Returns
    -------
    DataFrame
        ``pair, α, limit, at its bound, R², identified``; `limit` is the score that no size would
        pass, and `at its bound` tells that the rows alone would put it higher than there is.
    """
    return pd.DataFrame(
        [
            {
                "pair": pair_name(pair),
                "α": fit.params["alpha"],
                "limit": fit.params["l_inf"],
                "at its bound": "l_inf" in fit.held,
                "R²": fit.r2,
                "identified": "yes" if fit.identified else f"no: {fit.reason}",
            }
            for pair, fit in fits.items()
        ]
    )


def score_against_size(
    points: pd.DataFrame,
    fits: Mapping[str, JointLawFit],
    metric: str,
    *,
    n: str = "n_non_embedding",
) -> alt.HConcatChart:
    """Scores against size with the joint law of each pair, a colour a weight."""
    colour = weight_color(list(points["p"]))
    grid = np.geomspace(points["n"].min(), points["n"].max(), 60)
    x = size_axis(SIZE_TITLES[n])
    y = alt.Y("score:Q", scale=alt.Scale(zero=False), title=METRICS[metric])
    panels = []
    for pair, group in points.groupby("pair"):
        tooltip = ["p", alt.Tooltip("n", format=",.0f"), alt.Tooltip("score", format=".2f")]
        dots = alt.Chart(group).mark_point().encode(x, y, colour, tooltip=tooltip)
        layers: list[alt.Chart] = [dots]
        law = fits[str(pair)]
        if np.isfinite(law.values).all():
            curves = pd.concat(
                [
                    pd.DataFrame({"p": p, "n": grid, "score": law.predict(p, grid)})
                    for p in sorted(group["p"].unique())
                ]
            )
            layers.insert(0, alt.Chart(curves).mark_line().encode(x, y, colour, detail="p:N"))
        panels.append(alt.layer(*layers).properties(title=pair_name(str(pair)), **PANEL))
    return alt.hconcat(*panels).resolve_scale(color="shared")


def fraction_fits(
    points: pd.DataFrame, metric: str, column: str = "score"
) -> dict[str, FractionFit]:
    """Eq. 11 with the fraction of Eq. 12 for each pair, fitted to scores (or to ``"loss"``)."""
    return {
        str(pair): _fraction_fit(group, metric, column) for pair, group in points.groupby("pair")
    }


def _fraction_fit(group: pd.DataFrame, metric: str, column: str) -> FractionFit:
    if column == "loss":
        return fit_fraction(group, n="n", loss="loss")
    return fit_fraction(group, n="n", loss=column, direction="max", ceiling=CEILINGS.get(metric))


def why_no_frontier(laws: Mapping[str, FractionFit]) -> str:
    """Why a frontier cannot be drawn of these laws, in words; empty where it can."""
    if len(laws) != 2:
        return f"a frontier needs two decoded pairs, there are {len(laws)}"
    reasons = [f"{pair_name(p)}: {law.reason}" for p, law in laws.items() if not law.identified]
    return "; ".join(reasons)


def frontier_chart(
    laws: Mapping[str, FractionFit], points: pd.DataFrame, metric: str
) -> alt.LayerChart:
    """Figures 8 and 19, right: as `capacity.frontier_chart`, of scores.

    Raises
    ------
    InputError
        When there is no frontier; `why_no_frontier` says why.
    """
    if reason := why_no_frontier(laws):
        raise InputError(reason)
    return capacity.frontier_chart(laws, points.assign(loss=points["score"]), METRICS[metric])


def held_out_errors(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Error of Eq. 11 on scores that the fit never saw, beside that on the losses of the same runs.

    Fitted to all weights but 0.5, at all sizes but the largest; the rest is predicted.

    Returns
    -------
    DataFrame
        ``pair, measure, fitted, predicted, error, nearest cell``: `error` is the root mean square
        error as a share of the range of all that was observed, so that scores and losses can be
        compared, and `nearest cell` that of taking the nearest weight and size seen for the rest.
        Where no law is identified it is NaN, and a column ``why`` says so.
    """
    held = np.isclose(points["p"], HELD_OUT_WEIGHT) | (points["n"] == points["n"].max())
    table = []
    for pair, group in points.groupby("pair"):
        seen, unseen = group[~held[group.index]], group[held[group.index]]
        for column, title in (("score", METRICS[metric]), ("loss", "test loss")):
            row = {
                "pair": pair_name(str(pair)),
                "measure": title,
                "fitted": len(seen),
                "predicted": len(unseen),
                "error": np.nan,
                "nearest cell": np.nan,
                "why": "",
            }
            try:
                law = _fraction_fit(seen, metric, column)
                row["why"] = law.reason
            except InputError as error:
                law = None
                row["why"] = str(error)
            if len(seen) and len(unseen):
                naive = nearest_seen(seen, unseen, column, "n") - unseen[column].to_numpy()
                row["nearest cell"] = float(np.sqrt(np.mean(naive**2)) / np.ptp(group[column]))
            if law is not None and law.identified and len(unseen):
                miss = law.predict(unseen["p"], unseen["n"]) - unseen[column].to_numpy()
                row["error"] = float(np.sqrt(np.mean(miss**2)) / np.ptp(group[column]))
            table.append(row)
    frame = pd.DataFrame(table, columns=HELD_OUT)
    return frame if frame["why"].any() else frame.drop(columns="why")


def how_decoded(rows: pd.DataFrame, metric: str) -> str:
    """How many of the runs of `rows` have been decoded and how, in words; there must be some."""
    found = decoded(rows, metric)
    runs, trained = found["run_id"].nunique(), rows["run_id"].nunique()
    sampled = found["decoded_sentences"].max() < found["sentences"].max()
    whole = "Cross-entropy is that of the whole test set." if sampled else ""
    return (
        f"{runs} of {trained} stored runs have been decoded: {found['decoding'].iloc[0]}, spread "
        f"evenly over it. {whole}"
    ).strip()


def not_decoded(rows: pd.DataFrame, cohort: str, metrics: Sequence[str] = ("chrf",)) -> str:
    """What a page says where there is nothing to draw, in one sentence; empty where there is."""
    if any(metric in rows and rows[metric].notna().any() for metric in metrics):
        return ""
    if rows.empty:
        return f"No runs of {cohort_name(cohort)} are stored yet."
    if tuple(metrics) == ("bleurt",):
        return (
            "No translations have been scored with BLEURT: it needs its weights, which are not "
            "part of this project (where they are: "
            f"`mnmt-repro sweep {cohort} --decode --bleurt FOLDER`)."
        )
    known = [title for metric, title in METRICS.items() if metric in rows and rows[metric].any()]
    if known:
        asked = " or ".join(METRICS.get(metric, metric) for metric in metrics)
        return (
            f"The runs of {cohort_name(cohort)} are decoded, but not scored with {asked}; they are "
            f"with {', '.join(known)}."
        )
    return (
        f"No run of {cohort_name(cohort)} has been decoded yet (`mnmt-repro sweep {cohort} "
        "--decode` does it, where their checkpoints are)."
    )


def in_words(table: pd.DataFrame, metric: str) -> str:
    """What `linearity` says of each pair, as Markdown with the numbers filled in."""
    if table.empty:
        return f"Too few runs have been scored with {METRICS[metric]} to say how they lie."
    lines = [
        f"- {row['pair']}: over {row['cells']} runs {METRICS[metric]} goes from "
        f"{row['lowest']:.1f} to {row['highest']:.1f}; its correlation with cross-entropy is "
        f"{row['r']:.3f} ({row['low']:.3f} to {row['high']:.3f}), a straight line explains "
        f"{row['R²']:.1%} of its variance, and a quadratic term a further "
        f"{row['gain of a square']:.1%}."
        for row in table.to_dict("records")
    ]
    return "\n".join(lines)
