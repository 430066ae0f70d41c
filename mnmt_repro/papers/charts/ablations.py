"""Tables of ablations as pages print them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import pandas as pd

from mnmt_repro.papers.charts.gains import interval
from mnmt_repro.papers.effects.upgrades import MODEL_CHANGES


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `cells` as the paper lays it out: a row a variant.

    Returns
    -------
    DataFrame
        ``variant``; for each group the ``paper`` score with its mark, where one is printed, and
        ``here`` our gain over the control in per cent, with its 95 % interval.
    """
    rows: dict[str, dict[str, str | None]] = {}
    for cell in table.to_dict("records"):
        row = rows.setdefault(cell["variant"], {"variant": cell["variant"]})
        printed = None if math.isnan(cell["paper"]) else f"{cell['paper']:.1f}{cell['mark']}"
        between = interval(cell["low"], cell["high"])
        here = f"{cell['gain, %']:+.2f} ({between})" if between else None
        row |= {f"{cell['group']}, paper": printed, f"{cell['group']}, here": here}
    return pd.DataFrame(rows.values()).dropna(axis=1, how="all")


def variant_in_words(variant: str) -> str:
    """What a chart calls a variant of an ablation.

    >>> for each in ("Mt25-wide, random init new", "alpha 5, related (against alpha 5)"):
    ...     variant_in_words(each)
    'wider: new weights random'
    'up-sampling × 5, related too (against × 5)'
    >>> variant_in_words("f 1e-6, gamma 0.25"), variant_in_words("old 0.5, new 5")
    ('Fisher above 1e-6: factor 0.25', 'factor of old weights 0.5, of new 5')
    """
    model, comma, technique = variant.partition(", ")
    name = f"{MODEL_CHANGES[model]}: {technique}" if comma and model in MODEL_CHANGES else variant
    for pattern, words in _WORDS.items():
        name = re.sub(pattern, words, name)
    return name


def against(variant: str) -> str:
    """What a chart calls the recipe's choice where it is compared with a variant.

    >>> against("Mt25-wide, random init new"), against("reset")
    ('wider: against new weights random', 'against a new warm-up')
    """
    model, colon, other = variant_in_words(variant).rpartition(": ")
    return f"{model}{colon}against {other}"


_WORDS = {
    "random init new": "new weights random",
    "random init all": "all weights random",
    "unk$": "the unknown piece",
    "new embeddings mean": "embeddings as means",
    r"against alpha (\d+)": r"against × \1",
    r"alpha (\d+)": r"up-sampling × \1",
    r"(× \d+), related": r"\1, related too",
    r"^f (\S+), gamma (\S+)": r"Fisher above \1: factor \2",
    r"\bold (\d\S*), new (\d\S*)": r"factor of old weights \1, of new \2",
    r": new (\d\S*)": r": factor of new weights \1",
    ", one rate": ", full rate",
    "^reset$": "a new warm-up",
    "^small constant$": "a small constant rate",
    r"noise (\S+)": r"noise of \1",
}


def span(values: Iterable[float]) -> str:
    """The smallest and the largest of some values, with two digits each, or one decimal.

    >>> span([12.66, 7.2]), span([-0.004]), span([-0.5])
    ('7.2 to 13', '0.0', '−0.5')
    """
    found = sorted(values)
    ends = dict.fromkeys(_short(value) for value in (found[0], found[-1])) if found else ["–"]
    return " to ".join(ends)


def _short(value: float) -> str:
    return (f"{value:.0f}" if abs(value) >= 10 else f"{value:z.1f}").replace("-", "−")
