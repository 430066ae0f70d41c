"""Plain names of the measures in verdicts and rules, and their numbers with units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from mnmt_repro.claims import Condition, printed_values
from mnmt_repro.errors import InputError


@cache
def _measures() -> Mapping[str, Mapping[str, Any]]:
    text = (resources.files("mnmt_repro.figures") / "measures.yml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = yaml.safe_load(text)
    return found


def _entry(measure: str) -> Mapping[str, Any]:
    if measure not in _measures():
        raise InputError(f"measure {measure!r} has no plain name: add it to figures/measures.yml")
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

    >>> written("closed", 0.931), written("gain", -0.42), written("mean_log_ratio", 0.223)
    ('93.1 %', '−0.42 %', '1.25 times')
    """
    if value is None or math.isnan(value):
        return "–"
    entry = _entry(measure)
    form = entry.get("as_of", {}).get(claim, entry["as"])
    if form == "share":
        text = f"{_digits(100 * value)} %"
    elif form == "percent":
        text = f"{'+' * (value > 0)}{_digits(value)} %"
    elif form == "log":
        text = f"{_digits(math.exp(value))} times"
    elif form == "times":
        text = f"{_digits(value)} times"
    else:
        text = _digits(value)
    return text.replace("-", "−")


def _digits(value: float) -> str:
    """Three significant digits, none beyond what is needed.

    >>> _digits(12345.6), _digits(0.99342), _digits(93.1), _digits(2.0)
    ('12346', '0.993', '93.1', '2')
    """
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2g}" if abs(value) >= 10 and value == round(value) else f"{value:.3g}"


def measured(measure: str, scope: Mapping[str, Any], claim: str = "") -> str:
    """Write the deciding number of a stored verdict with its interval, where there is one."""
    text = written(measure, scope["measured"], claim)
    if scope["interval"] is None or scope["measured"] is None:
        return text
    low, high = (written(measure, end, claim) for end in scope["interval"])
    unit = text.split(" ", 1)[1:]
    if unit and low.endswith(unit[0]):
        low = low.removesuffix(unit[0]).strip()
        high = high.removesuffix(" times")
    return f"{text} ({low} to {high})"


_OPERATORS = {
    ">=": "at least",
    ">": "above",
    "<=": "at most",
    "<": "below",
    "==": "is",
}
_ENDS = {"value": "", "low": "low end of ", "high": "high end of "}


def condition(test: Condition, claim: str = "") -> str:
    """Write a condition of a rule in plain words.

    >>> condition(Condition(measure="power", op=">=", value=0.8))
    'power to see the alternative at least 80 %'
    """
    number = written(test.measure, test.value, claim)
    return f"{_ENDS[test.of]}{named(test.measure, claim)} {_OPERATORS[test.op]} {number}"


def printed(item: Mapping[str, Any]) -> str:
    """Write what the paper prints: an entry of a claim's `published`.

    >>> printed({"quantity": "factor", "value": 3, "unit": "times", "note": "Figure 6"})
    'factor: 3 times (Figure 6)'
    """
    unit = f" {item['unit']}" if "unit" in item else ""
    note = f" ({item['note']})" if "note" in item else ""
    return f"{item['quantity']}: {printed_values(item)}{unit}{note}"
