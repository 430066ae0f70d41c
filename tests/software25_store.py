"""A store of Paper B's runs whose losses are made up, for the tests of its pages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_results import content

from mnmt_repro import results
from mnmt_repro.papers.cohorts.catalogue import find_cohort
from mnmt_repro.papers.cohorts.variants import Variant, VariantCohort
from mnmt_repro.runs.spec import RunSpec

Loss = Callable[[Variant, str], float | None]
"""Of a declared run in one direction; None for a run that is not to be stored."""
Score = Callable[[Variant, str], float]
HOW = {"sentences": 100, "beam": 4, "length_penalty": 1.0, "max_ratio": 2.0, "max_extra": 10}


def write_store(root: Path, *cohorts: str, loss: Loss, chrfpp: Score | None = None) -> Path:
    """Write all runs of the cohorts that have a loss; `chrfpp(variant, pair)` where decoded.

    A run's curve has two points: a loss one nat higher at half of its steps, and its own at the
    end. A run that several cohorts share is written once, as the first has it.
    """
    written = set()
    for name in cohorts:
        cohort = find_cohort(name)
        assert isinstance(cohort, VariantCohort)
        for variant in cohort.variants:
            spec = variant.spec
            pairs = spec.mixture.pairs
            losses = {pair: loss(variant, pair) for pair in pairs}
            if spec.run_id in written or None in losses.values():
                continue
            written.add(spec.run_id)
            results.write_run(**_parts(spec, losses), root=root)
            if chrfpp is not None and variant.decode:
                scores = {pair: chrfpp(variant, pair) for pair in pairs}
                results.write_decoding(_decoding(spec, scores), root=root)
    return root


def _parts(spec: RunSpec, losses: dict[str, float]) -> dict[str, Any]:
    steps = spec.training.steps
    parts = content(
        spec.run_id,
        config=spec.config,
        corpus=spec.corpus,
        mixture=spec.mixture.weights,
        seed=spec.seed,
        steps=steps,
    )
    row, point = parts["rows"][0], parts["curve"][0]
    return {
        "run": parts["run"],
        "rows": [{**row, "pair": p, "cross_entropy": value} for p, value in losses.items()],
        "curve": [
            {**point, "step": step, "pair": pair, "cross_entropy": value + more}
            for step, more in ((steps // 2, 1.0), (steps, 0.0))
            for pair, value in losses.items()
        ],
    }


def _decoding(spec: RunSpec, scores: dict[str, float]) -> dict[str, Any]:
    about = {
        "run_id": spec.run_id,
        "corpus": spec.corpus,
        "scorer": "sacrebleu",
        "settings": copy.deepcopy(HOW),
        "signatures": {pair.split("-")[1]: {"chrfpp": "sig"} for pair in scores},
        "checkpoint": "0" * 16,
        "steps": spec.training.steps,
        "commit": "c0ffee",
        "evaluation_version": 1,
        "torch": "2.13.0",
        "hardware": "2 CPU cores",
        "seconds": 1.0,
        "started": "2026-01-01T00:00:00+00:00",
    }
    rows = [
        {"pair": p, "test_set": "indomain", "domain": "all", "sentences": 100, "chrfpp": score}
        for p, score in scores.items()
    ]
    return {"decoding": about, "rows": rows}
