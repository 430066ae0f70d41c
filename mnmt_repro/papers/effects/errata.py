"""Misprints found in Paper A: where, what is printed, what we think is meant, and the evidence.

The words lie in ``data/papers/errata.yml``. Evidence is computed here wherever arithmetic can give
it. `errata()` lists the misprints, and `followed()` what looked like one and can stand.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from string import Template
from typing import Any

import pandas as pd
import yaml

from mnmt_repro.architecture import PAPER_A
from mnmt_repro.papers.cohorts.grids import WEIGHTS
from mnmt_repro.papers.effects import derivations
from mnmt_repro.papers.effects.audit import model_sizes
from mnmt_repro.papers.effects.published import PAPERS

WMT19_FROM_ENGLISH = ("cs", "de", "fi", "gu", "kk", "lt", "ru", "zh")
"""Target languages of newstest2019 with English as the source; French was paired with German."""


def errata() -> pd.DataFrame:
    """List every misprint, in the order of the paper.

    Returns
    -------
    DataFrame
        ``where, kind, printed, meant, evidence, certainty, formula``; what is meant is what we
        think, and `formula` is the equation that the misprint touches, or a dash.
    """
    return _filled("errata", _numbers()).fillna({"formula": "–"})


def followed() -> pd.DataFrame:
    """Counts and statements of Paper A that were checked and can stand.

    Returns
    -------
    DataFrame
        ``where, stated, recomputed, remark``.
    """
    weights, sizes, cohorts = len(WEIGHTS), len(PAPER_A), 3
    fitted = sum(p > 0 for p in WEIGHTS)
    steps, batch_tokens, sentences = 1e6, 5e5, 600e6  # of the paper's larger models, and a pair's
    seen = steps * batch_tokens / sentences
    numbers = {
        "weights": weights,
        "sizes": sizes,
        "cohorts": cohorts,
        "models": weights * sizes * cohorts - sizes,  # English→German alone is in two cohorts
        "fitted": fitted,
        "joint": fitted + 2,
        "separate": fitted * 3,
        "at005": f"{0.05 * seen:.0f}",
        "at01": f"{0.1 * seen:.0f}",
    }
    return _filled("followed", numbers)


def _filled(part: str, numbers: dict[str, Any]) -> pd.DataFrame:
    rows = yaml.safe_load((PAPERS / "errata.yml").read_text(encoding="utf-8"))[part]
    return pd.DataFrame(
        [{name: Template(text).substitute(numbers) for name, text in row.items()} for row in rows]
    )


def _numbers() -> dict[str, Any]:
    """What the evidence needs, by the name that stands for it in the file."""
    steps, table, alpha = growth_steps(), model_sizes(), 0.3
    wrong = table[table["printed − counted"] != 0]
    (row,) = wrong.to_dict("records")
    more = row["printed − counted"] // row["d"]
    part = 2**-alpha  # by which doubling the size multiplies the reducible loss
    counted = derivations.compare_counting()
    return {
        "steps": sum(steps.values()),
        "implicit": counted.implicit,
        "explicit": counted.explicit,
        "naive": counted.naive,
        "both": steps["both"],
        "deeper": steps["depth only"],
        "wider": steps["width only"],
        "alpha": f"{alpha:g}",
        "part": f"{part:.3f}",
        "whole": f"{(part + 1) / 2:.3f}",  # where the reducible loss is as large as the rest
        "d": row["d"],
        "total": f"{row['total, printed']:,}",
        "expected": f"{row['total, counted']:,}",
        "excess": f"{row['printed − counted']:,}",
        "more": more,
        "rows": f"{PAPER_A[0].config.vocab_size + more // 2:,}",
        "others": len(table) - len(wrong),
        "wmt19": ", ".join(WMT19_FROM_ENGLISH),
    }


def growth_steps() -> dict[str, int]:
    """Count how Appendix A's sizes grow from one to the next: in width, in depth, or in both.

    >>> growth_steps()
    {'both': 1, 'depth only': 3, 'width only': 3}
    """
    names = {(True, True): "both", (True, False): "depth only", (False, True): "width only"}
    steps = Counter(
        names[after.encoder_layers > before.encoder_layers, after.d_model > before.d_model]
        for before, after in pairwise(size.config for size in PAPER_A)
    )
    return dict(sorted(steps.items()))
