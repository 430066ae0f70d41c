"""Plain names of the measures behind verdicts, and their numbers with units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd
import yaml

from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.schema import Claim
from mnmt_repro.papers.cohorts.settled_upgrades import EARLY, ONCE


@cache
def _measures() -> Mapping[str, Mapping[str, Any]]:
    path = resources.files("mnmt_repro.papers.charts") / "measures.yml"
    measures: Mapping[str, Mapping[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return measures


def _entry(measure: str) -> Mapping[str, Any]:
    if measure not in _measures():
        raise InputError(f"measure {measure!r} has no plain name: add it to charts/measures.yml")
    return _measures()[measure]


def named(measure: str, claim: str = "") -> str:
    """Name a measure in plain words.

    Raises
    ------
    InputError
        When the measure has no name yet.

    >>> named("slope"), named("slope", "A21")
    ('exponent of f in N', 'fraction with a common lexicon over none')
    """
    entry = _entry(measure)
    return str(entry.get("of", {}).get(claim, entry["says"]))


def written(measure: str, value: float | None, claim: str = "") -> str:
    """Write a measure's number with its unit; a dash where there is none.

    >>> written("error", 0.931), written("gain", -0.42), written("mean_log_ratio", 0.223)
    ('93.1 %', '−0.42 %', '1.25 times')
    """
    if value is None or math.isnan(value):
        return "–"
    number, sign, unit = _in_units(measure, float(value), claim)
    return f"{'+' * (sign == '+' and number > 0)}{_digits(number)}{unit}".replace("-", "−")


def _form(measure: str, claim: str) -> str:
    """How its numbers are written, as the head of `measures.yml` lists."""
    entry = _entry(measure)
    return str(entry.get("as_of", {}).get(claim, entry["as"]))


def is_ratio(measure: str, claim: str = "") -> bool:
    """Whether a measure's numbers are ratios, and not logarithms of ratios or differences.

    >>> is_ratio("capacity"), is_ratio("mean_log_ratio"), is_ratio("gain")
    (True, False, False)
    """
    return _form(measure, claim) == "times"


def _in_units(measure: str, value: float, claim: str) -> tuple[float, str, str]:
    """The number as it is shown, the sign option of its format, and its unit."""
    form = _form(measure, claim)
    number = 100 * value if form == "share" else math.exp(value) if form == "log" else value
    unit = {"share": " %", "percent": " %", "log": " times", "times": " times"}.get(form, "")
    return number, "+" if form == "percent" else "-", unit


def _digits(value: float) -> str:
    """Three significant digits, none beyond what is needed.

    >>> _digits(12345.6), _digits(0.99342), _digits(93.1), _digits(2.0)
    ('12346', '0.993', '93.1', '2')
    """
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2g}" if abs(value) >= 10 and value == round(value) else f"{value:.3g}"


def measured(measure: str, row: Mapping[str, Any] | pd.Series, claim: str = "") -> str:
    """Write a number with its interval, where there is one: `value`, `low` and `high` of a row.

    All three have as many decimals as show two digits of the interval's half width, or one digit
    where this half width would begin with 36 or more, as the Particle Data Group rounds. They have
    one more where one of them would read as the row's `limit` and yet lies beside it. An interval
    without a width is left out. A number that is an end of its interval sits on a bound of what can
    be measured, so it is a least or a greatest value; so is a factor of updates of no width. It is
    a least value where it is that of the first budget, with which the curves of upgrades begin.

    >>> measured("gain", {"value": 2.392, "low": 0.6642, "high": 4.209})
    '+2.4 % (+0.7 to +4.2 %)'
    >>> measured("gain", {"value": 0.0045, "low": -0.101, "high": 0.11})
    '+0.00 % (−0.10 to +0.11 %)'
    >>> measured("gain", {"value": 0.62, "low": 0.011, "high": 1.19, "limit": "0"})
    '+0.62 % (+0.01 to +1.19 %)'
    >>> measured("factor", {"value": 10, "low": 7.9021, "high": 10})
    '≥10.0 times (interval from 7.9)'
    >>> measured("factor", {"value": 10, "low": 10, "high": 10})
    '≥10 times'
    >>> measured("factor", {"value": 10 / 3, "low": 10 / 3, "high": 10 / 3})
    '≤3.33 times'
    """
    numbers = [float(row[name]) for name in ("value", "low", "high")]
    if not all(map(math.isfinite, numbers)) or numbers[1] == numbers[2]:
        bound = measure == "factor" and numbers[1] == numbers[2]  # no draw left it
        sign = "≥" if numbers[0] == ONCE / EARLY else "≤"
        return sign * bound + written(measure, numbers[0], claim)
    shown = [_in_units(measure, each, claim) for each in numbers]
    half = (shown[2][0] - shown[1][0]) / 2
    decimals = max(0, -math.floor(math.log10(half / 3.55))) if half < math.inf else 3
    ends = str(row.get("limit", "")).split(" to ")
    limits = [_in_units(measure, float(end), claim)[0] for end in ends if end]
    decimals += any(
        number != limit and f"{number:z.{decimals}f}" == f"{limit:z.{decimals}f}"
        for number, _, _ in shown
        for limit in limits
    )
    text, low, high = (f"{number:{sign}z.{decimals}f}" for number, sign, _ in shown)
    unit = shown[0][2]
    if numbers[0] in numbers[1:]:
        sign, end = (
            ("≥", f"interval from {low}")
            if numbers[0] == numbers[2]
            else ("≤", f"interval up to {high}")
        )
        return f"{sign}{text}{unit} ({end}{unit * (unit == ' %')})".replace("-", "−")
    return f"{text}{unit} ({low} to {high}{unit * (unit == ' %')})".replace("-", "−")


def half_width_written(measure: str, half: float, claim: str = "") -> str:
    """Half an interval: a distance, or a factor where the measure is written as a ratio of logs.

    >>> half_width_written("gain", 1.77), half_width_written("mean_log_ratio", 0.255)
    ('± 1.8 %', 'a factor of 1.29')
    """
    if _form(measure, claim) == "log":
        return f"a factor of {_digits(math.exp(half))}"
    number, _, unit = _in_units(measure, half, claim)
    return f"± {float(f'{number:.2g}'):g}{unit}"


def limit_written(measure: str, claim: Claim) -> str:
    """A claim's limit in the unit in which its measure is written."""
    if isinstance(claim.limit, tuple):
        low, high = (written(measure, end, claim.id) for end in claim.limit)
        return f"{low.removesuffix(' times')} to {high}"
    words = "at least" if claim.side == ">=" else "at most"
    return f"{words} {written(measure, claim.limit, claim.id)}".replace(" 1 times", " 1")
