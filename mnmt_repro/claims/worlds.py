"""What is true of simulated data, in words; `claims.attainability` explains the fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_SAID = {
    "alpha": "the exponent changes by {:+.0%} from p = 1 to p = 0.05",
    "closed": "{:.0%} of the gap is closed",
    "l_inf": "the irreducible loss changes by {:+.0%} of the smallest model's loss",
    "moved": "scaling changes the log distance of weights by {}",
    "printed": "variants differ as the paper prints",
    "relief": "scaling saves {:.0%} of what is forgotten",
    "slope": "f goes as N to the power {:+g}",
    "smallest": "the smallest direction forgets {:g} times as much as the largest",
    "spread": "the exponents spread by {:.0%} to both sides",
    "unexplained": "scatter leaves {:.0%} of the variance unexplained",
}
_ONE = {"f": {"eq12": "f follows Eq. 12", "eq13": "f follows Eq. 13", 1: "f is 1 at all weights"}}
_RATIOS = {
    "contrast": "one fraction is {:.2g} times the other",
    "slope_of_similarity": "the fraction with a common lexicon is {:.2g} times that with none",
}


def described(world: Mapping[str, Any]) -> str:
    """Say what is true in a world of a claim.

    >>> described({"alpha": -0.4}), described({"contrast": 0.693})
    ('the exponent changes by -40% from p = 1 to p = 0.05', 'one fraction is 2 times the other')
    >>> described({"gains": {}}), described({"f_over_p": {0.05: 2.4}})
    ('no variant is better', 'f is 2.4 times p at 0.05')
    """
    return ", ".join(_part(name, value) for name, value in world.items() if name != "table")


def _part(name: str, value: Any) -> str:
    if name in _RATIOS:
        return _RATIOS[name].format(math.exp(value))
    if name in _ONE:
        return _ONE[name][value]
    if name == "spread" and not value:
        return "one joint law is exactly true"
    if name == "sides" and value == "printed":
        return "the gains of both sides are as printed"
    if not isinstance(value, Mapping):
        return _SAID[name].format(value)
    if name == "gains" and not value:
        return "no variant is better"
    each = "{} is better by {:g} %"
    each = {"f_over_p": "f is {1:g} times p at {0}", "moved": "{}: {:+g}"}.get(name, each)
    weights = {"all": "all weights"}
    listed = ", ".join(each.format(weights.get(key, key), times) for key, times in value.items())
    return _SAID[name].format(listed) if name in _SAID else listed
