"""Translation quality: Paper A's Figures 8 and 19, with any metric of decoded output.

A run is drawn once it has been decoded (`mnmt-repro sweep NAME --decode`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.analysis.quality import LEAST_CELLS
from mnmt_repro.cohorts import names
from mnmt_repro.cohorts.names import beside_hub, cohort_name, pair_name
from mnmt_repro.errors import InputError
from mnmt_repro.figures import fractions
from mnmt_repro.figures.theme import CATEGORIES, GREY, weight_color
from mnmt_repro.laws import FractionFit

_PANEL = {"width": 230, "height": 240}
METRIC_TITLES = {
    "chrf": "chrF",
    "bleu": "BLEU",
    "chrfpp": "chrF++",
    "spbleu": "spBLEU",
    "piece_bleu": "BLEU of the run's own pieces",
    "bleurt": "BLEURT × 100",
}


def score_against_loss(points: pd.DataFrame, metric: str) -> alt.HConcatChart:
    """Figures 8 and 19, left: score against cross-entropy, one point a run, a colour a weight.

    A dashed line is fitted to all points of a pair, and a thin line to those of each weight.

    Parameters
    ----------
    points
        From `analysis.quality.observed`, not empty.
    metric
        What they were scored with, for the axis.
    """
    colour = weight_color(list(points["p"]))
    x = alt.X("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")
    y = alt.Y("score:Q", scale=alt.Scale(zero=False), title=METRIC_TITLES[metric])
    tooltip = [
        "p",
        alt.Tooltip("n", format=",.0f"),
        alt.Tooltip("loss", format=".3f"),
        alt.Tooltip("score", format=".2f"),
    ]
    panels = []
    for pair, group in points.groupby("pair"):
        layers = [alt.Chart(group).mark_point().encode(x, y, colour, tooltip=tooltip)]
        parts = {p: part for p, part in group.groupby("p") if len(part) >= LEAST_CELLS}
        if parts:
            lines = pd.concat([_line(part).assign(p=p) for p, part in parts.items()])
            thin = alt.Chart(lines).mark_line(strokeWidth=1, opacity=0.7)
            layers.insert(0, thin.encode(x, y, colour, detail="p:N"))
        if len(group) >= LEAST_CELLS:
            whole = alt.Chart(_line(group)).mark_line(strokeDash=[6, 4], color=GREY)
            layers.insert(0, whole.encode(x, y))
        panels.append(alt.layer(*layers).properties(title=pair_name(str(pair)), **_PANEL))
    return alt.hconcat(*panels).resolve_scale(color="shared")


def _line(points: pd.DataFrame) -> pd.DataFrame:
    """The two ends of a least-squares line."""
    slope, base = np.polyfit(points["loss"], points["score"], 1)
    ends = np.array([points["loss"].min(), points["loss"].max()])
    return pd.DataFrame({"loss": ends, "score": base + slope * ends})


def held_out_chart(errors: pd.DataFrame, metric: str) -> alt.LayerChart | alt.FacetChart:
    """Errors of the law on unseen runs (dots with intervals) and of the nearest run (diamonds).

    Parameters
    ----------
    errors
        From `analysis.quality.held_out_errors`.
    """
    titles = {"score": METRIC_TITLES[metric], "loss": "test loss"}
    language = errors["pair"].map(beside_hub).map(names.language)
    shown = errors.assign(row=language + ", " + errors["measure"].map(titles))
    ways = {"the law": CATEGORIES[0], "the nearest run": CATEGORIES[4]}
    colour = alt.Color(
        "way:N", title="predicted by", scale=alt.Scale(domain=list(ways), range=list(ways.values()))
    )
    shape = alt.Shape(
        "way:N",
        title="predicted by",
        scale=alt.Scale(domain=list(ways), range=["circle", "diamond"]),
    )
    x = alt.X("error:Q", axis=alt.Axis(format="%"), title="error, share of the range")
    y = alt.Y("row:N", title=None, sort=None)
    law = shown.assign(way="the law")[["row", "way", "error", "low", "high"]].dropna()
    near = shown.assign(way="the nearest run", error=shown["nearest"])[["row", "way", "error"]]
    bars = alt.Chart(law).mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", y=y, color=colour)
    dots = alt.Chart(pd.concat([law[["row", "way", "error"]], near]))
    points = dots.mark_point(size=90, opacity=1).encode(x, y, colour, shape)
    return alt.layer(bars, points).properties(width=300, height=36 * len(shown))


def why_no_frontier(laws: Mapping[str, FractionFit]) -> str:
    """Why a frontier cannot be drawn of these laws, in words; empty where it can."""
    if len(laws) != 2:
        return f"a frontier needs two decoded pairs, there are {len(laws)}"
    reasons = [f"{pair_name(p)}: {law.reason}" for p, law in laws.items() if not law.identified]
    return "; ".join(reasons)


def score_frontier(
    laws: Mapping[str, FractionFit], points: pd.DataFrame, metric: str
) -> alt.LayerChart:
    """Figures 8 and 19, right: as `fractions.frontier_chart`, of scores.

    Raises
    ------
    InputError
        When there is no frontier; `why_no_frontier` says why.
    """
    if reason := why_no_frontier(laws):
        raise InputError(reason)
    return fractions.frontier_chart(
        laws, points.assign(loss=points["score"]), METRIC_TITLES[metric]
    )


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
    known = [
        title for metric, title in METRIC_TITLES.items() if metric in rows and rows[metric].any()
    ]
    if known:
        asked = " or ".join(METRIC_TITLES.get(metric, metric) for metric in metrics)
        return (
            f"The runs of {cohort_name(cohort)} are decoded, but not scored with {asked}; they are "
            f"with {', '.join(known)}."
        )
    return (
        f"No run of {cohort_name(cohort)} has been decoded yet (`mnmt-repro sweep {cohort} "
        "--decode` does it, where their checkpoints are)."
    )
