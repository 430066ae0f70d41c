"""How pages name metrics of decoded output, and what they say where no run is decoded."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.papers.cohorts.names import cohort_name

METRIC_TITLES = {
    "chrf": "chrF",
    "bleu": "BLEU",
    "chrfpp": "chrF++",
    "spbleu": "spBLEU",
    "piece_bleu": "BLEU of the run's own pieces",
    "bleurt": "BLEURT × 100",
}


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
