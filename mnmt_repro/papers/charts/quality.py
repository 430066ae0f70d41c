"""Translation quality: Paper A's Figures 8 and 19, with any metric of decoded output.

A run is drawn once it has been decoded (`mnmt-repro sweep NAME --decode`).
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from mnmt_repro.laws import FractionFit
from mnmt_repro.papers.charts import fractions
from mnmt_repro.papers.charts.forest import forest
from mnmt_repro.papers.charts.theme import GREY, tips, weight_color
from mnmt_repro.papers.cohorts import names
from mnmt_repro.papers.cohorts.names import beside_hub, cohort_name, pair_name
from mnmt_repro.papers.effects.quality import LEAST_CELLS, parallel_slope

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

    A dashed line is fitted to all points of a pair, and thin lines of one slope to those of each
    weight.

    Parameters
    ----------
    points
        From `analysis.quality.observed`, not empty.
    metric
        What they were scored with, for the axis.
    """
    colour = weight_color(list(points["p"]))
    x = alt.X("loss:Q", scale=alt.Scale(zero=False), title="test loss (nats per token)")
    seen = alt.Scale(domain=[points["score"].min(), points["score"].max()], nice=True)
    y = alt.Y("score:Q", scale=seen, title=METRIC_TITLES[metric])  # a line may run below zero
    tooltip = tips("p", "n|,.0f", "loss|.3f", "score|.2f")
    panels = []
    for pair, group in points.groupby("pair"):
        layers = [alt.Chart(group).mark_point().encode(x, y, colour, tooltip=tooltip)]
        parts = {p: part for p, part in group.groupby("p") if len(part) >= LEAST_CELLS}
        if parts:
            slope = parallel_slope(group)
            lines = pd.concat([_line(part, slope).assign(p=p) for p, part in parts.items()])
            thin = alt.Chart(lines).mark_line(strokeWidth=1, opacity=0.7, clip=True)
            layers.insert(0, thin.encode(x, y, colour, detail="p:N"))
        if len(group) >= LEAST_CELLS:
            free = np.polyfit(group["loss"], group["score"], 1)[0]
            whole = alt.Chart(_line(group, free)).mark_line(
                strokeDash=[6, 4], color=GREY, clip=True
            )
            layers.insert(0, whole.encode(x, y))
        panels.append(alt.layer(*layers).properties(title=pair_name(str(pair)), **_PANEL))
    return alt.hconcat(*panels).resolve_scale(color="shared")


def _line(points: pd.DataFrame, slope: float) -> pd.DataFrame:
    """The two ends of the line of this slope that fits best."""
    ends = np.array([points["loss"].min(), points["loss"].max()])
    score = points["score"].mean() + slope * (ends - points["loss"].mean())
    return pd.DataFrame({"loss": ends, "score": score})


def held_out_chart(errors: pd.DataFrame, metric: str) -> alt.ConcatChart:
    """Errors of the law on unseen runs (dots with intervals) and of the nearest run (diamonds).

    Parameters
    ----------
    errors
        From `analysis.quality.score_errors`.
    """
    titles = {"score": METRIC_TITLES[metric], "loss": "test loss"}
    language = errors["pair"].map(beside_hub).map(names.language)
    label = language + ", " + errors["measure"].map(titles)
    ends = {"low": errors["low"], "high": errors["high"]}
    law = pd.DataFrame({"label": label, "series": "the law", "value": errors["error"], **ends})
    nearest = {"label": label, "series": "the nearest run", "value": errors["nearest"]}
    rows = pd.concat([law, pd.DataFrame(nearest)])
    return forest(rows, "error, share of the range", form="%")


def why_no_frontier(laws: Mapping[str, FractionFit]) -> str:
    """Why a frontier cannot be drawn of these laws, in words; empty where it can."""
    if len(laws) != 2:
        return f"a frontier needs two decoded pairs, there are {len(laws)}"
    reasons = [f"{pair_name(p)}: {law.reason}" for p, law in laws.items() if not law.identified]
    return "; ".join(reasons)


def score_frontier(
    laws: Mapping[str, FractionFit], points: pd.DataFrame, metric: str
) -> alt.LayerChart:
    """Figures 8 and 19, right: as `fractions.frontier_chart`, of scores."""
    return fractions.frontier_chart(
        laws, points.assign(loss=points["score"]), METRIC_TITLES[metric], least=0.0
    )


def not_decoded(rows: pd.DataFrame, cohort: str, metric: str) -> str:
    """One sentence where no row has the metric, and empty where some have."""
    if metric not in METRIC_TITLES:
        return f"There is no metric {metric!r}; take one of {', '.join(METRIC_TITLES)}."
    if metric in rows and rows[metric].notna().any():
        return ""
    weights = ", with BLEURT's weights after `--bleurt`" * (metric == "bleurt")
    return (
        f"No run of {cohort_name(cohort)} is scored with {METRIC_TITLES[metric]} yet "
        f"(`mnmt-repro sweep {cohort} --decode` does it{weights}, where their checkpoints are)."
    )
