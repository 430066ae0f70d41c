"""Plain names of the measures in verdicts and rules, and their numbers with units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from mnmt_repro.analysis.published import printed_values
from mnmt_repro.claims.schema import Condition
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
    number, sign, unit = _in_units(measure, value, claim)
    return f"{'+' * (sign == '+' and number > 0)}{_digits(number)}{unit}".replace("-", "−")


def _in_units(measure: str, value: float, claim: str) -> tuple[float, str, str]:
    """The number as it is shown, the sign option of its format, and its unit."""
    entry = _entry(measure)
    form = entry.get("as_of", {}).get(claim, entry["as"])
    match form:
        case "share":
            return 100 * value, "-", " %"
        case "percent":
            return value, "+", " %"
        case "log":
            return math.exp(value), "-", " times"
        case "times":
            return value, "-", " times"
        case _:
            return value, "-", ""


def _digits(value: float) -> str:
    """Three significant digits, none beyond what is needed.

    >>> _digits(12345.6), _digits(0.99342), _digits(93.1), _digits(2.0)
    ('12346', '0.993', '93.1', '2')
    """
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2g}" if abs(value) >= 10 and value == round(value) else f"{value:.3g}"


def measured(measure: str, scope: Mapping[str, Any], claim: str = "") -> str:
    """Write the deciding number of a stored verdict with its interval, where there is one.

    All three have as many decimals as show two digits of the interval's half width, or one digit
    where this half width would begin with 36 or more, as the Particle Data Group rounds.

    >>> measured("gain", {"measured": 2.392, "interval": [0.6642, 4.209]})
    '+2.4 % (+0.7 to +4.2 %)'
    >>> measured("gain", {"measured": 0.0045, "interval": [-0.101, 0.11]})
    '+0.00 % (−0.10 to +0.11 %)'
    """
    value, ends = scope["measured"], scope["interval"] or (None, None)
    if value is None or None in ends:
        return written(measure, value, claim)
    found = [_in_units(measure, each, claim) for each in (value, *ends)]
    half = (found[2][0] - found[1][0]) / 2
    decimals = max(0, -math.floor(math.log10(half / 3.55))) if 0 < half < math.inf else 3
    text, low, high = (f"{number:{sign}z.{decimals}f}" for number, sign, _ in found)
    unit = found[0][2]
    return f"{text}{unit} ({low} to {high}{unit * (unit == ' %')})".replace("-", "−")


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
