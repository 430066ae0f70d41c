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
from mnmt_repro.papers.charts.sizes import model_sizes
from mnmt_repro.papers.cohorts.grids import WEIGHTS
from mnmt_repro.papers.effects import derivations
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


def _read(part: str) -> Any:
    return yaml.safe_load((PAPERS / "errata.yml").read_text(encoding="utf-8"))[part]


def _filled(part: str, numbers: dict[str, Any]) -> pd.DataFrame:
    rows = _read(part)
    return pd.DataFrame(
        [{name: Template(text).substitute(numbers) for name, text in row.items()} for row in rows]
    )


def _numbers() -> dict[str, Any]:
    """What the evidence needs, by the name that stands for it in the file."""
    steps, table, alpha = growth_steps(), model_sizes(PAPER_A), 0.3
    wrong = table[table["printed − counted"] != 0]
    (row,) = wrong.to_dict("records")
    more = row["printed − counted"] // row["d"]
    part = 2**-alpha  # by which doubling the size multiplies the reducible loss
    losses = derivation(alpha=0.5, beta_one=10.0, beta_p=20.0, l_inf=1.0, n=400.0)
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
        "rows": f"{128_000 + more // 2:,}",
        "others": len(table) - len(wrong),
        "wmt19": ", ".join(WMT19_FROM_ENGLISH),
        "derivation": ", ".join(f"{name} = {loss:g}" for name, loss in losses.items()),
    }


def as_list(found: pd.DataFrame) -> str:
    """One line a misprint, as Markdown: those that touch a formula first, then the most certain.

    Parameters
    ----------
    found
        From `errata`.
    """
    plain = found["formula"] == "–"
    order = _read("certainty")
    first = found[~plain].sort_values("certainty", key=lambda c: c.map([*order].index))
    parts = [f"**Misprints that touch a formula**:\n\n{_lines(first, certainty=True)}"]
    for certainty, meaning in order.items():
        if lines := _lines(found[plain & (found["certainty"] == certainty)]):
            parts.append(f"**{certainty.capitalize()}** ({meaning}):\n\n{lines}")
    return "\n\n".join(parts)


def _lines(found: pd.DataFrame, *, certainty: bool = False) -> str:
    """A list item a misprint; `certainty` adds its equation, and how certain it is."""
    return "\n".join(
        f"- **{row['where']}.** Printed: {row['printed']}. Meant: {row['meant']}."
        + f" ({row['formula']}; *{row['certainty']}*)" * certainty
        for row in found.to_dict("records")
    )


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


def derivation(
    alpha: float, beta_one: float, beta_p: float, l_inf: float, n: float
) -> dict[str, float]:
    """Three losses of Appendix D: the pair's own, and at N_eff under weight 1 and under weight p.

    Eq. 8 wants the first two to be equal.

    >>> losses = derivation(alpha=0.5, beta_one=10.0, beta_p=20.0, l_inf=1.0, n=400.0)
    >>> {name: round(loss, 9) for name, loss in losses.items()}
    {'L(N; p)': 2.0, 'L(N_eff; 1)': 2.0, 'L(N_eff; p)': 3.0}
    """
    effective = (beta_one / beta_p) ** (1 / alpha) * n  # Eq. 9
    return {
        "L(N; p)": beta_p * n**-alpha + l_inf,
        "L(N_eff; 1)": beta_one * effective**-alpha + l_inf,
        "L(N_eff; p)": beta_p * effective**-alpha + l_inf,
    }
